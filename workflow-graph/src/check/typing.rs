//! The types of single expressions of a node. It reports nothing.

use super::scope::{Facts, Names, Outputs};
use crate::document::model::{Graph, Node};
use crate::document::template::Expression;
use crate::expression::Type;

/// The types of the names of a graph.
#[derive(Debug)]
pub(crate) struct Typing<'a> {
    graph: &'a Graph,
    facts: Facts<'a>,
}

impl<'a> Typing<'a> {
    pub(crate) fn new(graph: &'a Graph, outputs: &'a Outputs<'a>) -> Self {
        Self { graph, facts: Facts::of(graph).with_outputs(outputs) }
    }

    /// The type of the value of an expression at a node, before the node's work.
    pub(crate) fn of(&self, node: &Node, expression: &Expression) -> Type {
        if expression.is_unread {
            return Type::ANY;
        }
        let names = Names { graph: self.graph, facts: &self.facts, node: Some(node), of_item: false };
        expression.parsed.type_in(&names)
    }
}
