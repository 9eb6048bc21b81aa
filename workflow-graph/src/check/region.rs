//! Branches of parallel nodes (G8): which nodes they hold, and where they meet. `entered-from-outside`,
//! `no-common-join`, `join-not-reached`.
//!
//! One walk from the start gives every node the branch in which it runs: a route keeps the branch, an item of `parallel`
//! opens one, and a route to a join leaves it. A node that would be in two of them is the problem.

use std::collections::{HashSet, VecDeque};

use super::flow::{Edge, EdgeKind};
use super::{Flow, conflict, meet};
use crate::document::model::{Graph, Next};
use crate::problem::Code;
use crate::problem::sink::Problems;

mod report;

/// The deepest nesting of branches.
const MOST_DEPTH: usize = 64;

/// A branch, or the graph as a whole.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    /// Absent for the graph as a whole.
    pub(super) branch: Option<BranchOf>,
    pub(super) depth: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct BranchOf {
    pub(super) parent: usize,
    /// The parallel node.
    pub(super) node: usize,
    /// The number of its branch.
    pub(super) number: usize,
}

/// Which branch each node runs in.
#[derive(Debug)]
pub(super) struct Regions {
    pub(super) scopes: Vec<Scope>,
    /// By node; absent for those that no route reaches.
    pub(super) scope_of: Vec<Option<usize>>,
    /// By node: where the branches of a parallel node meet.
    pub(super) joins: Vec<Option<usize>>,
    /// Parallel nodes whose branches have a problem, or routes that are not known.
    pub(super) is_doubtful: Vec<bool>,
}

/// Routes, from node to node.
pub(super) type Routes = HashSet<(usize, usize)>;

/// The branches of a graph, and routes that are problems. No branches if the nodes are not known, or are nested too deeply.
pub(super) fn check(graph: &Graph, flow: &Flow, problems: &mut Problems) -> (Option<Regions>, Routes) {
    let Some(start) = flow.start().filter(|_| !graph.unread.nodes) else { return Default::default() };
    let nodes = flow.nodes();
    let scopes = vec![Scope { branch: None, depth: 0 }];
    let has_branches = graph.nodes.iter().any(|node| matches!(node.next, Next::Parallel(_)));
    if !has_branches {
        let (joins, is_doubtful) = (vec![None; nodes], vec![false; nodes]);
        let regions = Regions { scopes, scope_of: vec![Some(0); nodes], joins, is_doubtful };
        return (Some(regions), Routes::new());
    }
    let joins = meet::joins(graph, flow);
    let regions = Regions { scopes, scope_of: vec![None; nodes], joins, is_doubtful: vec![false; nodes] };
    let mut walk = Walk {
        graph,
        flow,
        problems,
        regions,
        contradictions: Vec::new(),
        wrong: Routes::new(),
        entered_by: vec![None; nodes],
        is_told: vec![false; nodes],
        is_apart: vec![false; nodes],
        is_met: vec![false; nodes],
        is_reached: Vec::new(),
        is_lost: vec![false; nodes],
    };
    if !walk.all(start) {
        return Default::default();
    }
    walk.lost();
    // A route out of branches that do not meet follows from that.
    for is_first in [true, false] {
        for (edge, known, scope) in walk.contradictions.clone() {
            walk.contradiction(edge, known, scope, is_first);
        }
    }
    walk.unreached_joins();
    conflict::check(graph, &walk.regions, walk.problems);
    (Some(walk.regions), walk.wrong)
}

struct Walk<'a> {
    graph: &'a Graph,
    flow: &'a Flow,
    problems: &'a mut Problems,
    regions: Regions,
    /// The route that gave a node its branch.
    entered_by: Vec<Option<Edge>>,
    /// Nodes of which a problem is reported already.
    is_told: Vec<bool>,
    /// Parallel nodes of which it is reported that their branches do not meet.
    is_apart: Vec<bool>,
    /// Parallel nodes whose join was reached.
    is_met: Vec<bool>,
    /// Nodes to which routes lead from the start.
    is_reached: Vec<bool>,
    /// Parallel nodes with routes in their branches that are not known.
    is_lost: Vec<bool>,
    /// Routes to nodes that are in another branch already: the branch of the node, and that to which the route leads.
    contradictions: Vec<(Edge, usize, usize)>,
    /// Routes that are reported.
    wrong: Routes,
}

impl Walk<'_> {
    /// Whether the walk reached every node within the bound of nesting. Nodes to which no route leads run in no branch.
    fn all(&mut self, start: usize) -> bool {
        let mut is_led = vec![false; self.flow.nodes()];
        self.flow.edges().iter().filter(|edge| edge.from != edge.to).for_each(|edge| is_led[edge.to] = true);
        let nodes = 0..self.flow.nodes();
        let begins = nodes.clone().filter(|node| !is_led[*node]).chain(nodes);
        for begin in std::iter::once(start).chain(begins) {
            if self.regions.scope_of[begin].is_none() && !self.run(begin) {
                return false;
            }
            if begin == start {
                self.is_reached = self.regions.scope_of.iter().map(Option::is_some).collect();
            }
        }
        true
    }

    /// Marks the parallel nodes that have routes in their branches, or of their own, that are not known.
    fn lost(&mut self) {
        for node in (0..self.flow.nodes()).filter(|node| self.flow.unread().is_lost[*node]) {
            self.is_lost[node] = matches!(self.graph.nodes[node].next, Next::Parallel(_));
            let mut scope = self.regions.scope_of[node].unwrap_or_default();
            while let Some(branch) = self.regions.scopes[scope].branch {
                self.is_lost[branch.node] = true;
                scope = branch.parent;
            }
        }
        self.regions.is_doubtful.clone_from(&self.is_lost);
    }

    fn run(&mut self, start: usize) -> bool {
        self.regions.scope_of[start] = Some(0);
        let mut open = VecDeque::from([start]);
        while let Some(node) = open.pop_front() {
            let Some(scope) = self.regions.scope_of[node] else { continue };
            for &edge in self.flow.from(node) {
                let entered = match edge.kind {
                    EdgeKind::Route => scope,
                    EdgeKind::Branch(number) => {
                        let depth = self.regions.scopes[scope].depth + 1;
                        if depth > MOST_DEPTH {
                            self.too_deep(node);
                            return false;
                        }
                        let branch = Some(BranchOf { parent: scope, node, number });
                        self.regions.scopes.push(Scope { branch, depth });
                        self.regions.scopes.len() - 1
                    }
                };
                let scope = self.left(entered, edge.to);
                match self.regions.scope_of[edge.to] {
                    None => {
                        self.regions.scope_of[edge.to] = Some(scope);
                        self.entered_by[edge.to] = Some(edge);
                        open.push_back(edge.to);
                    }
                    Some(known) if known == scope => {}
                    Some(known) => self.contradictions.push((edge, known, scope)),
                }
            }
        }
        true
    }

    /// The scope behind a route to `to`, which may be the join of several branches at once.
    fn left(&mut self, mut scope: usize, to: usize) -> usize {
        while let Some(branch) = self.regions.scopes[scope].branch {
            if self.regions.joins[branch.node] != Some(to) {
                break;
            }
            self.is_met[branch.node] = true;
            scope = branch.parent;
        }
        scope
    }

    fn too_deep(&mut self, node: usize) {
        let node = &self.graph.nodes[node];
        let message = format!("the branches of `{}` are nested more than {MOST_DEPTH} deep", node.id.value);
        self.problems.add(Code::TooLarge, node.id.at, message, "let branches meet before others begin");
    }

    /// `edge` leads to a node in `scope`, which has the scope `known`. First those are reported that have no common join.
    fn contradiction(&mut self, edge: Edge, known: usize, scope: usize, is_first: bool) {
        let (mut a, mut b) = (known, scope);
        let (mut above_a, mut above_b) = (None, None);
        // Climbs to the innermost branch that holds both.
        while a != b {
            let (depth_a, depth_b) = (self.regions.scopes[a].depth, self.regions.scopes[b].depth);
            if depth_a >= depth_b {
                above_a = self.regions.scopes[a].branch;
                a = above_a.map_or(0, |branch| branch.parent);
            }
            if depth_b >= depth_a {
                above_b = self.regions.scopes[b].branch;
                b = above_b.map_or(0, |branch| branch.parent);
            }
        }
        let mut is_lost = false;
        for branch in [above_a, above_b].into_iter().flatten() {
            self.regions.is_doubtful[branch.node] = true;
            is_lost |= self.is_lost[branch.node];
        }
        let is_apart = |branch: BranchOf| self.is_apart[branch.node];
        let has_no_join = match (above_a, above_b) {
            (Some(first), Some(second)) => {
                first.node == second.node && self.regions.joins[first.node].is_none()
            }
            _ => false,
        };
        if has_no_join != is_first {
            return;
        }
        if !is_first && [above_a, above_b].into_iter().flatten().any(is_apart) {
            // So do cycles over it.
            self.wrong.insert((edge.from, edge.to));
            return;
        }
        // Nodes that no route from the start reaches run in no branch that is known.
        let is_within = above_a.map(|branch| branch.node) == above_b.map(|branch| branch.node);
        let is_near = edge.is_near || self.entered_by[edge.to].is_some_and(|edge| edge.is_near);
        if is_lost || is_near || (!is_within && !self.is_reached[edge.from]) {
            return;
        }
        let before = self.entered_by[edge.to];
        match (above_a, above_b) {
            (Some(first), Some(second)) if has_no_join => self.no_common_join(edge, first, second),
            (Some(inside), _) => self.entered(edge, inside, before),
            // The branch came second, so the route from outside is the one that was there before.
            (None, Some(inside)) => match before {
                Some(outside) if edge.to != inside.node => self.entered(outside, inside, Some(edge)),
                _ => self.leads_back(edge, inside),
            },
            (None, None) => {}
        }
    }

    /// `join-not-reached`: the joins that documents name are reached by a branch.
    fn unreached_joins(&mut self) {
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Next::Parallel(parallel) = &node.next else { continue };
            let Some(join) = &parallel.join else { continue };
            let is_explained = self.is_met[index] || self.regions.is_doubtful[index];
            if is_explained || !self.is_reached[index] {
                continue;
            }
            let message =
                format!("no branch of `{}` leads to `{}`, where they meet", node.id.value, join.value);
            self.problems.add(
                Code::JoinNotReached,
                join.at,
                message,
                "lead a branch to it, or name another join",
            );
        }
    }
}
