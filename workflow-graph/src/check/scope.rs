//! Meanings of names in expressions, at a node or in the graph's output. This module knows no order of nodes.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde_json::Value;

use super::shape::{self, Found, Shape};
use crate::VisitStatus;
use crate::document::model::{Graph, Node};
use crate::expression::{Segment, Type, Types};

/// The meaning of the begin of a path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meaning<'a> {
    Input,
    /// A variable, by its name; absent if it is computed.
    Var(Option<&'a str>),
    /// The data of a node's latest result.
    Data(usize),
    /// Status, error or visits of a node.
    About(usize, &'a str),
    /// `nodes` with a computed name.
    Nodes,
    Visits,
    Item,
    Index,
    Error,
    Joined,
    /// A node by a name that no node has.
    NoNode(&'a str),
    /// Something of a node that is no part of a result.
    NoPart(usize, &'a str),
    /// A name of the format, but not here.
    NotHere(&'static str),
    Unknown,
}

/// Variables of a graph, for look-ups.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// First values by name.
    pub(super) vars: HashMap<&'a str, &'a Value>,
    /// Names of those that some node sets.
    set: HashSet<&'a str>,
    outputs: Option<&'a Outputs<'a>>,
}

/// Schemas of what nodes return, by their places, where the document states none.
pub(crate) type Outputs<'a> = HashMap<usize, &'a Value>;

impl<'a> Facts<'a> {
    pub(super) fn of(graph: &'a Graph) -> Self {
        let vars = graph.vars.iter().map(|variable| (&*variable.name.value, &variable.first)).collect();
        let set = graph.nodes.iter().flat_map(|node| &node.set).map(|(name, _)| &*name.value).collect();
        Self { vars, set, outputs: None }
    }

    /// The same, where it is known what functions return.
    pub(super) fn with_outputs(self, outputs: &'a Outputs<'a>) -> Self {
        Self { outputs: Some(outputs), ..self }
    }
}

/// Names at a node; in the output where there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) graph: &'a Graph,
    pub(super) facts: &'a Facts<'a>,
    pub(super) node: Option<&'a Node>,
    /// Whether the result of the node is that of one of its items.
    pub(super) of_item: bool,
}

pub(super) const PARTS: [&str; 4] = ["data", "status", "error", "visits"];
/// The statuses of visits.
static STATUSES: LazyLock<[Value; 3]> = LazyLock::new(|| {
    [VisitStatus::Success, VisitStatus::Failed, VisitStatus::Skipped].map(|status| status.to_string().into())
});
const ERROR: [&str; 3] = ["message", "class", "node"];
const JOINED: [&str; 2] = ["failed", "branches"];

impl<'a> Names<'a> {
    /// The meaning of a path's begin, and how many segments belong to it.
    pub(super) fn resolve<'r>(&self, root: &str, segments: &'r [Segment]) -> (Meaning<'r>, usize) {
        let first = match segments.first() {
            Some(Segment::Field(name)) => Some(name.as_str()),
            _ => None,
        };
        let each = self.node.and_then(|node| node.for_each.as_ref());
        if each.is_some_and(|each| *each.item == *root) {
            return (Meaning::Item, 0);
        }
        let meaning = match root {
            "input" => Meaning::Input,
            "vars" => return (Meaning::Var(first), usize::from(first.is_some())),
            "nodes" => return self.node_by_name(first, segments),
            "index" if each.is_some() => Meaning::Index,
            "index" | "item" => Meaning::NotHere("a node with `for_each`"),
            "visits" | "error" | "joined" if self.node.is_none() => Meaning::NotHere("a node"),
            "visits" => Meaning::Visits,
            "error" => Meaning::Error,
            "joined" => Meaning::Joined,
            _ => self.graph.find(root).map_or(Meaning::Unknown, Meaning::Data),
        };
        (meaning, 0)
    }

    fn node_by_name<'r>(&self, name: Option<&'r str>, segments: &'r [Segment]) -> (Meaning<'r>, usize) {
        let Some(name) = name else { return (Meaning::Nodes, 0) };
        let Some(node) = self.graph.find(name) else { return (Meaning::NoNode(name), 1) };
        match segments.get(1) {
            None => (Meaning::About(node, ""), 1),
            Some(Segment::Field(part)) if part == "data" => (Meaning::Data(node), 2),
            Some(Segment::Field(part)) if PARTS.contains(&part.as_str()) => (Meaning::About(node, part), 2),
            Some(Segment::Field(part)) => (Meaning::NoPart(node, part), 2),
            Some(Segment::Index(_)) => (Meaning::Nodes, 0),
        }
    }

    /// The shape of the value at the begin of a path.
    pub(super) fn shape(&self, meaning: Meaning<'_>) -> Shape<'a> {
        match meaning {
            Meaning::Input => shape::of_input(self.graph),
            Meaning::Data(node) => self.data(node),
            Meaning::Var(Some(name)) => self.variable(name),
            Meaning::Visits | Meaning::Index | Meaning::About(_, "visits") => Shape::Of(Type::NUMBER),
            Meaning::About(_, "status") => Shape::Of(Type::TEXT),
            _ => Shape::Any,
        }
    }

    fn data(&self, node: usize) -> Shape<'a> {
        let described = self.facts.outputs.and_then(|outputs| outputs.get(&node));
        let of = &self.graph.nodes[node];
        let is_own = self.node.is_some_and(|own| std::ptr::eq(own, of));
        let shape = if self.of_item && is_own { shape::of_work(of) } else { shape::of_node(of) };
        match (shape, described) {
            (Shape::Any, Some(schema)) => Shape::Schema(schema, schema),
            (shape, _) => shape,
        }
    }

    fn variable(&self, name: &str) -> Shape<'a> {
        match self.facts.vars.get(name) {
            Some(first) if !first.is_null() && !self.facts.set.contains(name) => Shape::Of(Type::of(first)),
            _ => Shape::Any,
        }
    }

    /// The fields of names that have a fixed set of them.
    pub(super) fn fixed_fields(meaning: Meaning<'_>) -> Option<&'static [&'static str]> {
        match meaning {
            Meaning::Error => Some(&ERROR),
            Meaning::Joined => Some(&JOINED),
            _ => None,
        }
    }
}

impl Types for Names<'_> {
    fn type_of(&self, root: &str, segments: &[Segment]) -> Type {
        let (meaning, used) = self.resolve(root, segments);
        let field = match segments.get(used) {
            Some(Segment::Field(name)) => name.as_str(),
            _ => "",
        };
        match (meaning, field, segments.len() - used) {
            (Meaning::Joined, "failed", 1) => return Type::NUMBER,
            (Meaning::Joined, "branches", 1) => return Type::LIST,
            _ => {}
        }
        match self.shape(meaning).follow(&segments[used..]) {
            (Found::Shape(shape), _) => shape.as_type(),
            (Found::Unknown { .. }, _) => Type::ANY,
        }
    }

    fn values_of(&self, root: &str, segments: &[Segment]) -> Option<Vec<&Value>> {
        let (meaning, used) = self.resolve(root, segments);
        match (meaning, self.shape(meaning).follow(&segments[used..])) {
            (Meaning::About(_, "status"), _) if segments.len() == used => Some(STATUSES.iter().collect()),
            (_, (Found::Shape(shape), _)) => shape.values(),
            (_, (Found::Unknown { .. }, _)) => None,
        }
    }
}
