//! The values that the expressions of a node need, so that its steps take exactly these. It checks nothing.

use std::collections::BTreeSet;

use super::scope::{Facts, Meaning, Names};
use super::uses;
use crate::document::model::{Check, Graph, Node, Reads, Rule, Segment, Work};
use crate::document::template::Expression;

/// The values that a node, or the output of a graph, reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needs {
    /// Places of nodes whose results are read.
    pub(crate) nodes: BTreeSet<usize>,
    /// Places of variables.
    pub(crate) vars: BTreeSet<usize>,
    /// All results: of an agent that reads everything, or where the name of a node is computed.
    pub(crate) all: bool,
}

pub(super) fn of_node(graph: &Graph, facts: &Facts<'_>, node: &Node) -> Needs {
    let mut needs = Needs::default();
    let names = Names { graph, facts, node: Some(node), of_item: false };
    for used in uses::of(node) {
        needs.expression(&names, used.expression);
    }
    let checks = node.requires.iter().flat_map(|requires| &requires.all);
    for check in checks.chain(node.ensure.iter().flat_map(|ensure| &ensure.all)) {
        needs.paths(graph, check);
    }
    if let Work::Agent(_) = &node.work {
        match &node.reads {
            Reads::All => needs.all = true,
            Reads::Only(names) => needs.nodes.extend(names.iter().filter_map(|name| graph.find(&name.value))),
        }
    }
    needs
}

pub(super) fn of_output(graph: &Graph, facts: &Facts<'_>) -> Needs {
    let mut needs = Needs::default();
    let mut found = Vec::new();
    graph.output.iter().for_each(|output| output.expressions(&mut found));
    let names = Names { graph, facts, node: None, of_item: false };
    for expression in found {
        needs.expression(&names, expression);
    }
    needs
}

impl Needs {
    fn expression(&mut self, names: &Names<'_>, expression: &Expression) {
        for read in expression.parsed.reads() {
            match names.resolve(&read.root, &read.segments).0 {
                Meaning::Data(node) | Meaning::About(node, _) | Meaning::NoPart(node, _) => {
                    self.nodes.insert(node);
                }
                Meaning::Nodes => self.all = true,
                Meaning::Var(Some(name)) => self.variable(names.graph, name),
                Meaning::Var(None) => self.vars.extend(0..names.graph.vars.len()),
                _ => {}
            }
        }
    }

    fn paths(&mut self, graph: &Graph, check: &Check) {
        let paths = match &check.rule {
            Rule::Required(paths) => paths.as_slice(),
            Rule::Path { path, .. } => std::slice::from_ref(path),
            Rule::Expression(_) | Rule::Called { .. } | Rule::Judge { .. } => &[],
        };
        for path in paths {
            match path.segments.as_slice() {
                [Segment::Key(root), Segment::Key(name), ..] if &**root == "vars" => {
                    self.variable(graph, name);
                }
                [Segment::Key(root), ..] if &**root == "vars" => self.vars.extend(0..graph.vars.len()),
                [Segment::Key(root), Segment::Key(name), ..] if &**root == "nodes" => {
                    self.nodes.extend(graph.find(name));
                }
                [Segment::Key(root), ..] => self.nodes.extend(graph.find(root)),
                _ => {}
            }
        }
    }

    fn variable(&mut self, graph: &Graph, name: &str) {
        self.vars.extend(graph.vars.iter().position(|variable| *variable.name.value == *name));
    }

    /// Both together.
    pub(crate) fn with(mut self, other: &Self) -> Self {
        self.nodes.extend(&other.nodes);
        self.vars.extend(&other.vars);
        self.all |= other.all;
        self
    }
}
