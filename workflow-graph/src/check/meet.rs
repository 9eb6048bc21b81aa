//! Where the branches of a parallel node meet: the given node, else the nearest one on every path from every target.

use super::Flow;
use super::dominators;
use super::flow::EdgeKind;
use crate::document::model::{Graph, Next, Node, OnFailure, OnNoMatch, Route, Target};

/// By node, the join of its branches. Absent: its branches never meet, or it has none.
pub(super) fn joins(graph: &Graph, flow: &Flow) -> Vec<Option<usize>> {
    // The nearest common node of the targets is the post-dominator of a point between the parallel node and them.
    let nodes = flow.nodes();
    let (between, exit) = (|node: usize| nodes + node, 2 * nodes);
    let mut backwards = Vec::new();
    for edge in flow.edges() {
        match edge.kind {
            EdgeKind::Route => backwards.push((edge.to, edge.from)),
            EdgeKind::Branch(number) => {
                backwards.push((edge.to, between(edge.from)));
                if number == 0 {
                    backwards.push((between(edge.from), edge.from));
                }
            }
        }
    }
    let lost = flow.unread().guesses.iter().filter(|(from, _)| flow.unread().is_lost[*from]);
    backwards.extend(lost.map(|(from, to)| (*to, *from)));
    for (index, node) in graph.nodes.iter().enumerate() {
        if may_end(graph, node) {
            backwards.push((exit, index));
        }
    }
    let nearest = dominators::immediate(exit, exit + 1, &backwards);
    let found = |node: usize| nearest[between(node)].filter(|join| *join < nodes);
    graph
        .nodes
        .iter()
        .enumerate()
        .map(|(index, node)| match &node.next {
            Next::Parallel(parallel) => match &parallel.join {
                Some(join) => flow.find(graph, &join.value),
                None => found(index),
            },
            _ => None,
        })
        .collect()
}

/// Whether the walk can end behind the node.
pub(super) fn may_end(graph: &Graph, node: &Node) -> bool {
    let ends = |target: &Target| matches!(target, Target::End);
    let any_ends = |routes: &[Route]| routes.iter().any(|route| ends(&route.to));
    let by_next = match &node.next {
        // Routes that could not be read make no end of the walk.
        Next::End => !node.unread.routes,
        Next::Routes(routes) => {
            let is_default = |route: &Route| route.when.is_none() && route.max.is_none();
            let on_no_match = node.on_no_match.or(graph.defaults.on_no_match);
            any_ends(routes) || (on_no_match == Some(OnNoMatch::End) && !routes.iter().any(is_default))
        }
        Next::Decide(decide) => {
            decide.choices.iter().any(|choice| ends(&choice.to)) || ends(&decide.otherwise)
        }
        // That no condition of a SWEny document holds ends a branch, and does not hold up the join of the others.
        Next::Sweny(_) | Next::To(_) | Next::Parallel(_) => false,
    };
    by_next || matches!(&node.on_failure, Some(OnFailure::Routes(routes)) if any_ends(routes))
}
