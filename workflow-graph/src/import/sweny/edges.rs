//! `edges`: the ways between nodes. Whether they lead to nodes that exist is checked with the rest of the graph.

use std::collections::{BTreeMap, HashSet};

use crate::document::model::sweny::{SwenyEdge, SwenyEdges};
use crate::document::model::{Branch, Failures, Graph, Name, Next, Parallel};
use crate::document::native::Reading;
use crate::document::native::fields::Fields;
use crate::document::native::next::MOST_PARALLEL;
use crate::document::tree::Tree;
use crate::problem::Code;

pub(super) fn read(fields: &Fields<'_>, is_parallel: bool, graph: &mut Graph, reading: &mut Reading<'_>) {
    graph.is_incomplete |= fields.get("edges").is_none();
    let Some(tree) = fields.required("edges", reading) else { return };
    let mut leaving: BTreeMap<usize, Vec<SwenyEdge>> = BTreeMap::new();
    for item in reading.list(tree, "edges") {
        let Some((from, edge)) = edge(item, reading) else {
            reading.is_incomplete = true;
            continue;
        };
        match graph.find(&from.value) {
            Some(from) => leaving.entry(from).or_default().push(edge),
            None if graph.nodes.is_empty() => {}
            None => {
                graph.is_incomplete = true;
                let message = format!("an edge leaves `{}`, and the document has no such node", from.value);
                let known = graph.nodes.iter().map(|node| &*node.id.value);
                let otherwise = || "add the node, or name another".to_owned();
                reading.problems.add_unknown(
                    Code::UnknownNode,
                    from.at,
                    message,
                    &from.value,
                    known,
                    otherwise,
                );
            }
        }
    }
    for (node, edges) in leaving {
        let id = graph.nodes[node].id.value.clone();
        let opens = is_parallel && edges.len() > 1 && edges.iter().all(|edge| edge.when.is_none());
        graph.nodes[node].next =
            if opens { parallel(&id, &edges, reading) } else { walked(&id, edges, reading) };
    }
}

fn edge(tree: &Tree, reading: &mut Reading<'_>) -> Option<(Name, SwenyEdge)> {
    let fields = Fields::new(tree, "an edge", &["from", "to", "when", "max_iterations"], reading)?;
    reading.is_incomplete |= fields.has_unknown();
    reading.routes += 1;
    let from = fields.required("from", reading).and_then(|tree| reading.name(tree, "from"));
    let to = fields.required("to", reading).and_then(|tree| reading.name(tree, "to"));
    let when = fields.text("when", reading).filter(|when| !when.trim().is_empty());
    // A bound that is wrong is one: cycles over the edge are not reported as well.
    let max = fields.get("max_iterations");
    let max = max.map(|tree| reading.number(tree, "max_iterations", (1, u32::MAX)).unwrap_or(1));
    Some((from?, SwenyEdge { at: tree.at, to: to?, when, max }))
}

/// Edges of which one is followed.
fn walked(id: &str, edges: Vec<SwenyEdge>, reading: &mut Reading<'_>) -> Next {
    let mut defaults = edges.iter().filter(|edge| edge.when.is_none());
    if let Some(first) = defaults.next() {
        for other in defaults {
            let message = format!(
                "two edges without `when` leave `{id}`, the first in line {}, and a walk follows one of them",
                first.at.line
            );
            let remedy = "add `when:` to all but one, or import the document with `SwenyOptions::parallel`";
            reading.problems.add(Code::AmbiguousRoutes, other.at, message, remedy);
        }
    }
    Next::Sweny(Box::new(SwenyEdges { edges }))
}

/// Edges that open a branch each.
fn parallel(id: &str, edges: &[SwenyEdge], reading: &mut Reading<'_>) -> Next {
    let at = edges[0].at;
    if edges.len() > MOST_PARALLEL {
        let message = format!("`{id}` has {} branches, and at most {MOST_PARALLEL} are allowed", edges.len());
        reading.problems.add(Code::TooLarge, at, message, "split the node");
    }
    let mut known = HashSet::new();
    for edge in edges {
        if edge.max.is_some() {
            let message =
                format!("the edge from `{id}` to `{}` opens a branch, and has a bound", edge.to.value);
            reading.problems.add(Code::Unsupported, edge.at, message, "bound an edge behind the branches");
        }
        if !known.insert(&edge.to.value) {
            let message = format!("two branches of `{id}` begin with `{}`", edge.to.value);
            reading.problems.add(Code::AmbiguousRoutes, edge.at, message, "remove one of the edges");
        }
    }
    let branches = edges.iter().map(|edge| Branch { to: edge.to.clone(), when: None }).collect();
    let failures = Failures::WaitAll;
    Next::Parallel(Box::new(Parallel {
        at,
        branches,
        join: None,
        failures,
        conflicts: None,
        concurrency: None,
    }))
}
