//! The routes of a graph as pairs of numbers. This module judges nothing.

use std::ops::Range;

use crate::document::model::{Graph, Name, Next, OnFailure, Route, Target};
use crate::problem::sink::At;

/// Routes of a graph, in the order of their nodes.
#[derive(Debug)]
pub(super) struct Flow {
    edges: Vec<Edge>,
    /// Where the edges of each node are.
    ranges: Vec<Range<usize>>,
    is_complete: bool,
}

/// One route between two nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) at: At,
    pub(super) kind: EdgeKind,
    pub(super) is_bounded: bool,
    /// Whether it is one of `on_failure`.
    pub(super) is_caught: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeKind {
    /// A route of `next` or `on_failure`.
    Route,
    /// The branch of this number.
    Branch(usize),
}

impl Flow {
    pub(super) fn of(graph: &Graph) -> Self {
        let mut flow = Self { edges: Vec::new(), ranges: Vec::new(), is_complete: graph.start().is_some() };
        for (from, node) in graph.nodes.iter().enumerate() {
            let first = flow.edges.len();
            let mut add = |name: &Name, kind, is_bounded, is_caught| match graph.find(&name.value) {
                Some(to) => flow.edges.push(Edge { from, to, at: name.at, kind, is_bounded, is_caught }),
                None => flow.is_complete = false,
            };
            each_target(&node.next, node.on_failure.as_ref(), &mut add);
            if let Next::Parallel(parallel) = &node.next {
                flow.is_complete &=
                    parallel.join.as_ref().is_none_or(|join| graph.find(&join.value).is_some());
            }
            flow.ranges.push(first..flow.edges.len());
        }
        flow
    }

    /// The same with more edges, each from a node to a node, of which nothing else is known.
    pub(super) fn with(&self, more: &[(usize, usize)]) -> Self {
        let mut of_node = vec![Vec::new(); self.nodes()];
        for &(from, to) in more {
            let (at, kind) = (At::default(), EdgeKind::Route);
            of_node[from].push(Edge { from, to, at, kind, is_bounded: false, is_caught: false });
        }
        let mut flow = Self { edges: Vec::new(), ranges: Vec::new(), is_complete: self.is_complete };
        for (node, more) in of_node.iter().enumerate() {
            let first = flow.edges.len();
            flow.edges.extend(self.from(node).iter().chain(more));
            flow.ranges.push(first..flow.edges.len());
        }
        flow
    }

    /// Whether every route, the start and every join lead to nodes that exist.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(super) fn edges(&self) -> &[Edge] {
        &self.edges
    }

    pub(super) fn from(&self, node: usize) -> &[Edge] {
        &self.edges[self.ranges[node].clone()]
    }

    pub(super) fn nodes(&self) -> usize {
        self.ranges.len()
    }
}

fn each_target(
    next: &Next,
    on_failure: Option<&OnFailure>,
    add: &mut impl FnMut(&Name, EdgeKind, bool, bool),
) {
    match next {
        Next::End => {}
        Next::To(name) => add(name, EdgeKind::Route, false, false),
        Next::Routes(list) => {
            targets(list).for_each(|(name, is_bounded)| add(name, EdgeKind::Route, is_bounded, false));
        }
        Next::Parallel(parallel) => {
            for (index, branch) in parallel.branches.iter().enumerate() {
                add(&branch.to, EdgeKind::Branch(index), false, false);
            }
        }
        Next::Sweny(sweny) => {
            sweny.edges.iter().for_each(|edge| add(&edge.to, EdgeKind::Route, edge.max.is_some(), false));
        }
        Next::Decide(decide) => {
            for target in decide.choices.iter().map(|choice| &choice.to).chain([&decide.otherwise]) {
                if let Target::Node(name) = target {
                    add(name, EdgeKind::Route, false, false);
                }
            }
        }
    }
    match on_failure {
        Some(OnFailure::To(name)) => add(name, EdgeKind::Route, false, true),
        Some(OnFailure::Routes(list)) => {
            targets(list).for_each(|(name, is_bounded)| add(name, EdgeKind::Route, is_bounded, true));
        }
        Some(OnFailure::Continue) | None => {}
    }
}

/// The nodes of a list of routes, and whether the routes are bounded.
fn targets(routes: &[Route]) -> impl Iterator<Item = (&Name, bool)> {
    routes.iter().filter_map(|route| match &route.to {
        Target::Node(name) => Some((name, route.max.is_some())),
        Target::End => None,
    })
}
