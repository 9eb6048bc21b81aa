//! `edges`: the ways between nodes. Whether they lead to nodes that exist is checked with the rest of the graph.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::document::model::sweny::{SwenyEdge, SwenyEdges};
use crate::document::model::{Branch, Failures, Graph, Name, Next, Parallel};
use crate::document::native::Reading;
use crate::document::native::fields::Fields;
use crate::document::native::next::MOST_PARALLEL;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;

pub(super) fn read(fields: &Fields<'_>, is_parallel: bool, graph: &mut Graph, reading: &mut Reading<'_>) {
    let Some(tree) = fields.required("edges", reading) else {
        graph.unread.nodes = true;
        return;
    };
    graph.unread.nodes |= !matches!(tree.kind, Kind::List(_));
    let mut leaving: BTreeMap<usize, Vec<SwenyEdge>> = BTreeMap::new();
    for item in reading.list(tree, "edges") {
        let (from, edge) = edge(item, reading);
        let Some(from) = from else {
            graph.unread.led.extend(edge.map(|edge| edge.to.value));
            continue;
        };
        let Some(edge) = edge else {
            if let Some(from) = graph.find(&from.value) {
                graph.nodes[from].unread.routes(item);
            }
            continue;
        };
        match graph.find(&from.value) {
            Some(from) => leaving.entry(from).or_default().push(edge),
            None if graph.nodes.is_empty() => {}
            None => {
                let message = format!("an edge leaves `{}`, and the document has no such node", from.value);
                let known = graph.nodes.iter().map(|node| &*node.id.value);
                let otherwise = || "add the node, or name another".to_owned();
                let similar = reading.problems.add_unknown(
                    Code::UnknownNode,
                    from.at,
                    message,
                    &from.value,
                    known,
                    otherwise,
                );
                if let Some(near) = similar.first().and_then(|near| graph.find(near)) {
                    graph.nodes[near].unread.routes(item);
                }
                graph.unread.led.insert(edge.to.value);
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

/// The source, and the edge, as far as they can be read.
fn edge(tree: &Tree, reading: &mut Reading<'_>) -> (Option<Name>, Option<SwenyEdge>) {
    let keys = ["from", "to", "when", "max_iterations"];
    let Some(fields) = Fields::new(tree, "an edge", &keys, reading) else { return (None, None) };
    reading.routes += 1;
    let from = fields.required("from", reading).and_then(|tree| reading.name(tree, "from"));
    let to = fields.required("to", reading).and_then(|tree| reading.name(tree, "to"));
    // A condition that is wrong is one, and so is a bound: consequences of edges without are not reported as well.
    let when = fields
        .get("when")
        .map(|tree| reading.text(tree, "when").map_or("…".into(), |text| text.value.clone()));
    let when: Option<Arc<str>> = when.or_else(|| fields.is_meant("when").then(|| "…".into()));
    let when = when.filter(|when| !when.trim().is_empty());
    let max = fields.get("max_iterations");
    let max = max.map(|tree| reading.number(tree, "max_iterations", (1, u32::MAX)).unwrap_or(1));
    let max = max.or_else(|| fields.is_meant("max_iterations").then_some(1));
    (from, to.map(|to| SwenyEdge { at: tree.at, to, when, max }))
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
