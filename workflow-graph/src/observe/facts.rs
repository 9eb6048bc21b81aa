//! The little of a graph that observers need, so that they do not keep the document.

use std::collections::HashMap;
use std::sync::Arc;

use crate::check;
use crate::document::model::{Failures, Graph, Next, Node, Work};

#[derive(Debug)]
pub(super) struct Facts {
    pub(super) nodes: HashMap<Arc<str>, NodeFacts>,
}

#[derive(Debug)]
pub(super) struct NodeFacts {
    /// Whether a step takes its failures, and leaves its result.
    pub(super) catches: bool,
    pub(super) at_once: AtOnce,
    /// Whether people answer once it has left its result.
    pub(super) pauses: bool,
    /// Where its branches meet.
    pub(super) join: Option<Arc<str>>,
    pub(super) instruction: Instruction,
}

/// The failures that are failures of the node at once.
#[derive(Debug)]
pub(super) struct AtOnce {
    /// Those of items.
    pub(super) items: bool,
    /// Those of branches that it opened.
    pub(super) branches: bool,
}

/// The instruction of an agent node.
#[derive(Debug)]
pub(super) enum Instruction {
    /// There is none, or each item has its own.
    None,
    Fixed(Arc<str>),
    /// Each visit makes it, and shows it before the agent runs.
    Shown,
}

impl Instruction {
    fn of(node: &Node) -> Self {
        let Work::Agent(agent) = &node.work else { return Self::None };
        match agent.instruction.fixed_text() {
            Some(text) => Self::Fixed(text.into()),
            None if node.for_each.is_some() => Self::None,
            None => Self::Shown,
        }
    }
}

impl Facts {
    pub(super) fn of(graph: &Graph) -> Self {
        let joins = check::joins(graph);
        let nodes = graph.nodes.iter().zip(joins).map(|(node, join)| {
            let facts = NodeFacts {
                catches: node.on_failure.is_some(),
                at_once: AtOnce {
                    items: node.for_each.as_ref().is_some_and(|each| each.failures == Failures::FailAll),
                    branches: matches!(&node.next, Next::Parallel(parallel) if parallel.failures == Failures::FailAll),
                },
                pauses: node.hive().is_some_and(|hive| hive.is_pause),
                instruction: Instruction::of(node),
                join: join.map(|join| graph.nodes[join].id.value.clone()),
            };
            (node.id.value.clone(), facts)
        });
        Self { nodes: nodes.collect() }
    }
}
