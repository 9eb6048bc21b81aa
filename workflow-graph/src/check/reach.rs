//! `unreachable-node`: some route leads to every node.

use super::Flow;
use crate::document::model::Graph;
use crate::problem::Code;
use crate::problem::sink::Problems;

pub(super) fn check(graph: &Graph, flow: &Flow, problems: &mut Problems) {
    let Some(start) = graph.start() else { return };
    let mut is_reached = vec![false; flow.nodes()];
    is_reached[start] = true;
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        for edge in flow.from(node) {
            if !std::mem::replace(&mut is_reached[edge.to], true) {
                open.push(edge.to);
            }
        }
    }
    // Of nodes that lead to each other, the first is the one to mend; those behind it follow.
    let mut is_explained = vec![false; flow.nodes()];
    let mut is_target = vec![false; flow.nodes()];
    for edge in flow.edges().iter().filter(|edge| !is_reached[edge.from] && edge.from != edge.to) {
        is_target[edge.to] = true;
    }
    let unreached: Vec<usize> = (0..flow.nodes()).filter(|node| !is_reached[*node]).collect();
    let roots = unreached.iter().filter(|node| !is_target[**node]).chain(&unreached);
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
        let node = &graph.nodes[root];
        let start = &graph.nodes[start].id.value;
        let message = format!("no route from `{start}`, where runs start, leads to `{}`", node.id.value);
        problems.add(Code::UnreachableNode, node.id.at, message, "lead a route to it, or remove it");
    }
}
