//! Durations for people and for JSON.

use std::time::Duration;

use serde::Serializer;

/// A duration rounded to what matters: `0ms`, `1.4s`, `12m 5s`, `48h`.
pub(crate) fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts = |large: u64, unit: &str, small: u64, below: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit} {small}{below}"),
    };
    match seconds {
        0 => format!("{}ms", time.as_millis()),
        1..60 => format!("{:?}", Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))),
        60..3600 => parts(seconds / 60, "m", seconds % 60, "s"),
        _ => parts(seconds / 3600, "h", seconds % 3600 / 60, "m"),
    }
}

/// Durations as whole milliseconds.
pub(crate) mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

/// The same where there may be none.
#[expect(clippy::ref_option, reason = "serde asks so")]
pub(crate) fn optional_milliseconds<S: Serializer>(
    time: &Option<Duration>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => milliseconds::serialize(time, to),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G33
    #[test]
    fn durations_are_rounded_to_what_matters() {
        let spoken = |ms: u64| spoken(Duration::from_millis(ms));
        let words = [0, 999, 1_400, 60_000, 61_500, 172_800_000, 5_400_000].map(spoken);
        assert_eq!(words, ["0ms", "999ms", "1.4s", "1m", "1m 1s", "48h", "1h 30m"]);
    }
}
