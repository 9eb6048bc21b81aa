//! The parts of a node's visit, each a step of its own, and the names of these steps. Tables write them, traces read them.

use std::sync::Arc;

use crate::state::names;

/// The part of a visit that a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// The visit itself, up to its work or its question.
    Visit,
    Reply,
    Expired,
    Caught,
    Route,
    Branch,
    Join,
    Each,
    Collect,
}

/// The parts whose steps have a name beside that of the node.
const NAMED: [(Part, &str); 8] = [
    (Part::Reply, "reply"),
    (Part::Expired, "expired"),
    (Part::Caught, "caught"),
    (Part::Route, "route"),
    (Part::Branch, "branch"),
    (Part::Join, "join"),
    (Part::Each, "each"),
    (Part::Collect, "collect"),
];

impl Part {
    /// The name of the step that does this part for a node.
    pub(crate) fn step(self, node: &Arc<str>) -> Arc<str> {
        match NAMED.iter().find(|(part, _)| *part == self) {
            Some((_, name)) => names::of(node, name),
            None => node.clone(),
        }
    }

    /// The part of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        NAMED.iter().find(|(_, known)| *known == name).map(|(part, _)| *part)
    }
}
