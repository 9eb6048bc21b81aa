//! The routes of a graph as pairs of numbers. This module judges nothing.

use std::ops::Range;

use super::unknown::Unknown;
use crate::document::model::{Graph, Name, Next, OnFailure, Route, Target};
use crate::problem::sink::At;

/// Routes of a graph, in the order of their nodes.
#[derive(Debug)]
pub(super) struct Flow {
    edges: Vec<Edge>,
    /// Where the edges of each node are.
    ranges: Vec<Range<usize>>,
    start: Option<usize>,
    unread: Unknown,
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
    /// Whether the document names no node, and this one is meant.
    pub(super) is_near: bool,
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
        let mut unread = Unknown::of(graph);
        let (mut edges, mut ranges) = (Vec::new(), Vec::with_capacity(graph.nodes.len()));
        for (from, node) in graph.nodes.iter().enumerate() {
            let first = edges.len();
            let mut add = |name: &Name, kind, is_bounded, is_caught| match unread.find(graph, &name.value) {
                // No name of another node means the node itself.
                Some(to) if to == from && graph.find(&name.value).is_none() => unread.is_lost[from] = true,
                Some(to) => {
                    let is_near = graph.find(&name.value).is_none();
                    edges.push(Edge { from, to, at: name.at, kind, is_bounded, is_caught, is_near });
                }
                None => unread.is_lost[from] = true,
            };
            each_target(&node.next, node.on_failure.as_ref(), &mut add);
            if let Next::Parallel(parallel) = &node.next
                && let Some(join) = &parallel.join
            {
                unread.is_lost[from] |= unread.find(graph, &join.value).is_none();
            }
            ranges.push(first..edges.len());
        }
        let mut flow = Self { edges, ranges, start: None, unread };
        flow.start = flow.first(graph);
        flow
    }

    /// Where runs start, as far as it is known.
    fn first(&mut self, graph: &Graph) -> Option<usize> {
        let Some(start) = &graph.start else { return graph.start() };
        self.unread.find(graph, &start.value).or_else(|| {
            // The only node to which nothing leads.
            let mut is_led = vec![false; self.nodes()];
            self.ways().for_each(|(_, to)| is_led[to] = true);
            let mut first = (0..self.nodes()).filter(|node| !is_led[*node]);
            first.next().filter(|_| first.next().is_none())
        })
    }

    pub(super) fn start(&self) -> Option<usize> {
        self.start
    }

    /// The place of the node `name`, or of the one that is meant.
    pub(super) fn find(&self, graph: &Graph, name: &str) -> Option<usize> {
        graph.find(name).or_else(|| self.unread.near.get(name).copied().flatten())
    }

    /// The gaps in the routes.
    pub(super) fn unread(&self) -> &Unknown {
        &self.unread
    }

    /// All routes, and those that there may be.
    pub(super) fn ways(&self) -> impl Iterator<Item = (usize, usize)> {
        self.edges.iter().map(|edge| (edge.from, edge.to)).chain(self.unread.guesses.iter().copied())
    }

    /// The nodes that ways from these lead to, themselves included.
    pub(super) fn reached(&self, from: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut guesses = vec![Vec::new(); self.nodes()];
        self.unread.guesses.iter().for_each(|&(from, to)| guesses[from].push(to));
        let (mut is_reached, mut open) = (vec![false; self.nodes()], Vec::from_iter(from));
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut is_reached[node], true) {
                open.extend(self.from(node).iter().map(|edge| edge.to).chain(guesses[node].iter().copied()));
            }
        }
        is_reached
    }

    /// The same with more edges, each from a node to a node, of which nothing else is known.
    pub(super) fn with(&self, more: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut of_node = vec![Vec::new(); self.nodes()];
        for (from, to) in more {
            let (at, kind) = (At::default(), EdgeKind::Route);
            let (is_bounded, is_caught, is_near) = (false, false, false);
            of_node[from].push(Edge { from, to, at, kind, is_bounded, is_caught, is_near });
        }
        let unread = Unknown::default();
        let mut flow = Self { edges: Vec::new(), ranges: Vec::new(), start: self.start, unread };
        for (node, more) in of_node.iter().enumerate() {
            let first = flow.edges.len();
            flow.edges.extend(self.from(node).iter().chain(more));
            flow.ranges.push(first..flow.edges.len());
        }
        flow
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
