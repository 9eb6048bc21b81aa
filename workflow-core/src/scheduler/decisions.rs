//! All evaluations of a run in order: the recorded ones, and those in branches that follow from the history
//! of sweeps.
//!
//! Reading walks forward. For each sweep, the reader restores the branches that were open then, applies the
//! changes of that sweep, and derives the verdict of each step in each open branch:
//!
//! ```text
//!  1. a verdict of this sweep alone (an execution)      from the changes
//!  2. Asking                                            from the open candidates
//!  3. the latest verdict that stays                     from the changes
//!  4. NotReady    the branch has an own event for the step, and no evaluation happened
//!                 or the step was not ready in the scope above
//!     Covered     otherwise
//! ```
//!
//! Invariant: the derived decisions are those that evaluating every step in every open branch would have
//! recorded, in the same order: the recorded ones of the event's own scope, then the branches in order of
//! evaluation.
//!
//! Example: `Note` at 6 in the root, and `pack(Item, Note)`. Branch 1 has an item; branch 2 is of another
//! fan-out and has none. Recorded is `pack` in the root, `NotReady`. The change of the sweep has `Executed`
//! for branch 1. Branch 2 has neither a change nor an event for `pack`, so it sees what the root sees:
//! `NotReady`.
//!
//! ```text
//!  recorded     6 pack root NotReady   │ sweep 0 at position 1 │   8 pack root NotReady ...
//!  returned     6 pack root NotReady, 6 pack 1 Executed, 6 pack 2 NotReady, 8 pack root NotReady ...
//! ```

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::sweep::{Change, History, Sweep, Until};
use super::{Decision, Scheduler, Verdict};
use crate::id::ScopeId;
use crate::table::{EventIndex, StepIndex};

/// Iterates over the decisions of a scheduler, in order.
pub(super) struct Decisions<'a> {
    /// Does not change while the iterator borrows it, so all parts stand for one moment.
    scheduler: &'a Scheduler,
    /// The number of recorded decisions returned so far.
    recorded: usize,
    /// The state of the branches; `None` in a run without sweeps.
    below: Option<Below<'a>>,
    /// The remaining decisions of the latest sweep.
    swept: std::vec::IntoIter<Decision>,
}

/// The branches at the time of the current sweep, advanced sweep by sweep.
struct Below<'a> {
    /// Has the sweeps, the changes, and the branches that closed.
    history: &'a History,
    /// The number of sweeps read so far.
    sweep: u32,
    /// The branches that open later, with the number of the sweep before which they do, parent and scope; the
    /// earliest last.
    opening: Vec<(u32, ScopeId, ScopeId)>,
    /// The same of the branches that close later.
    closing: Vec<(u32, ScopeId, ScopeId)>,
    /// The branches that are open at the current sweep as parent and scope. The order groups siblings, so that one
    /// range has the children of a scope in order of evaluation.
    open: BTreeSet<(ScopeId, ScopeId)>,
    /// The number of sweeps before a branch had an event of its own that the step takes.
    own: FxHashMap<(StepIndex, ScopeId), u32>,
    /// The changes that are left, the earliest sweep last.
    changes: Vec<&'a Change>,
    /// The latest of the verdicts that stay, by trigger type, step and branch.
    latest: FxHashMap<(EventIndex, StepIndex, ScopeId), Verdict>,
    /// The evaluations whose precondition has not answered.
    asking: FxHashSet<(u32, StepIndex, ScopeId)>,
    /// The place of the last sweep, if the sweep is still in progress.
    until: Option<Until>,
}

/// One sweep while its decisions are derived.
struct Reading<'a> {
    /// The event that was evaluated, with its scope.
    sweep: &'a Sweep,
    /// The steps that take the event, in order of declaration.
    takers: &'a [StepIndex],
    /// Verdicts of this sweep alone.
    once: FxHashMap<(StepIndex, ScopeId), Verdict>,
    /// Where the sweep stands, if it is in progress: nothing behind this place was evaluated.
    until: Option<Until>,
    /// The decisions derived so far, in order.
    decisions: Vec<Decision>,
}

impl<'a> Decisions<'a> {
    /// O(branches that were swept), or O(1) without sweeps.
    pub(super) fn of(scheduler: &'a Scheduler) -> Self {
        let history = scheduler.evaluation.sweeps.history().filter(|history| !history.sweeps.is_empty());
        let below = history.map(|history| Below::of(scheduler, history));
        Self { scheduler, recorded: 0, below, swept: Vec::new().into_iter() }
    }

    /// The decisions of the next sweep, if it comes before the next recorded decision.
    fn sweep(&mut self) -> Option<Vec<Decision>> {
        let below = self.below.as_mut()?;
        let sweep = below.history.sweeps.get(below.sweep as usize)?;
        if sweep.position > self.recorded {
            return None;
        }
        let takers = &self.scheduler.board.table.event(sweep.event).takers;
        let is_retracted = below.history.retracted.is_some_and(|from| sweep.trigger >= from);
        // The decisions in the event's own scope stand right before the sweep.
        let own = if is_retracted { 0 } else { takers.len() };
        // A step that was not ready in the scope above is `NotReady` in a branch without an event of its own,
        // so the walk begins with the verdicts in the event's own scope.
        let recorded = &self.scheduler.evaluation.decisions[..self.recorded];
        // A retracted sweep is read as well, since later sweeps build on its changes, but yields no decision.
        let swept = below.read(sweep, takers, &recorded[recorded.len() - own..]);
        Some(if is_retracted { Vec::new() } else { swept })
    }
}

impl Iterator for Decisions<'_> {
    type Item = Decision;

    fn next(&mut self) -> Option<Decision> {
        loop {
            if let Some(decision) = self.swept.next() {
                return Some(decision);
            }
            let Some(swept) = self.sweep() else { break };
            self.swept = swept.into_iter();
        }
        let decision = self.scheduler.evaluation.decisions.get(self.recorded)?;
        self.recorded += 1;
        Some(*decision)
    }
}

impl<'a> Below<'a> {
    /// Collects all branches that were ever open, with the sweeps at which they opened and closed, and all
    /// changes. O(branches + changes).
    fn of(scheduler: &'a Scheduler, history: &'a History) -> Self {
        let mut open = Vec::new();
        scheduler.board.scopes.below(ScopeId::ROOT, &mut open);
        let opened = open.into_iter().filter_map(|id| {
            let scope = scheduler.board.scopes.get(id)?;
            Some((scope.opened(), scope.parent?, id))
        });
        let closed = history.closed.iter();
        let opening = opened.chain(closed.clone().map(|it| (it.during[0], it.parent, it.scope)));
        let joined = history.joins.iter().chain(history.joined.iter().copied());
        let asking = scheduler.evaluation.asked_below();
        Self {
            history,
            sweep: 0,
            opening: last_first(opening.collect()),
            closing: last_first(closed.map(|it| (it.during[1], it.parent, it.scope)).collect()),
            open: BTreeSet::new(),
            own: joined.map(|(step, scope, since)| ((step, scope), since)).collect(),
            changes: {
                let mut changes: Vec<&Change> = history.changes.iter().rev().collect();
                // The sort is stable and the input reversed, so changes of one sweep are popped in the order
                // in which they became known.
                changes.sort_by_key(|change| std::cmp::Reverse(change.sweep));
                changes
            },
            latest: FxHashMap::default(),
            asking: asking.collect(),
            until: scheduler.evaluation.swept_until(),
        }
    }

    /// Derives the decisions of the next sweep from those in the event's own scope.
    fn read(&mut self, sweep: &Sweep, takers: &[StepIndex], own: &[Decision]) -> Vec<Decision> {
        let number = self.sweep;
        self.sweep += 1;
        // Branches that opened and closed between two sweeps are in neither; opening first handles them.
        while let Some((_, parent, scope)) = self.opening.pop_if(|(at, ..)| *at <= number) {
            self.open.insert((parent, scope));
        }
        while let Some((_, parent, scope)) = self.closing.pop_if(|(at, ..)| *at <= number) {
            self.open.remove(&(parent, scope));
        }
        let mut once = FxHashMap::default();
        while let Some(change) = self.changes.pop_if(|change| change.sweep == number) {
            let Change { step, scope, stays, verdict, .. } = *change;
            if stays {
                self.latest.insert((sweep.event, step, scope), verdict);
            } else {
                once.insert((step, scope), verdict);
            }
        }
        // Only the last sweep can be in progress.
        let is_last = self.sweep as usize == self.history.sweeps.len();
        let until = self.until.filter(|_| is_last);
        let mut reading = Reading { sweep, takers, once, until, decisions: Vec::new() };
        let unready: Vec<bool> = own.iter().map(|decision| decision.verdict == Verdict::NotReady).collect();
        self.walk(sweep.scope, &unready, &mut reading);
        reading.decisions
    }

    /// Derives the decisions in the branches below one scope. `unready` says per step whether it was not
    /// ready in that scope. Returns `false` where a sweep in progress ends.
    fn walk(&self, parent: ScopeId, unready: &[bool], reading: &mut Reading<'_>) -> bool {
        // A sweep whose cursor is still in the event's own scope has evaluated no branch yet.
        if reading.until.is_some_and(|(scope, _)| scope == parent) && parent == reading.sweep.scope {
            return false;
        }
        for (_, scope) in self.open.range((parent, ScopeId(0))..=(parent, ScopeId(u32::MAX))) {
            let stops = reading.until.filter(|(last, _)| last == scope);
            let count = stops.map_or(usize::MAX, |(_, count)| count);
            let verdicts = reading.takers.iter().zip(unready.iter().copied().chain(std::iter::repeat(false)));
            let verdicts: Vec<Decision> = verdicts
                .take(count)
                .map(|(step, is_unready)| {
                    let verdict = self.verdict(*step, *scope, is_unready, reading);
                    Decision { trigger: reading.sweep.trigger, step: *step, scope: *scope, verdict }
                })
                .collect();
            // A branch that adds no event of its own for a step passes the readiness of its parent on.
            let unready: Vec<bool> = verdicts.iter().map(|it| it.verdict == Verdict::NotReady).collect();
            reading.decisions.extend(verdicts);
            if stops.is_some() || !self.walk(*scope, &unready, reading) {
                return false;
            }
        }
        true
    }

    /// Derives one verdict, by the four rules of the module's documentation.
    fn verdict(
        &self,
        step: StepIndex,
        scope: ScopeId,
        is_unready_above: bool,
        reading: &Reading<'_>,
    ) -> Verdict {
        if let Some(verdict) = reading.once.get(&(step, scope)) {
            return *verdict;
        }
        let sweep = self.sweep - 1;
        if self.asking.contains(&(sweep, step, scope)) {
            return Verdict::Asking;
        }
        if let Some(verdict) = self.latest.get(&(reading.sweep.event, step, scope)) {
            return *verdict;
        }
        // A step that is ready in a branch was evaluated there, so its verdict is recorded. A branch without
        // an event of its own sees what its parent sees.
        let has_own = self.own.get(&(step, scope)).is_some_and(|since| *since <= sweep);
        if has_own || is_unready_above { Verdict::NotReady } else { Verdict::Covered }
    }
}

/// Sorts so that the earliest sweep is last, to be popped first.
fn last_first(mut branches: Vec<(u32, ScopeId, ScopeId)>) -> Vec<(u32, ScopeId, ScopeId)> {
    branches.sort_unstable_by(|one, other| other.cmp(one));
    branches
}
