//! The marking of recalled text as data (A19). It does not decide what is recalled, nor where a prompt shows it.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Recalled, RecalledKind};

/// The name of the tags.
const TAG: &str = "memory";

/// The text between tags, without anything in it that looks like one of these tags.
pub(super) fn marked(recalled: &Recalled) -> String {
    let kind = match recalled.kind {
        RecalledKind::Episode => "episode",
        RecalledKind::Entity => "entity",
        RecalledKind::Relation => "relation",
    };
    let date = recalled.at.map(|at| format!(" date=\"{}\"", date(at))).unwrap_or_default();
    format!("<{TAG} kind=\"{kind}\"{date}>\n{}\n</{TAG}>", without_tags(&recalled.text))
}

/// Writes each `<` that begins one of the tags as `&lt;`. Other text stays, so that code in memories reads as code.
fn without_tags(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        safe.push_str(before);
        safe.push_str(if begins_tag(&from[1..]) { "&lt;" } else { "<" });
        rest = &from[1..];
    }
    safe + rest
}

/// Whether a reader could take the text after a `<` for the rest of a tag, in any case and with any spacing.
fn begins_tag(text: &str) -> bool {
    let invisible = |c: &char| c.is_whitespace() || c.is_control() || *c == '/' || is_format(*c);
    let mut letters = text.chars().filter(|c| !invisible(c));
    TAG.chars().all(|expected| letters.next().is_some_and(|c| c.to_ascii_lowercase() == expected))
}

/// Characters without width, which could stand within a tag unseen.
fn is_format(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
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

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A19
        #[test]
        fn no_text_can_close_or_open_its_own_marking(text in "(<|/|memory|MeMory| |\u{200b}|a|>|\n|\\PC){0,24}") {
            let marked = marked(&Recalled::new(RecalledKind::Episode, text));
            let seen: String = marked.chars().filter(|c| !is_format(*c) && !c.is_whitespace() && !c.is_control() && *c != '/').collect();
            prop_assert_eq!(seen.to_ascii_lowercase().matches("<memory").count(), 2);
        }
    }

    #[test]
    fn other_text_is_marked_unchanged() {
        assert_eq!(without_tags("if a<b && c </ div> <mem>"), "if a<b && c </ div> <mem>");
        assert_eq!(without_tags("< / MEMORY>"), "&lt; / MEMORY>");
    }

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
