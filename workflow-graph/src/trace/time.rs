//! Durations for people and for JSON.

use std::time::{Duration, SystemTime};

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

/// A moment by RFC 3339, in UTC and to the second.
pub(crate) fn stamp(at: SystemTime) -> String {
    const DAY: u64 = 86_400;
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second) = (seconds / DAY, seconds % DAY);
    // Years that begin in March have their leap day at the end; 400 of them have 146097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second % 3_600 / 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Writes a moment by RFC 3339.
pub(crate) fn moment<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&stamp(*at))
}

/// The same where there may be none.
#[expect(clippy::ref_option, reason = "serde asks so")]
pub(crate) fn optional_moment<S: Serializer>(at: &Option<SystemTime>, to: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => moment(at, to),
        None => to.serialize_none(),
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

    /// G34
    #[test]
    fn moments_have_their_date_and_time_in_utc() {
        let stamp = |seconds: u64| stamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let words = [0, 951_782_399, 951_782_400, 951_868_800, 1_764_303_404, 4_107_542_400].map(stamp);
        let expected = [
            "1970-01-01T00:00:00Z",
            "2000-02-28T23:59:59Z",
            "2000-02-29T00:00:00Z",
            "2000-03-01T00:00:00Z",
            "2025-11-28T04:16:44Z",
            "2100-03-01T00:00:00Z",
        ];
        assert_eq!(words, expected);
    }

    /// G33
    #[test]
    fn durations_are_rounded_to_what_matters() {
        let spoken = |ms: u64| spoken(Duration::from_millis(ms));
        let words = [0, 999, 1_400, 60_000, 61_500, 172_800_000, 5_400_000].map(spoken);
        assert_eq!(words, ["0ms", "999ms", "1.4s", "1m", "1m 1s", "48h", "1h 30m"]);
    }
}
