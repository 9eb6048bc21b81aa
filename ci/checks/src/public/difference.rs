//! The difference of two lists of items. Their order does not matter.

use std::collections::BTreeMap;

/// A line that one list has and the other has not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// In the accepted list; for a new line, the last one.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Lines that are gone, and then those that are new. A line counts as often as it is there.
pub(crate) fn of(accepted: &str, current: &str) -> Vec<Change> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in current.lines() {
        *counts.entry(line).or_default() += 1;
    }
    let mut changes = Vec::new();
    for (index, line) in accepted.lines().enumerate() {
        match counts.get_mut(line) {
            Some(count) if *count > 0 => *count -= 1,
            _ => changes.push(Change { line: index + 1, text: format!("gone: {line}") }),
        }
    }
    let last = accepted.lines().count().max(1);
    for line in current.lines() {
        if let Some(count) = counts.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
            changes.push(Change { line: last, text: format!("new: {line}") });
        }
    }
    changes
}
