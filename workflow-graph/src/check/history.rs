//! The nodes that run before a node: surely, perhaps, or never. This module reads no expressions.
//!
//! A result is surely there at a point if every way to it passes the success of the node that made it (dominators), or if an
//! unconditional branch that surely made it has settled before. `ways` has the points and the ways.

use super::Flow;
use super::cycle;
use super::dominators;
use super::region::Regions;
use super::ways::{self, Ways, begun, succeeded};
use crate::document::model::{Graph, OnFailure};

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
    /// Whether ways lead to a node, those that there may be among them.
    may_be_reached: Vec<bool>,
    /// Nodes with routes that are not known, and of which nothing tells where they lead.
    open: Vec<usize>,
    /// Parallel nodes whose branches have a problem.
    doubtful: Vec<usize>,
}

fn continues(graph: &Graph, node: usize) -> bool {
    matches!(graph.nodes[node].on_failure, Some(OnFailure::Continue))
}

impl<'a> History<'a> {
    pub(super) fn of(graph: &'a Graph, flow: &Flow, regions: &'a Regions, start: usize) -> Self {
        let nodes = flow.nodes();
        let found = Ways::of(graph, flow, regions);
        let order = Order::of(begun(start), ways::points(nodes), &found.edges);
        let last = |points: &[usize]| order.last_common(points);
        let (arrival, end) = (found.leaves.iter().map(|points| last(points)).collect(), last(&found.ends));
        // A node at which a branch ended has its result at the join, to which no route leads.
        let more = found.to_joins.iter().chain(&flow.unread().guesses);
        let flow_to_joins = flow.with(more.copied());
        let components = cycle::components(&flow_to_joins, |_| true);
        let (is_cyclic, behind) = behind(&flow_to_joins, &components);
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
            may_be_reached: flow_to_joins.reached([start]),
            open: Vec::new(),
            doubtful: (0..nodes).filter(|node| regions.is_doubtful[*node]).collect(),
        };
        let unread = flow.unread();
        history.open = (0..nodes)
            .filter(|node| unread.is_lost[*node] && !unread.guesses.iter().any(|(from, _)| from == node))
            .collect();
        for edge in flow.edges() {
            let led = if edge.is_caught { &mut history.is_caught_into } else { &mut history.is_led_into };
            led[edge.to] = true;
            // A node that continues after its failure takes the same routes.
            if continues(graph, edge.from) {
                history.is_caught_into[edge.to] = true;
            }
        }
        for (opener, join) in regions.joins.iter().enumerate() {
            if let Some(join) = join
                && continues(graph, opener)
            {
                history.is_caught_into[*join] = true;
            }
        }
        regions.joins.iter().flatten().for_each(|join| history.is_join[*join] = true);
        history
    }

    /// Whether a way leads to `node` that may be there.
    pub(super) fn may_be_reached(&self, node: usize) -> bool {
        self.may_be_reached[node]
    }

    /// Whether nothing is known of the order of two nodes, since branches that hold both have a problem.
    pub(super) fn is_doubtful(&self, first: usize, node: usize) -> bool {
        let mut doubtful = self.doubtful.iter();
        doubtful.any(|parallel| self.is_possible(*parallel, first) && self.is_possible(*parallel, node))
    }

    /// The parallel node in whose branches two nodes run, each in one of its own, and where these meet.
    pub(super) fn beside(&self, first: usize, node: usize) -> Option<(usize, Option<usize>)> {
        let branches = |node: usize| {
            let scope = self.regions.scope_of[node];
            let up = |scope: &usize| self.regions.scopes[*scope].branch.map(|branch| branch.parent);
            std::iter::successors(scope, up).filter_map(|scope| self.regions.scopes[scope].branch)
        };
        branches(first).find_map(|one| {
            let other = branches(node).find(|other| other.node == one.node)?;
            (other.number != one.number).then(|| (one.node, self.regions.joins[one.node]))
        })
    }

    /// Whether `first` may have run before any node, since nobody knows where a route behind it leads.
    pub(super) fn is_open(&self, first: usize) -> bool {
        self.open.iter().any(|open| *open == first || self.is_possible(first, *open))
    }

    /// Whether branches may meet at `node` of which that is not known.
    pub(super) fn may_be_join(&self, node: usize) -> bool {
        self.is_doubtful(node, node)
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
            let Some(arrival) = self.arrival[inside] else { return false };
            let is_always = ways::is_always_opened(self.graph, branch)
                && ways::needs_every_branch(self.graph, branch.node);
            if !is_always || !self.order.dominates(at, arrival) {
                return false;
            }
            at = ways::settled(branch.node, self.graph.nodes.len());
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
        ways::leaving(self.graph, node)
    }
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
