//! The label of a recalled text: its kind and its date. The marks around it are those of `crate::mark`.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Recalled, RecalledKind};

/// The text between marks, with its kind and its date.
pub(super) fn marked(recalled: &Recalled) -> String {
    let kind = match recalled.kind {
        RecalledKind::Episode => "episode",
        RecalledKind::Entity => "entity",
        RecalledKind::Relation => "relation",
    };
    let date = recalled.at.map(|at| format!(" of {}", date(at))).unwrap_or_default();
    crate::mark::data(&format!("memory: {kind}{date}"), &recalled.text)
}

/// The date in UTC as `2026-03-04`, by Howard Hinnant's algorithm `civil_from_days`.
fn date(at: SystemTime) -> String {
    let days = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_date_is_that_of_the_calendar() {
        let day = |days: u64| date(UNIX_EPOCH + Duration::from_secs(days * 86_400 + 86_399));
        assert_eq!(
            [day(0), day(58), day(59), day(11_016), day(11_017)],
            ["1970-01-01", "1970-02-28", "1970-03-01", "2000-02-29", "2000-03-01"]
        );
        assert_eq!(day(20_516), "2026-03-04");
        assert_eq!(date(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01");
    }
}
