//! Times as people read them, in UTC.

use std::time::{Duration, SystemTime};

const DAY: u64 = 24 * 60 * 60;

/// A time to the second: `2023-11-14 22:13:20`. A time before 1970 is shown as 1970.
pub(crate) fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, within) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (within / 3600, within / 60 % 60, within % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// A time with its unit: `30d`, `12h`, `90m`, `45s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let units = [("d", DAY), ("h", 60 * 60), ("m", 60), ("s", 1)];
    let number = |(unit, of): (&str, u64)| text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(of);
    let seconds = units.into_iter().find_map(number);
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "a time is a number and a unit, as in 30d, 12h, 90m or 45s".into())
}

/// The date so many days after 1970-01-01. Years begin in March here, so that a leap day is the last day.
fn date(days: u64) -> (u64, u64, u64) {
    let since_year_0 = days + 719_468;
    let (era, within) = (since_year_0 / 146_097, since_year_0 % 146_097);
    let year = (within - within / 1_460 + within / 36_524 - within / 146_096) / 365;
    let day_of_year = within - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        let times = ["30d", "12h", "90m", "45s"].map(|text| duration(text).unwrap().as_secs());
        assert_eq!(times, [30 * DAY, 12 * 60 * 60, 90 * 60, 45]);
        for wrong in ["30", "d", "-1s", "1.5h", "", "999999999999999999999d", "18446744073709551615d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        let at = |seconds| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00:00");
        assert_eq!(at(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(at(1_700_000_000), "2023-11-14 22:13:20");
        assert_eq!(at(4_107_542_400), "2100-03-01 00:00:00");
    }
}
