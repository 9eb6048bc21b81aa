//! Phrases that several messages are made of.

mod bounded;

pub(crate) use bounded::{Beginning, bounded, bounded_shared};

use std::fmt;
use std::time::{Duration, SystemTime};

/// Joins items as in "a", "a and b", "a, b and c".
pub(crate) fn enumerated(items: &[String], joint: &str) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {joint} {last}", first.join(", ")),
    }
}

/// Names in backticks.
pub(crate) fn quoted(names: &[impl fmt::Display]) -> Vec<String> {
    names.iter().map(|name| format!("`{name}`")).collect()
}

/// The first of this many items, and the number of the rest: "a", "b", "3 more".
pub(crate) fn first(items: &[impl ToString], all: usize) -> Vec<String> {
    let rest = all.checked_sub(items.len()).filter(|rest| *rest > 0).map(|rest| format!("{rest} more"));
    items.iter().map(ToString::to_string).chain(rest).collect()
}

/// "once", "twice", "3 times".
pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        more => format!("{more} times"),
    }
}

/// A time in UTC as RFC 3339 has it, to the second: `2026-01-31T09:30:00Z`.
pub(crate) fn utc(at: SystemTime) -> String {
    const DAY: u64 = 86_400;
    let (since, is_before) = match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => (since, false),
        Err(error) => (error.duration(), true),
    };
    // Before 1970 a part of a second counts as a whole one.
    let seconds =
        since.as_secs().saturating_add(u64::from(is_before && since > Duration::from_secs(since.as_secs())));
    let (days, rest) = (i128::from(seconds / DAY), seconds % DAY);
    let (days, rest) = match (is_before, rest) {
        (false, rest) => (days, rest),
        (true, 0) => (-days, 0),
        (true, rest) => (-days - 1, DAY - rest),
    };
    let (year, month, day) = date_of(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

/// The date of a day, counted from 1970-01-01, in the Gregorian calendar. Years are counted from March, so that the
/// leap day is the last of its year.
fn date_of(days: i128) -> (i128, i128, i128) {
    const ERA: i128 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + i128::from(month <= 2), month, day - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_utc() {
        let at = |seconds| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(at(1_769_852_445), "2026-01-31T09:40:45Z");
        let before = |millis| utc(SystemTime::UNIX_EPOCH - Duration::from_millis(millis));
        assert_eq!(before(500), "1969-12-31T23:59:59Z");
        assert_eq!(before(86_400_000), "1969-12-31T00:00:00Z");
    }
}
