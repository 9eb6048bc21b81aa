//! Durations: a whole number and its unit.

use std::time::Duration;

use super::Reading;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;

/// A century.
const LONGEST: Duration = Duration::from_hours(36_500 * 24);

impl Reading<'_> {
    /// `250ms`, `30s`, `10m`, `48h` or `7d`.
    pub(crate) fn duration(&mut self, tree: &Tree, key: &str) -> Option<Duration> {
        let written = match &tree.kind {
            Kind::Text(text) => text.value.to_string(),
            Kind::Number(number) => number.to_string(),
            _ => {
                self.wrong_type(tree, &format!("`{key}`"), "a duration");
                return None;
            }
        };
        let found = parse_duration(&written);
        if found.is_none() {
            let message = format!("`{written}` is no duration");
            let remedy =
                "write a whole number and its unit: `250ms`, `30s`, `10m`, `48h` or `7d`, at most `36500d`";
            self.problems.add(Code::BadDuration, tree.at, message, remedy);
        }
        found
    }

    /// The same for a time that must not be over before it begins.
    pub(crate) fn positive_duration(&mut self, tree: &Tree, key: &str) -> Option<Duration> {
        let found = self.duration(tree, key)?;
        if found.is_zero() {
            let message = format!("`{key}` leaves no time");
            let remedy = format!("write `1ms` or more, or leave `{key}` out");
            self.problems.add(Code::BadDuration, tree.at, message, remedy);
            return None;
        }
        Some(found)
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let seconds = |each: u64| number.checked_mul(each).map(Duration::from_secs);
    let duration = match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3_600),
        "d" => seconds(86_400),
        _ => None,
    };
    // Deadlines are sums with the present time, which must not overflow.
    duration.filter(|duration| *duration <= LONGEST)
}
