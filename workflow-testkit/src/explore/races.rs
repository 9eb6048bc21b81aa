//! Finds the operations of a run that could have gone in another order, with a difference: the races of dynamic
//! partial-order reduction with source sets (Abdulla, Aronis, Jonsson, Sagonas, 2014).
//!
//! Two operations race if they do not commute, the first does not enable the second, and no operation between them must
//! come after the first and before the second. The search then tries an order in which the second comes first:
//!
//! ```text
//! moment      0      1      2
//! operation   a      b      c        `a` and `c` do not commute, `b` commutes with both
//! reversal    at moment 0, begin with `c` or `b`
//! ```

use std::collections::HashMap;

use super::footprint::Interest;
use super::gate::{Op, OpId};
use super::play::Moment;

/// An alternative to try: at this moment one of these operations, unless one of them was tried already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reversal {
    pub(super) moment: usize,
    pub(super) initials: Vec<OpId>,
}

/// The reversals of all races whose second operation is at `from` or later. `left` holds the operations at the gate at
/// the end. O(n³) for n operations, in words of 64.
pub(super) fn reversals(moments: &[Moment], left: &[Op], from: usize, interest: &Interest) -> Vec<Reversal> {
    let past = Past::of(moments, interest);
    let performed = (from..moments.len()).map(|at| (at, moments[at].op()));
    let dropped = (from..moments.len()).flat_map(|at| {
        let next = moments.get(at + 1).map_or(left, |next| &next.ops);
        let gone = move |op: &&Op| op.id != moments[at].op().id && next.iter().all(|next| next.id != op.id);
        moments[at].ops.iter().filter(gone).map(move |op| (at + 1, op))
    });
    performed.chain(dropped).flat_map(|(at, op)| past.races(at, op)).collect()
}

/// The happens-before relation: the closure of enabling and of not commuting.
struct Past<'a> {
    moments: &'a [Moment],
    interest: &'a Interest,
    /// The moment at which an operation first was at the gate.
    first_seen: HashMap<OpId, usize>,
    before: Vec<Set>,
}

impl<'a> Past<'a> {
    fn of(moments: &'a [Moment], interest: &'a Interest) -> Self {
        let mut first_seen = HashMap::new();
        for (at, moment) in moments.iter().enumerate() {
            for op in &moment.ops {
                first_seen.entry(op.id).or_insert(at);
            }
        }
        let mut past = Self { moments, interest, first_seen, before: Vec::with_capacity(moments.len()) };
        for (at, moment) in moments.iter().enumerate() {
            let mut before = past.enabling(moment.op());
            for earlier in past.clashing(at, moment.op()) {
                past.add(&mut before, earlier);
            }
            past.before.push(before);
        }
        past
    }

    fn add(&self, set: &mut Set, moment: usize) {
        set.insert(moment);
        set.extend(&self.before[moment]);
    }

    /// The moments that enabled the operation: those before it reached the gate.
    fn enabling(&self, op: &Op) -> Set {
        let mut enabling = Set::default();
        let seen = self.first_seen.get(&op.id).copied().unwrap_or(0);
        if seen > 0 {
            self.add(&mut enabling, seen - 1);
        }
        enabling
    }

    /// The earlier operations that it does not commute with.
    fn clashing(&self, at: usize, op: &Op) -> impl Iterator<Item = usize> {
        (0..at).filter(move |earlier| {
            let earlier = self.moments[*earlier].op();
            earlier.id.actor == op.id.actor || !self.interest.commute(earlier, op)
        })
    }

    /// The races of an operation that goes, or could go, at this moment.
    fn races(&self, at: usize, op: &Op) -> Vec<Reversal> {
        let enabling = self.enabling(op);
        let clashing: Vec<usize> = self.clashing(at, op).collect();
        let mut before = enabling.clone();
        for earlier in &clashing {
            self.add(&mut before, *earlier);
        }
        let direct = |first: &usize| {
            let between =
                (*first + 1..at).any(|between| before.has(between) && self.before[between].has(*first));
            !enabling.has(*first) && !between
        };
        let races = clashing.iter().copied().filter(direct);
        races.map(|first| self.reversal(first, at, op, &before)).collect()
    }

    /// The operations that can go first at `first` so that `op` comes before it: those of the rest, including `op`,
    /// that depend neither on `first` nor on each other.
    fn reversal(&self, first: usize, at: usize, op: &Op, before: &Set) -> Reversal {
        let rest: Vec<usize> = (first + 1..at).filter(|later| !self.before[*later].has(first)).collect();
        let mut initials: Vec<OpId> = (rest.iter().enumerate())
            .filter(|(place, later)| rest[..*place].iter().all(|other| !self.before[**later].has(*other)))
            .map(|(_, later)| self.moments[*later].op().id)
            .collect();
        if rest.iter().all(|other| !before.has(*other)) {
            initials.push(op.id);
        }
        Reversal { moment: first, initials }
    }
}

/// A set of moments.
#[derive(Debug, Clone, Default)]
struct Set(Vec<u64>);

impl Set {
    fn insert(&mut self, moment: usize) {
        let word = moment / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (moment % 64);
    }

    fn has(&self, moment: usize) -> bool {
        self.0.get(moment / 64).is_some_and(|word| word >> (moment % 64) & 1 == 1)
    }

    fn extend(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }
}
