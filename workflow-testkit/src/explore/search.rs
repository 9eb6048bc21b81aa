//! The depth-first search through all orders: each run makes another choice at some point. The search skips
//! alternatives that commute with what precedes them (sleep sets), and those without a known difference (races).
//!
//! The search knows operations and whether they commute, but nothing of workflows. Invariant: a run with the same first
//! choices offers the same operations; `differs` records a run that breaks this.
//!
//! ```text
//! run 1   a b c      way: a b c
//! run 2   a c b      the last node with an untried operation takes it; later nodes start anew
//! run 3   b a c      no alternative is left below `a`, so the first node takes its next operation
//! ```

use super::footprint::Interest;
use super::gate::{Actor, Op, OpId};
use super::order::Choose;
use super::play::Moment;
use super::races::reversals;

/// The orders that the search skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reduction {
    /// None.
    Off,
    /// Orders that differ by swapped commuting operations.
    Sleep,
    /// The same, and runs that could lead only to such orders. This requires that each operation is enabled by one
    /// other, or by several that do not commute. Branches that open in turn violate this: they are enabled by whichever
    /// other settles first.
    Races,
}

/// A point of the current order.
#[derive(Debug)]
struct Node {
    ops: Vec<Op>,
    /// The index in `ops` that the latest run took.
    chosen: usize,
    /// The operations to skip here: tried here or before, and commuting with everything since.
    sleep: Vec<Op>,
    /// The operations to try here.
    wanted: Vec<OpId>,
    /// The number of operations tried here so far.
    tried: usize,
}

impl Node {
    fn sleeps(&self, op: &Op) -> bool {
        self.sleep.iter().any(|sleeping| sleeping.id == op.id)
    }
}

/// The state of the search between two runs.
#[derive(Debug)]
pub(super) struct Search<'a> {
    interest: &'a Interest,
    reduction: Reduction,
    /// The choices of the latest run, first to last. A next run repeats the first `given` of them.
    way: Vec<Node>,
    /// The number of given choices of the next run.
    given: usize,
    /// The number of choices made in the present run.
    at: usize,
    /// The number of skipped alternatives.
    pub(super) left_out: u64,
    /// Operations that are impossible from a point on, although offered: passing time without any effect.
    never: Vec<(usize, OpId)>,
    /// The operations of a repeated run, and those of the original, where they differ.
    pub(super) differs: Option<(Vec<Op>, Vec<Op>)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(interest: &'a Interest, reduction: Reduction) -> Self {
        Self {
            interest,
            reduction,
            way: Vec::new(),
            given: 0,
            at: 0,
            left_out: 0,
            never: Vec::new(),
            differs: None,
        }
    }

    pub(super) fn reduction(&self) -> Reduction {
        self.reduction
    }

    /// Starts over with another reduction.
    pub(super) fn restart(&mut self, reduction: Reduction) {
        *self = Self::new(self.interest, reduction);
    }

    /// Records the finished run, and finds the next alternative; returns whether there is one.
    pub(super) fn advance(&mut self, moments: &[Moment], left: &[Op]) -> bool {
        if self.reduction == Reduction::Races {
            let from = self.given.saturating_sub(1);
            for reversal in reversals(moments, left, from, self.interest) {
                let wanted = &mut self.way[reversal.moment].wanted;
                if !reversal.initials.iter().any(|initial| wanted.contains(initial)) {
                    wanted.extend(reversal.initials.first());
                }
            }
        }
        self.at = 0;
        while let Some(node) = self.way.last_mut() {
            let tried = node.ops[node.chosen].clone();
            node.sleep.push(tried);
            let can = |op: &&Op| self.never.iter().all(|(_, never)| *never != op.id);
            let wanted = |op: &Op| node.wanted.contains(&op.id) && !node.sleeps(op) && can(&op);
            let next = node.ops.iter().position(wanted);
            let possible = node.ops.iter().filter(can).count();
            if let Some(next) = next {
                node.chosen = next;
                node.tried += 1;
                self.given = self.way.len();
                self.never.retain(|(from, _)| *from < self.given);
                return true;
            }
            self.left_out += possible.saturating_sub(node.tried) as u64;
            self.way.pop();
        }
        false
    }

    /// The operations that sleep after the last choice: those that slept before and commute with it.
    fn sleeping(&self, ops: &[Op]) -> Vec<Op> {
        let Some(node) = self.way.last().filter(|_| self.reduction != Reduction::Off) else {
            return Vec::new();
        };
        let chosen = &node.ops[node.chosen];
        let sleeps = |op: &&Op| {
            op.id.actor != chosen.id.actor
                && self.interest.commute(op, chosen)
                && ops.iter().any(|there| there.id == op.id)
        };
        node.sleep.iter().filter(sleeps).cloned().collect()
    }

    fn explore(&mut self, ops: &[Op]) -> Option<usize> {
        let sleep = self.sleeping(ops);
        // A single choice is not skipped while something may follow it.
        let can = |op: &Op| ops.len() == 1 || self.never.iter().all(|(_, never)| *never != op.id);
        let awake = |op: &Op| can(op) && sleep.iter().all(|sleeping| sleeping.id != op.id);
        let Some(chosen) = ops.iter().position(awake) else {
            self.left_out += ops.iter().filter(|op| can(op)).count() as u64;
            return None;
        };
        let wanted = match self.reduction {
            Reduction::Races => vec![ops[chosen].id],
            Reduction::Off | Reduction::Sleep => ops.iter().map(|op| op.id).collect(),
        };
        self.way.push(Node { ops: ops.to_vec(), chosen, sleep, wanted, tried: 1 });
        Some(chosen)
    }
}

impl Choose for Search<'_> {
    fn choose(&mut self, ops: &[Op]) -> Option<usize> {
        let at = self.at;
        self.at += 1;
        let Some(node) = self.way.get(at) else { return self.explore(ops) };
        if node.ops.len() != ops.len() || !node.ops.iter().zip(ops).all(|(one, other)| alike(one, other)) {
            self.differs = Some((node.ops.clone(), ops.to_vec()));
            return None;
        }
        Some(node.chosen)
    }

    /// The finding holds back to the point where the operation appeared.
    fn retract(&mut self) {
        let Some((at, node)) = self.at.checked_sub(1).and_then(|at| Some((at, self.way.get_mut(at)?))) else {
            return;
        };
        node.tried = node.tried.saturating_sub(1);
        let id = node.ops[node.chosen].id;
        let there = |node: &Node| node.ops.iter().any(|op| op.id == id);
        let from = self.way[..at].iter().position(there).unwrap_or(at);
        self.never.push((from, id));
    }
}

/// Whether both are the same operation of the workflow; the number of polls does not count.
fn alike(one: &Op, other: &Op) -> bool {
    one.id == other.id || matches!((one.id.actor, other.id.actor), (Actor::Time(_), Actor::Time(_)))
}
