//! The ways of a walk as edges between points, for dominators: a node begins, has succeeded, is left, and its branches have
//! settled. This module judges nothing.
//!
//! A branch that ends on its way settles like one that arrives. So the join of a parallel node is reached from the point
//! where its branches have settled, and from no branch alone, unless only one of them can arrive.

use super::flow::{Edge, EdgeKind};
use super::region::{BranchOf, Regions};
use super::{Flow, meet};
use crate::document::model::{Failures, Graph, Next, OnFailure, Otherwise};

/// Edges between points, and the points at which branches and the walk end.
#[derive(Debug)]
pub(super) struct Ways {
    pub(super) edges: Vec<(usize, usize)>,
    /// By scope: where its branch, or the walk, ends or comes to the join.
    pub(super) leaves: Vec<Vec<usize>>,
    /// Where the walk ends.
    pub(super) ends: Vec<usize>,
    /// From nodes at which a branch may end to the join of that branch, where their results are.
    pub(super) to_joins: Vec<(usize, usize)>,
}

/// The ways out of one branch, or of the walk.
#[derive(Debug, Default, Clone)]
struct Out {
    arrivals: Vec<usize>,
    ends: Vec<usize>,
}

/// Where a node begins.
pub(super) fn begun(node: usize) -> usize {
    2 * node
}

/// Where a node has succeeded.
pub(super) fn succeeded(node: usize) -> usize {
    2 * node + 1
}

/// Where the branches of a parallel node have settled.
pub(super) fn settled(node: usize, nodes: usize) -> usize {
    3 * nodes + node
}

/// How many points a graph has.
pub(super) fn points(nodes: usize) -> usize {
    4 * nodes
}

/// The point from which the routes of `next` leave.
pub(super) fn leaving(graph: &Graph, node: usize) -> usize {
    // A third point, for nodes whose `next` is taken with and without success.
    if goes_on_without_success(graph, node) { 2 * graph.nodes.len() + node } else { succeeded(node) }
}

fn goes_on_without_success(graph: &Graph, node: usize) -> bool {
    let node = &graph.nodes[node];
    matches!(node.on_failure, Some(OnFailure::Continue))
        || node.requires.as_ref().is_some_and(|requires| requires.otherwise == Otherwise::Skip)
}

/// Whether the walk goes on behind the branches of a node only if none of them failed.
pub(super) fn needs_every_branch(graph: &Graph, node: usize) -> bool {
    let node = &graph.nodes[node];
    let Next::Parallel(parallel) = &node.next else { return false };
    parallel.failures == Failures::FailAll && !matches!(node.on_failure, Some(OnFailure::Continue))
}

/// Whether a branch is opened whenever its node is left.
pub(super) fn is_always_opened(graph: &Graph, branch: BranchOf) -> bool {
    let Next::Parallel(parallel) = &graph.nodes[branch.node].next else { return false };
    parallel.branches[branch.number].when.is_none()
}

impl Ways {
    pub(super) fn of(graph: &Graph, flow: &Flow, regions: &Regions) -> Self {
        let mut ways = Building {
            graph,
            regions,
            edges: Vec::new(),
            out: vec![Out::default(); regions.scopes.len()],
            to_joins: Vec::new(),
            of_node: vec![Vec::new(); graph.nodes.len()],
        };
        for (scope, of) in regions.scopes.iter().enumerate() {
            if let Some(branch) = of.branch {
                ways.of_node[branch.node].push(scope);
            }
        }
        for node in 0..graph.nodes.len() {
            ways.node(node, flow.from(node));
        }
        // Inner branches have settled before those around them.
        let depth = |node: &usize| regions.scope_of[*node].map_or(0, |scope| regions.scopes[scope].depth);
        let mut parallel: Vec<usize> =
            (0..graph.nodes.len()).filter(|node| !ways.of_node[*node].is_empty()).collect();
        parallel.sort_by_key(|node| std::cmp::Reverse(depth(node)));
        for node in parallel {
            ways.settle(node);
        }
        let ends = ways.out[0].ends.clone();
        let leaves = ways.out.into_iter().map(|out| [out.arrivals, out.ends].concat()).collect();
        Self { edges: ways.edges, leaves, ends, to_joins: ways.to_joins }
    }
}

struct Building<'a> {
    graph: &'a Graph,
    regions: &'a Regions,
    edges: Vec<(usize, usize)>,
    out: Vec<Out>,
    to_joins: Vec<(usize, usize)>,
    /// By parallel node, the scopes of its branches.
    of_node: Vec<Vec<usize>>,
}

impl Building<'_> {
    /// The ways within a node, and its routes.
    fn node(&mut self, node: usize, routes: &[Edge]) {
        let leaving = leaving(self.graph, node);
        self.edges.push((begun(node), succeeded(node)));
        if leaving != succeeded(node) {
            self.edges.extend([(begun(node), leaving), (succeeded(node), leaving)]);
        }
        let Some(scope) = self.regions.scope_of[node] else { return };
        if meet::may_end(self.graph, &self.graph.nodes[node]) {
            self.out[scope].ends.push(leaving);
            self.to_joins.extend(self.join_around(scope).map(|join| (node, join)));
        }
        for edge in routes {
            let from = if edge.is_caught { begun(node) } else { leaving };
            match edge.kind {
                EdgeKind::Route => self.lead(scope, from, edge.to),
                EdgeKind::Branch(number) => {
                    let is_this = |scope: &&usize| {
                        self.regions.scopes[**scope].branch.is_some_and(|branch| branch.number == number)
                    };
                    let opened = self.of_node[node].iter().find(is_this).copied();
                    self.lead(opened.unwrap_or(scope), from, edge.to);
                }
            }
        }
    }

    /// A way to the node `to`, which may be where the branch of the scope meets others.
    fn lead(&mut self, scope: usize, from: usize, to: usize) {
        match self.regions.scopes[scope].branch {
            Some(branch) if self.regions.joins[branch.node] == Some(to) => {
                self.out[scope].arrivals.push(from);
            }
            _ => self.edges.push((from, begun(to))),
        }
    }

    /// The join of the innermost branch that has one.
    fn join_around(&self, mut scope: usize) -> Option<usize> {
        // At most 64 deep.
        while let Some(branch) = self.regions.scopes[scope].branch {
            if let Some(join) = self.regions.joins[branch.node] {
                return Some(join);
            }
            scope = branch.parent;
        }
        None
    }

    /// The ways out of the branches of a parallel node.
    fn settle(&mut self, node: usize) {
        let Some(scope) = self.regions.scope_of[node] else { return };
        let (leaving, settled) = (leaving(self.graph, node), settled(node, self.graph.nodes.len()));
        let join = self.regions.joins[node];
        let branches = &self.of_node[node];
        let mut arriving = branches.iter().filter(|branch| !self.out[**branch].arrivals.is_empty());
        let only = arriving.next().filter(|_| arriving.next().is_none());
        let only = only.filter(|_| join.is_some() && needs_every_branch(self.graph, node));
        let comes_through = |scope: &usize| {
            let branch = self.regions.scopes[*scope].branch;
            branch.is_some_and(|branch| is_always_opened(self.graph, branch))
                && self.out[*scope].ends.is_empty()
        };
        let may_all_end = !branches.iter().any(comes_through);
        match only {
            Some(only) => {
                let arrivals = self.out[*only].arrivals.iter();
                self.edges.extend(arrivals.map(|from| (*from, settled)));
            }
            None => self.edges.push((leaving, settled)),
        }
        // All branches may have ended before the one arrives that leads to the join.
        let ended = if only.is_some() { leaving } else { settled };
        match join {
            Some(join) => {
                self.lead(scope, settled, join);
                if may_all_end {
                    self.out[scope].ends.push(ended);
                }
            }
            None => self.out[scope].ends.push(ended),
        }
    }
}
