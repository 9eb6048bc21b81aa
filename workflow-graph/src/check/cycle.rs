//! `self-loop`, `unbounded-cycle` (G6): every cycle has a route with `max` or a node with `max_visits`.

use std::collections::HashSet;

use super::Flow;
use super::flow::Edge;
use crate::document::model::{Dialect, Graph};
use crate::problem::Code;
use crate::problem::sink::Problems;

/// Longer cycles are named by their first nodes.
const MOST_NAMED: usize = 8;

/// The change that bounds a cycle, in the words of the format.
fn remedy(graph: &Graph) -> &'static str {
    match graph.dialect {
        Dialect::Native => "add `max:` to a route of a list, or `max_visits:` to a node",
        Dialect::Hive(_) => "add `max_node_visits` to one of its nodes",
        Dialect::Sweny(_) => "add `max_iterations:` to one of its edges",
    }
}

/// `wrong`: routes that are problems already, so that cycles over them follow from these.
pub(super) fn check(graph: &Graph, flow: &Flow, wrong: &HashSet<(usize, usize)>, problems: &mut Problems) {
    let is_bounded = |edge: &Edge| {
        edge.is_bounded
            || wrong.contains(&(edge.from, edge.to))
            || graph.nodes[edge.from].max_visits.is_some()
            || graph.nodes[edge.to].max_visits.is_some()
    };
    let mut is_looped = vec![false; flow.nodes()];
    for edge in flow.edges().iter().filter(|edge| edge.from == edge.to && !is_bounded(edge)) {
        if !std::mem::replace(&mut is_looped[edge.from], true) {
            let message = format!("`{}` leads to itself without a bound", graph.nodes[edge.from].id.value);
            problems.add(Code::SelfLoop, edge.at, message, remedy(graph));
        }
    }
    let follow = |edge: &Edge| edge.from != edge.to && !is_bounded(edge);
    let components = components(flow, follow);
    let mut is_told = vec![false; flow.nodes()];
    for node in 0..flow.nodes() {
        let component = components[node];
        let is_cyclic = flow.from(node).iter().any(|edge| follow(edge) && components[edge.to] == component);
        if !is_cyclic || std::mem::replace(&mut is_told[component], true) {
            continue;
        }
        let cycle = shortest(node, flow, |edge| follow(edge) && components[edge.to] == component);
        let names: Vec<String> = cycle
            .iter()
            .chain([&node])
            .take(MOST_NAMED)
            .map(|node| format!("`{}`", graph.nodes[*node].id.value))
            .collect();
        let more = if cycle.len() >= MOST_NAMED { " → …" } else { "" };
        let message = format!("the cycle {}{more} has no bound", names.join(" → "));
        problems.add(Code::UnboundedCycle, graph.nodes[node].id.at, message, remedy(graph));
    }
}

/// The strongly connected component of each node, by Tarjan's algorithm with a stack of its own.
///
/// Routes between components lead to lower numbers.
pub(super) fn components(flow: &Flow, follow: impl Fn(&Edge) -> bool) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let nodes = flow.nodes();
    let (mut index, mut low, mut component) = (vec![NONE; nodes], vec![0; nodes], vec![NONE; nodes]);
    let (mut pending, mut next_index, mut next_component) = (Vec::new(), 0, 0);
    for root in 0..nodes {
        if index[root] != NONE {
            continue;
        }
        let mut open = vec![(root, 0)];
        while let Some((node, place)) = open.pop() {
            if place == 0 {
                index[node] = next_index;
                low[node] = next_index;
                next_index += 1;
                pending.push(node);
            }
            let edges = flow.from(node);
            let found = (place..edges.len()).find(|place| {
                let edge = &edges[*place];
                if !follow(edge) {
                    return false;
                }
                if index[edge.to] == NONE {
                    return true;
                }
                if component[edge.to] == NONE {
                    low[node] = low[node].min(index[edge.to]);
                }
                false
            });
            if let Some(place) = found {
                open.push((node, place + 1));
                open.push((edges[place].to, 0));
                continue;
            }
            if low[node] == index[node] {
                while let Some(member) = pending.pop() {
                    component[member] = next_component;
                    if member == node {
                        break;
                    }
                }
                next_component += 1;
            }
            if let Some((parent, _)) = open.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
        }
    }
    component
}

/// The nodes of a shortest cycle through `start`, which has one.
fn shortest(start: usize, flow: &Flow, follow: impl Fn(&Edge) -> bool) -> Vec<usize> {
    let mut before = vec![usize::MAX; flow.nodes()];
    let mut open = std::collections::VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        for edge in flow.from(node).iter().filter(|edge| follow(edge)) {
            if edge.to == start {
                let mut cycle = vec![node];
                while let Some(&last) = cycle.last().filter(|last| **last != start) {
                    cycle.push(before[last]);
                }
                cycle.reverse();
                return cycle;
            }
            if before[edge.to] == usize::MAX {
                before[edge.to] = node;
                open.push_back(edge.to);
            }
        }
    }
    vec![start]
}
