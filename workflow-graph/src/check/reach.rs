//! `unreachable-node`: some route leads to every node.

use super::Flow;
use crate::document::model::{Dialect, Graph};
use crate::problem::Code;
use crate::problem::sink::Problems;

pub(super) fn check(graph: &Graph, flow: &Flow, problems: &mut Problems) {
    let Some(start) = flow.start().filter(|_| !graph.unread.nodes) else { return };
    let led = graph.unread.led.iter().filter_map(|name| graph.find(name));
    let is_reached = flow.reached(led.chain(roots(graph)).chain([start]));
    // Of nodes that lead to each other, the first is the one to mend; those behind it follow.
    let mut is_explained = vec![false; flow.nodes()];
    let mut is_target = vec![false; flow.nodes()];
    for edge in flow.edges().iter().filter(|edge| !is_reached[edge.from] && edge.from != edge.to) {
        is_target[edge.to] = true;
    }
    let unreached: Vec<usize> = (0..flow.nodes()).filter(|node| !is_reached[*node]).collect();
    let roots = unreached.iter().filter(|node| !is_target[**node]).chain(&unreached);
    let (mut first, mut open) = (Vec::new(), Vec::new());
    for &root in roots {
        if std::mem::replace(&mut is_explained[root], true) {
            continue;
        }
        open.push(root);
        while let Some(node) = open.pop() {
            for edge in flow.from(node) {
                if !is_reached[edge.to] && !std::mem::replace(&mut is_explained[edge.to], true) {
                    open.push(edge.to);
                }
            }
        }
        first.push(root);
    }
    // Routes of which nobody knows where they lead may lead to as many nodes.
    let unknown = flow.unread().open.iter().filter(|node| is_reached[**node]).count();
    if first.len() <= unknown {
        return;
    }
    let start = &graph.nodes[start].id.value;
    for root in first {
        let node = &graph.nodes[root];
        let message = format!("no route from `{start}`, where runs start, leads to `{}`", node.id.value);
        let remedy = "lead a route to it, or remove it";
        // Programs begin imported documents at other nodes, too.
        match graph.dialect {
            Dialect::Native => problems.add(Code::UnreachableNode, node.id.at, message, remedy),
            Dialect::Sweny(_) | Dialect::Hive(_) => {
                problems.warn(Code::UnreachableNode, node.id.at, message, remedy);
            }
        }
    }
}

/// Drops the nodes of an imported document that no visit can reach.
pub(crate) fn prune(graph: &mut Graph) {
    if matches!(graph.dialect, Dialect::Native) {
        return;
    }
    let is_reached = Flow::of(graph).reached(graph.start());
    let mut places = is_reached.iter();
    graph.nodes.retain(|_| places.next().is_some_and(|is_reached| *is_reached));
    let ids = graph.nodes.iter().enumerate();
    graph.ids = ids.map(|(place, node)| (node.id.value.clone(), place)).collect();
}

/// The nodes of a Hive document at which a run may begin, or to which something leads that no visit follows.
fn roots(graph: &Graph) -> impl Iterator<Item = usize> {
    graph.hive().into_iter().flat_map(|hive| &hive.roots).filter_map(|name| graph.find(name))
}
