//! Branches of parallel nodes (G8): which nodes they hold, and where they meet. `entered-from-outside`,
//! `no-common-join`, `join-not-reached`.
//!
//! One walk from the start gives every node the branch in which it runs: a route keeps the branch, an item of `parallel`
//! opens one, and a route to a join leaves it. A node that would be in two of them is the problem.

use std::collections::VecDeque;

use super::flow::{Edge, EdgeKind};
use super::{Flow, conflict, meet};
use crate::document::model::{Graph, Next};
use crate::problem::Code;
use crate::problem::sink::Problems;

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
}

/// The branches of a graph. Nothing, after problems, where a node is in two of them.
pub(super) fn check(graph: &Graph, flow: &Flow, problems: &mut Problems) -> Option<Regions> {
    let start = graph.start()?;
    let nodes = flow.nodes();
    let scopes = vec![Scope { branch: None, depth: 0 }];
    let has_branches = graph.nodes.iter().any(|node| matches!(node.next, Next::Parallel(_)));
    if !has_branches {
        return Some(Regions { scopes, scope_of: vec![Some(0); nodes], joins: vec![None; nodes] });
    }
    let mut walk = Walk {
        graph,
        flow,
        problems,
        regions: Regions { scopes, scope_of: vec![None; nodes], joins: meet::joins(graph, flow) },
        entered_by: vec![None; nodes],
        is_told: vec![false; nodes],
        is_met: vec![false; nodes],
        is_doubtful: vec![false; nodes],
    };
    if !walk.run(start) {
        return None;
    }
    walk.unreached_joins();
    if walk.is_doubtful.contains(&true) {
        return None;
    }
    conflict::check(graph, &walk.regions, walk.problems);
    Some(walk.regions)
}

struct Walk<'a> {
    graph: &'a Graph,
    flow: &'a Flow,
    problems: &'a mut Problems,
    regions: Regions,
    /// The route that gave a node its branch.
    entered_by: Vec<Option<Edge>>,
    /// Nodes, or parallel nodes, of which a problem is reported already.
    is_told: Vec<bool>,
    /// Parallel nodes whose join was reached.
    is_met: Vec<bool>,
    /// Parallel nodes whose branches have a problem.
    is_doubtful: Vec<bool>,
}

impl Walk<'_> {
    /// Whether the walk reached every node within the bound of nesting.
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
                    Some(known) => self.contradiction(edge, known, scope),
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

    /// `edge` leads to a node in `scope`, which has the scope `known`.
    fn contradiction(&mut self, edge: Edge, known: usize, scope: usize) {
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
        for branch in [above_a, above_b].into_iter().flatten() {
            self.is_doubtful[branch.node] = true;
        }
        match (above_a, above_b) {
            (Some(first), Some(second)) if first.node == second.node => {
                if self.regions.joins[first.node].is_none() {
                    self.no_common_join(edge, first, second);
                } else {
                    self.entered(edge, first);
                }
            }
            (Some(inside), _) => self.entered(edge, inside),
            // The branch came second, so the route from outside is the one that was there before.
            (None, Some(inside)) => match self.entered_by[edge.to] {
                Some(outside) if edge.to != inside.node => self.entered(outside, inside),
                _ => self.leads_back(edge, inside),
            },
            (None, None) => {}
        }
    }

    fn id(&self, node: usize) -> &str {
        &self.graph.nodes[node].id.value
    }

    /// The id of the node that a branch begins with.
    fn begins(&self, branch: BranchOf) -> &str {
        match &self.graph.nodes[branch.node].next {
            Next::Parallel(parallel) => &parallel.branches[branch.number].to.value,
            _ => "",
        }
    }

    fn no_common_join(&mut self, edge: Edge, first: BranchOf, second: BranchOf) {
        if std::mem::replace(&mut self.is_told[first.node], true) {
            return;
        }
        let (node, to) = (self.id(first.node), self.id(edge.to));
        let message = if self.begins(first) == self.begins(second) {
            format!("two branches of `{node}` begin with `{to}`, which would run in each")
        } else {
            format!(
                "the branches of `{node}` that begin with `{}` and `{}` both lead to `{to}`, which would run in each",
                self.begins(first),
                self.begins(second)
            )
        };
        let remedy = if self.graph.hive().is_some() {
            "let all branches meet in one node, or end them before".to_owned()
        } else {
            format!("let them meet there: add `join: {to}` beside `parallel`")
        };
        let at = match &self.graph.nodes[first.node].next {
            Next::Parallel(parallel) => parallel.at,
            _ => edge.at,
        };
        self.problems.add(Code::NoCommonJoin, at, message, remedy);
    }

    fn entered(&mut self, edge: Edge, inside: BranchOf) {
        if std::mem::replace(&mut self.is_told[edge.to], true) {
            return;
        }
        if let (Some(join), Some(past)) = (self.regions.joins[inside.node], self.entered_by[edge.to])
            && self.leads(join, edge.from)
            && self.regions.scope_of[past.from] != self.regions.scope_of[edge.from]
        {
            return self.past_the_join(past, inside, join);
        }
        let (from, to, node) = (self.id(edge.from), self.id(edge.to), self.id(inside.node));
        let message = format!(
            "`{from}` leads to `{to}` from outside, into the branch of `{node}` that begins with `{}`",
            self.begins(inside)
        );
        let scope = self.regions.scope_of[edge.from].map(|scope| &self.regions.scopes[scope]);
        let is_beside = scope.and_then(|scope| scope.branch).is_some_and(|of| of.node == inside.node);
        let remedy = match self.regions.joins[inside.node] {
            Some(join) if is_beside => {
                let join = self.id(join);
                format!(
                    "lead it to `{join}`, where the branches meet, or let them meet at `{to}`: `join: {to}`"
                )
            }
            Some(join) => format!("lead it to `{node}`, or to `{}`, where the branches meet", self.id(join)),
            None if self.graph.hive().is_some() => format!("lead it to `{node}`"),
            None => format!("lead it to `{node}`, or let the branches meet before `{to}` by `join:`"),
        };
        self.problems.add(Code::EnteredFromOutside, edge.at, message, remedy);
    }

    /// Whether a walk can come from `from` to `to`.
    fn leads(&self, from: usize, to: usize) -> bool {
        let (mut seen, mut open) = (vec![false; self.flow.nodes()], vec![from]);
        while let Some(node) = open.pop() {
            if node == to {
                return true;
            }
            if !std::mem::replace(&mut seen[node], true) {
                open.extend(self.flow.from(node).iter().map(|edge| edge.to));
            }
        }
        false
    }

    /// A route of a branch leads to a node behind the join.
    fn past_the_join(&mut self, edge: Edge, inside: BranchOf, join: usize) {
        let (from, to) = (self.id(edge.from), self.id(edge.to));
        let (node, join) = (self.id(inside.node), self.id(join));
        let message = format!(
            "`{from}`, in the branch of `{node}` that begins with `{}`, leads to `{to}`, which lies behind `{join}`, where \
             the branches meet",
            self.begins(inside)
        );
        let remedy = format!("lead it to `{join}`, end the branch there, or name another `join`");
        self.problems.add(Code::EnteredFromOutside, edge.at, message, remedy);
    }

    fn leads_back(&mut self, edge: Edge, inside: BranchOf) {
        if std::mem::replace(&mut self.is_told[edge.to], true) {
            return;
        }
        let (from, to, node) = (self.id(edge.from), self.id(edge.to), self.id(inside.node));
        let message = format!(
            "`{from}`, in the branch of `{node}` that begins with `{}`, leads back to `{to}` outside of it",
            self.begins(inside)
        );
        let remedy = "let the cycle begin where the branches meet, or stay inside of the branch";
        self.problems.add(Code::EnteredFromOutside, edge.at, message, remedy);
    }

    /// `join-not-reached`: the joins that documents name are reached by a branch.
    fn unreached_joins(&mut self) {
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Next::Parallel(parallel) = &node.next else { continue };
            let Some(join) = &parallel.join else { continue };
            let is_explained = self.is_met[index] || self.is_doubtful[index];
            if is_explained || self.regions.scope_of[index].is_none() {
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
