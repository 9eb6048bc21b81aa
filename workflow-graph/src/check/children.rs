//! `unknown-graph`, and the input of children: nodes that run graphs of the same file. A registry may have further graphs, so
//! only a name that is near to one of the file is a problem.

use std::collections::{BTreeMap, BTreeSet};

use super::Outputs;
use super::given::{self, Taker};
use super::typing::Typing;
use crate::document::Source;
use crate::document::model::{Graph, Name, Node, Work};
use crate::problem::sink::Problems;
use crate::problem::{Code, Severity};

pub(super) fn check(graphs: &[Graph], source: Source<'_>, is_whole: bool, problems: &mut Problems) {
    let known: BTreeMap<&str, &Graph> = graphs
        .iter()
        .rev()
        .map(|graph| (&*graph.name.value, graph))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    let runs = |node: &'_ Node| match &node.work {
        Work::Graph(name) => Some(name.value.clone()),
        _ => None,
    };
    let named: BTreeSet<_> = graphs.iter().flat_map(|graph| &graph.nodes).filter_map(runs).collect();
    for graph in graphs {
        let outputs = Outputs::new();
        let typing = Typing::new(graph, &outputs);
        for node in &graph.nodes {
            let Work::Graph(name) = &node.work else { continue };
            match known.get(&*name.value) {
                Some(child) => {
                    if let Some(schema) = &child.input {
                        let (schema, has_defaults) = (&*schema.value, true);
                        let taker = Taker { kind: "graph", name, schema, has_defaults };
                        given::check(node, &typing, taker, source, problems);
                    }
                }
                // Behind an error of syntax the file may have it, and so may a document whose name is wrong.
                None if is_whole && graphs.iter().all(|graph| !graph.name.value.is_empty()) => {
                    unknown(node, name, graphs, |graph| named.contains(graph), problems);
                }
                None => {}
            }
        }
    }
}

/// The first graph of a file is the one that is run; the others are children.
fn unknown(
    node: &Node,
    name: &Name,
    graphs: &[Graph],
    is_named: impl Fn(&str) -> bool,
    problems: &mut Problems,
) {
    let children = graphs.iter().skip(1).map(|graph| &*graph.name.value);
    let similar = problems.similar(&name.value, children);
    let Some(nearest) = similar.first() else { return };
    // That no node names the graph that is near leaves no doubt.
    let severity = if is_named(nearest) { Severity::Warning } else { Severity::Error };
    let id = &node.id.value;
    let message = format!("`{id}` runs `{}`, and the file has no such graph", name.value);
    problems.add_meant(Code::UnknownGraph, severity, name.at, message, similar);
}
