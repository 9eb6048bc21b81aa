//! Phrases that several messages are made of.

use std::fmt;

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
