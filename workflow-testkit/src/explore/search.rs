//! The search through all orders, depth first: each run goes another way from some point on. What was tried is left
//! out where it commutes with what goes before it (sleep sets), and where nothing shows that it makes a difference
//! (races).

use super::footprint::Interest;
use super::gate::{Actor, Op, OpId};
use super::order::Choose;
use super::play::Moment;
use super::races::reversals;

/// Which orders are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reduction {
    /// None.
    Off,
    /// Those in which operations that commute have changed places.
    Sleep,
    /// The same, and runs that would come to nothing but those. It relies on each operation being enabled by one other,
    /// or by several that do not commute; branches that open in turn are enabled by whichever other settles first.
    Races,
}

/// A point of the current way.
#[derive(Debug)]
struct Node {
    ops: Vec<Op>,
    chosen: usize,
    /// What need not be tried here: it was, here or before, and commutes with all since.
    sleep: Vec<Op>,
    /// What is to be tried here.
    wanted: Vec<OpId>,
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
    way: Vec<Node>,
    /// How many choices of the next run are given.
    given: usize,
    at: usize,
    /// How many alternatives were left out.
    pub(super) left_out: u64,
    /// What cannot happen from a point of the way on, though it was there to choose: no timer runs out of which anything
    /// would come.
    never: Vec<(usize, OpId)>,
    /// The operations that were there again in a run that went the same way, and those that had been.
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

    /// Takes in what the run was that has been chosen for, and finds where the next one goes another way; says whether
    /// there is one.
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

    /// What sleeps after the last choice: what slept before and commutes with it.
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
        // What is alone is not in vain as long as there may be something behind it.
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

    /// What was found holds as far back as the operation was there.
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

/// Whether it is the same operation, as far as it is the workflow's matter. How often somebody was polled is not.
fn alike(one: &Op, other: &Op) -> bool {
    one.id == other.id || matches!((one.id.actor, other.id.actor), (Actor::Time(_), Actor::Time(_)))
}
