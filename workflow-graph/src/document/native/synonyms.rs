//! Names that other tools give to keys of this format. Spelling is not compared here.

use crate::problem::is_same;

/// Keys of other tools, and the way in which this format says the same.
pub(crate) struct Synonym {
    names: &'static [&'static str],
    /// The key of this format.
    pub(super) key: &'static str,
    /// The change that mends it, where the key alone is not the answer.
    pub(super) remedy: Option<&'static str>,
}

/// The first synonym of `table` that has this name.
pub(super) fn find<'t>(name: &str, table: &'t [Synonym]) -> Option<&'t Synonym> {
    table.iter().find(|synonym| synonym.names.iter().any(|known| is_same(known, name)))
}

/// The key is another one.
const fn key(names: &'static [&'static str], key: &'static str) -> Synonym {
    Synonym { names, key, remedy: None }
}

/// More changes than the key.
const fn told(names: &'static [&'static str], key: &'static str, remedy: &'static str) -> Synonym {
    Synonym { names, key, remedy: Some(remedy) }
}

const CONDITION: Synonym = key(&["if", "condition", "cond"], "when");
const TARGET: Synonym = key(&["goto", "target", "then"], "to");

pub(super) const ROUTE: [Synonym; 3] = [
    CONDITION,
    TARGET,
    told(
        &["else", "default", "otherwise"],
        "to",
        "a route without `when` is the default: write it last, with `to` alone",
    ),
];

pub(super) const BRANCH: [Synonym; 2] = [CONDITION, TARGET];

pub(super) const NODE: [Synonym; 5] = [
    key(&["on_error", "on_failure", "catch"], "on_failure"),
    told(
        &["retries", "max_retries"],
        "retry",
        "write `retry: {attempts: …}`, which counts the first attempt too",
    ),
    told(&["depends_on", "needs"], "next", "lead a route to it: `next` of the node before"),
    key(&["inputs", "input", "args", "arguments", "params", "parameters"], "with"),
    told(
        &["if", "when", "condition"],
        "next",
        "write the condition as `when` of a route that leads to it: `next` of the node before",
    ),
];

pub(super) const RETRY: [Synonym; 4] = [
    key(&["max", "max_attempts", "count", "tries"], "attempts"),
    key(&["delay", "interval", "backoff", "initial_delay", "initial_interval"], "first"),
    key(&["multiplier", "backoff_factor"], "factor"),
    key(&["max_delay", "max_interval", "max_backoff"], "most"),
];
