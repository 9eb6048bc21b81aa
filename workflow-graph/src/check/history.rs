//! The nodes that run before a node: surely, perhaps, or never. This module reads no expressions.
//!
//! A node is two points: it began, and it succeeded. A result is surely there at a node if every path to it passes the
//! success of what made it (dominators), or if an unconditional branch that surely made it met the others before.

use super::cycle;
use super::dominators;
use super::flow::EdgeKind;
use super::region::Regions;
use super::{Flow, meet};
use crate::document::model::{Failures, Graph, Next, OnFailure, Otherwise};

/// Answers what has run before a point of a graph.
#[derive(Debug)]
pub(super) struct History<'a> {
    graph: &'a Graph,
    regions: &'a Regions,
    order: Order,
    /// By scope: the last point on every way out of the branch.
    arrival: Vec<Option<usize>>,
    /// The last point on every way to the end of the walk.
    end: Option<usize>,
    components: Vec<usize>,
    is_cyclic: Vec<bool>,
    /// By component, the components behind it.
    behind: Vec<Vec<u64>>,
    /// By node: whether a route of `on_failure`, another route, or the branches of a parallel node lead to it.
    is_caught_into: Vec<bool>,
    is_led_into: Vec<bool>,
    is_join: Vec<bool>,
}

/// Where a node begins.
pub(super) fn begun(node: usize) -> usize {
    2 * node
}

/// Where a node has succeeded.
fn succeeded(node: usize) -> usize {
    2 * node + 1
}

impl<'a> History<'a> {
    pub(super) fn of(graph: &'a Graph, flow: &Flow, regions: &'a Regions, start: usize) -> Self {
        let nodes = flow.nodes();
        let mut edges = Vec::new();
        let mut leaves = vec![Vec::new(); regions.scopes.len()];
        let mut ends = Vec::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            edges.push((begun(index), succeeded(index)));
            if goes_on_without_success(graph, index) {
                // Routes of `next` are taken without a result, too.
                edges.push((begun(index), exit(index, nodes)));
                edges.push((succeeded(index), exit(index, nodes)));
            }
            if meet::may_end(graph, node) {
                ends.push(leaving(graph, index, nodes));
                if let Some(mut scope) = regions.scope_of[index] {
                    leaves[scope].push(leaving(graph, index, nodes));
                    // Branches that never meet end the branch in which they are.
                    while let Some(branch) = regions.scopes[scope].branch {
                        if regions.joins[branch.node].is_some() {
                            break;
                        }
                        scope = branch.parent;
                        leaves[scope].push(leaving(graph, index, nodes));
                    }
                }
            }
            for edge in flow.from(index) {
                let from = if edge.is_caught { begun(index) } else { leaving(graph, index, nodes) };
                edges.push((from, begun(edge.to)));
                let is_route = edge.kind == EdgeKind::Route;
                if let (Some(mut scope), true) = (regions.scope_of[index], is_route) {
                    // At most 64 deep.
                    while let Some(branch) = regions.scopes[scope].branch {
                        if regions.joins[branch.node] != Some(edge.to) {
                            break;
                        }
                        leaves[scope].push(from);
                        scope = branch.parent;
                    }
                }
            }
        }
        let points = 3 * nodes;
        let order = Order::of(begun(start), points, &edges);
        let last = |points: &[usize]| order.last_common(points);
        let (arrival, end) = (leaves.iter().map(|points| last(points)).collect(), last(&ends));
        let components = cycle::components(flow, |_| true);
        let (is_cyclic, behind) = behind(flow, &components);
        let mut history = Self {
            graph,
            regions,
            order,
            arrival,
            end,
            components,
            is_cyclic,
            behind,
            is_caught_into: vec![false; nodes],
            is_led_into: vec![false; nodes],
            is_join: vec![false; nodes],
        };
        for edge in flow.edges() {
            let led = if edge.is_caught { &mut history.is_caught_into } else { &mut history.is_led_into };
            led[edge.to] = true;
        }
        regions.joins.iter().flatten().for_each(|join| history.is_join[*join] = true);
        history
    }

    /// Whether any path leads to `node`.
    pub(super) fn is_reached(&self, node: usize) -> bool {
        self.order.is_reached(begun(node))
    }

    /// Whether `first` can have run when `node` begins.
    pub(super) fn is_possible(&self, first: usize, node: usize) -> bool {
        let (first, node) = (self.components[first], self.components[node]);
        if first == node {
            self.is_cyclic[first]
        } else {
            self.behind[first][node / 64] >> (node % 64) & 1 == 1
        }
    }

    /// Whether `first` has succeeded, or at least begun, whenever the walk is at `point`.
    pub(super) fn is_sure(&self, first: usize, is_success: bool, point: usize) -> bool {
        let at = if is_success { succeeded(first) } else { begun(first) };
        let (mut at, mut scope) = (at, self.regions.scope_of[first]);
        loop {
            if self.order.dominates(at, point) {
                return true;
            }
            let Some(inside) = scope else { return false };
            let Some(branch) = self.regions.scopes[inside].branch else { return false };
            let Next::Parallel(parallel) = &self.graph.nodes[branch.node].next else { return false };
            let is_always = parallel.branches[branch.number].when.is_none();
            let (Some(join), Some(arrival)) = (self.regions.joins[branch.node], self.arrival[inside]) else {
                return false;
            };
            if !is_always || parallel.failures != Failures::FailAll || !self.order.dominates(at, arrival) {
                return false;
            }
            at = begun(join);
            scope = Some(branch.parent);
        }
    }

    /// Whether a failure leads to `node`.
    pub(super) fn is_caught_into(&self, node: usize) -> bool {
        self.is_caught_into[node]
    }

    /// Whether something else than a failure leads to `node`.
    pub(super) fn is_led_into(&self, node: usize) -> bool {
        self.is_led_into[node]
    }

    /// Whether branches meet at `node`.
    pub(super) fn is_join(&self, node: usize) -> bool {
        self.is_join[node]
    }

    /// The same when the walk ends.
    pub(super) fn is_sure_at_end(&self, first: usize, is_success: bool) -> bool {
        self.end.is_some_and(|end| self.is_sure(first, is_success, end))
    }

    /// The point from which the routes of `next` leave a node.
    pub(super) fn leaving(&self, node: usize) -> usize {
        leaving(self.graph, node, self.regions.scope_of.len())
    }
}

/// The point from which the routes of `next` leave.
fn leaving(graph: &Graph, node: usize, nodes: usize) -> usize {
    if goes_on_without_success(graph, node) { exit(node, nodes) } else { succeeded(node) }
}

/// A third point, for nodes whose `next` is taken with and without success.
fn exit(node: usize, nodes: usize) -> usize {
    2 * nodes + node
}

fn goes_on_without_success(graph: &Graph, node: usize) -> bool {
    let node = &graph.nodes[node];
    matches!(node.on_failure, Some(OnFailure::Continue))
        || node.requires.as_ref().is_some_and(|requires| requires.otherwise == Otherwise::Skip)
}

/// Which components have a cycle, and which components are behind each.
fn behind(flow: &Flow, components: &[usize]) -> (Vec<bool>, Vec<Vec<u64>>) {
    let count = components.iter().max().map_or(0, |most| most + 1);
    let mut members = vec![Vec::new(); count];
    for (node, component) in components.iter().enumerate() {
        members[*component].push(node);
    }
    let mut is_cyclic = vec![false; count];
    let mut behind: Vec<Vec<u64>> = Vec::with_capacity(count);
    for (component, nodes) in members.iter().enumerate() {
        let mut bits = vec![0_u64; count.div_ceil(64)];
        for edge in nodes.iter().flat_map(|node| flow.from(*node)) {
            let to = components[edge.to];
            if to == component {
                is_cyclic[component] = true;
            } else {
                // Routes lead to lower numbers, so the components behind `to` are known already.
                bits[to / 64] |= 1 << (to % 64);
                for (word, more) in bits.iter_mut().zip(&behind[to]) {
                    *word |= more;
                }
            }
        }
        behind.push(bits);
    }
    (is_cyclic, behind)
}

/// The tree of dominators, with the interval of each point.
#[derive(Debug)]
struct Order {
    above: Vec<Option<usize>>,
    depth: Vec<usize>,
    enters: Vec<usize>,
    leaves: Vec<usize>,
    root: usize,
}

impl Order {
    fn of(root: usize, points: usize, edges: &[(usize, usize)]) -> Self {
        let above = dominators::immediate(root, points, edges);
        let mut below = vec![Vec::new(); points];
        for (point, above) in above.iter().enumerate() {
            if let Some(above) = above {
                below[*above].push(point);
            }
        }
        let (mut depth, mut enters, mut leaves) = (vec![0; points], vec![0; points], vec![0; points]);
        let (mut clock, mut open) = (1, vec![(root, 0)]);
        enters[root] = clock;
        while let Some((point, place)) = open.pop() {
            clock += 1;
            let Some(&next) = below[point].get(place) else {
                leaves[point] = clock;
                continue;
            };
            open.push((point, place + 1));
            depth[next] = depth[point] + 1;
            enters[next] = clock;
            open.push((next, 0));
        }
        Self { above, depth, enters, leaves, root }
    }

    fn is_reached(&self, point: usize) -> bool {
        point == self.root || self.above[point].is_some()
    }

    fn dominates(&self, first: usize, point: usize) -> bool {
        self.is_reached(first)
            && self.is_reached(point)
            && self.enters[first] <= self.enters[point]
            && self.leaves[point] <= self.leaves[first]
    }

    /// The last point on every path to each of `points`.
    fn last_common(&self, points: &[usize]) -> Option<usize> {
        let mut reached = points.iter().copied().filter(|point| self.is_reached(*point));
        let mut common = reached.next()?;
        for mut point in reached {
            while common != point {
                if self.depth[common] >= self.depth[point] {
                    common = self.above[common]?;
                } else {
                    point = self.above[point]?;
                }
            }
        }
        Some(common)
    }
}
