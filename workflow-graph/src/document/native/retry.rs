//! `retry`: attempts by the executor. Retries of agents are in `ensure`.

use super::Reading;
use super::fields::Fields;
use crate::document::model::Retry;
use crate::document::tree::{Kind, Tree};

/// The most attempts of one node.
pub(super) const MOST_ATTEMPTS: u32 = 1_000;

pub(super) fn read(tree: &Tree, reading: &mut Reading<'_>) -> Option<Retry> {
    if matches!(&tree.kind, Kind::Text(text) if &*text.value == "none") {
        return Some(Retry::None);
    }
    if !matches!(tree.kind, Kind::Map(_)) {
        reading.wrong_type(tree, "`retry`", "`none` or a map");
        return None;
    }
    let fields = Fields::new(tree, "`retry`", &["attempts", "first", "factor", "most", "jitter"], reading)?;
    Some(Retry::Attempts {
        attempts: fields.number("attempts", (1, MOST_ATTEMPTS), reading),
        first: fields.duration("first", reading),
        factor: fields.get("factor").and_then(|tree| reading.fraction(tree, "factor", (1.0, 1_000.0))),
        most: fields.duration("most", reading),
        jitter: fields.get("jitter").and_then(|tree| reading.fraction(tree, "jitter", (0.0, 1.0))),
    })
}
