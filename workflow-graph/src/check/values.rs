//! `never-equal`: comparisons with values that a schema excludes.

use super::reads::{Place, Reads};
use super::scope::Names;
use super::uses::Use;
use crate::expression::short;
use crate::problem::Code;

/// The most values that a message lists.
const MOST_LISTED: usize = 8;

impl Reads<'_, '_> {
    pub(super) fn never_equal(&mut self, names: Names<'_>, used: Use<'_>) {
        for excluded in used.expression.parsed.excluded(&names) {
            let values = &excluded.values;
            let mut listed: Vec<String> = values.iter().take(MOST_LISTED).map(|value| short(value)).collect();
            if values.len() > MOST_LISTED {
                listed.push(format!("one of {} more", values.len() - MOST_LISTED));
            }
            let listed = match listed.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, before)) => format!("{} or {last}", before.join(", ")),
                None => continue,
            };
            let literal = short(excluded.literal);
            let message = format!("`{}` is never {literal}: it is {listed}", excluded.written);
            let known = values.iter().filter_map(|value| value.as_str());
            let name = excluded.literal.as_str().unwrap_or_default();
            let at = self.at(Place::Within(used.expression, excluded.offset));
            let otherwise = || "compare it with one of these".to_owned();
            self.problems.add_unknown(Code::NeverEqual, at, message, name, known, otherwise);
        }
    }
}
