//! The layout of a graph that passed its checks: the branch of each node, the joins, and the needs of nodes. The compiler of
//! tables reads it.

use super::needs::{self, Needs};
use super::region::{self, Regions};
use super::scope::Facts;
use super::{Flow, meet};
use crate::document::model::{Failures, Graph, Next, Node, Parallel};
use crate::problem::sink::Problems;

/// The branches of a graph and the needs of its nodes.
#[derive(Debug)]
pub(crate) struct Layout {
    regions: Regions,
    needs: Vec<Needs>,
    output: Needs,
    /// Whether the walk may end behind a node, or with its branches.
    may_end: Vec<bool>,
    /// By parallel node.
    within: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

/// Where a node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScopeOf(usize);

impl Layout {
    /// The layout of a graph without problems.
    pub(crate) fn of(graph: &Graph) -> Self {
        let flow = Flow::of(graph);
        let nodes = flow.nodes();
        // The graph was checked before, so no problem is found here.
        let regions = region::check(graph, &flow, &mut Problems::new("")).0.unwrap_or_else(|| Regions {
            scopes: vec![region::Scope { branch: None, depth: 0 }],
            scope_of: vec![Some(0); nodes],
            joins: vec![None; nodes],
            is_doubtful: vec![false; nodes],
        });
        let facts = Facts::of(graph);
        let (mut within, mut below) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for node in 0..nodes {
            let mut branch = regions.scopes[regions.scope_of[node].unwrap_or_default()].branch;
            if let Some(inner) = branch {
                within[inner.node].push(node);
            }
            while let Some(around) = branch {
                below[around.node].push(node);
                branch = regions.scopes[around.parent].branch;
            }
        }
        Self {
            within,
            below,
            regions,
            needs: graph.nodes.iter().map(|node| needs::of_node(graph, &facts, node)).collect(),
            output: needs::of_output(graph, &facts),
            may_end: graph
                .nodes
                .iter()
                .map(|node| has_branches(node) || meet::may_end(graph, node))
                .collect(),
        }
    }

    /// The needs of a node's steps, with those of the graph's output where the walk can end behind the node.
    pub(crate) fn needs(&self, node: usize) -> Needs {
        let needs = self.needs[node].clone();
        if self.may_end[node] && self.is_root(node) { needs.with(&self.output) } else { needs }
    }

    pub(crate) fn scope(&self, node: usize) -> ScopeOf {
        ScopeOf(self.regions.scope_of[node].unwrap_or_default())
    }

    /// Whether the node runs in no branch.
    pub(crate) fn is_root(&self, node: usize) -> bool {
        self.scope(node).0 == 0
    }

    /// Where the branches of a parallel node meet.
    pub(crate) fn join(&self, node: usize) -> Option<usize> {
        self.regions.joins[node]
    }

    /// The parallel node in whose branch a scope is.
    pub(crate) fn opener(&self, scope: ScopeOf) -> Option<usize> {
        self.regions.scopes[scope.0].branch.map(|branch| branch.node)
    }

    /// The nodes that run in the branches of a parallel node themselves, not in branches below.
    pub(crate) fn within(&self, parallel: usize) -> &[usize] {
        &self.within[parallel]
    }

    /// The nodes that run in the branches of a parallel node or below them.
    pub(crate) fn below(&self, parallel: usize) -> &[usize] {
        &self.below[parallel]
    }

    /// Whether visits of the node may fail while the walk goes on behind its branches, so that they are counted on their own.
    pub(crate) fn is_counted(&self, graph: &Graph, node: usize) -> bool {
        std::iter::successors(self.opener(self.scope(node)), |opener| self.opener(self.scope(*opener))).any(
            |opener| {
                let opener = &graph.nodes[opener];
                let goes_on = |parallel: &Parallel| parallel.failures != Failures::FailAll;
                opener.on_failure.is_some() || matches!(&opener.next, Next::Parallel(it) if goes_on(it))
            },
        )
    }

    /// The nodes whose branches have failed with a failure of `node`, from that node outwards, up to the branch of `parallel`
    /// itself.
    pub(crate) fn failing(&self, node: usize, parallel: usize) -> Vec<usize> {
        let outwards = std::iter::successors(Some(node), |inner| {
            self.opener(self.scope(*inner)).filter(|opener| *opener != parallel)
        });
        outwards.collect()
    }

    /// Whether a route from `from` to `to` ends its branch: branches meet there.
    pub(crate) fn arrives(&self, from: usize, to: usize) -> bool {
        self.scope(from) != self.scope(to)
    }
}

fn has_branches(node: &Node) -> bool {
    matches!(node.next, Next::Parallel(_))
}
