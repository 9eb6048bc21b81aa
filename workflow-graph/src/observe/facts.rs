//! The little of a graph that observers need, so that they do not keep the document.

use std::collections::HashMap;
use std::sync::Arc;

use crate::check;
use crate::document::model::{Failures, Graph};

#[derive(Debug)]
pub(super) struct Facts {
    pub(super) nodes: HashMap<Arc<str>, NodeFacts>,
}

#[derive(Debug)]
pub(super) struct NodeFacts {
    /// Whether a step takes its failures, and leaves its result.
    pub(super) catches: bool,
    /// Whether the failure of an item is one of the node, at once.
    pub(super) item_fails: bool,
    /// Where its branches meet.
    pub(super) join: Option<Arc<str>>,
}

impl Facts {
    pub(super) fn of(graph: &Graph) -> Self {
        let joins = check::joins(graph);
        let nodes = graph.nodes.iter().zip(joins).map(|(node, join)| {
            let facts = NodeFacts {
                catches: node.on_failure.is_some(),
                item_fails: node.for_each.as_ref().is_some_and(|each| each.failures == Failures::FailAll),
                join: join.map(|join| graph.nodes[join].id.value.clone()),
            };
            (node.id.value.clone(), facts)
        });
        Self { nodes: nodes.collect() }
    }
}
