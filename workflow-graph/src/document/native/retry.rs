//! `retry`: attempts by the executor. Retries of agents are in `ensure`.

use super::fields::Fields;
use super::{Reading, synonyms};
use crate::document::model::Retry;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;

/// The most attempts of one node.
pub(super) const MOST_ATTEMPTS: u32 = 1_000;

const KEYS: [&str; 5] = ["attempts", "first", "factor", "most", "jitter"];

pub(super) fn read(tree: &Tree, reading: &mut Reading<'_>) -> Option<Retry> {
    if matches!(&tree.kind, Kind::Text(text) if &*text.value == "none") {
        return Some(Retry::None);
    }
    if let Kind::Number(number) = &tree.kind
        && number.as_u64().is_some_and(|number| (1..=u64::from(MOST_ATTEMPTS)).contains(&number))
    {
        let message = format!("`retry` is `none` or a map, and this is the number {number}");
        let remedy = format!("write `retry: {{attempts: {number}}}`");
        reading.problems.add(Code::WrongType, tree.at, message, remedy);
        return None;
    }
    if !matches!(tree.kind, Kind::Map(_)) {
        reading.wrong_type(tree, "`retry`", "`none` or a map");
        return None;
    }
    let fields = Fields::with_synonyms(tree, "`retry`", &KEYS, &synonyms::RETRY, reading)?;
    Some(Retry::Attempts {
        attempts: fields.number("attempts", (1, MOST_ATTEMPTS), reading),
        first: fields.duration("first", reading),
        factor: fields.get("factor").and_then(|tree| reading.fraction(tree, "factor", (1.0, 1_000.0))),
        most: fields.duration("most", reading),
        jitter: fields.get("jitter").and_then(|tree| reading.fraction(tree, "jitter", (0.0, 1.0))),
    })
}
