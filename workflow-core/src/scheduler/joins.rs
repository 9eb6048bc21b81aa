//! Joins: the open branches in which an event of an outer scope can make a step run (S46). A step joins in a
//! branch once the branch has an event of its own that the step takes.
//!
//! Steps that take a single event are absent: they would bind the outer event alone, and the evaluation in
//! the outer scope covers that.
//!
//! ```text
//!   step pack(Item, Note)        branch 1: has an Item     ready   (a Note is visible)
//!                                branch 2: has an Item     unready (no Note yet)
//!                                branch 3: has none        absent
//! ```
//!
//! Invariant: a branch is in `ready` or in `unready` of a step, never in both. A branch moves from `unready`
//! to `ready` once and never back, since events are never removed from a scope.
//!
//! Example, with the picture: a `Note` in the root moves branch 2 to `ready` before its sweep, so the sweep
//! evaluates `pack` in branches 1 and 2. Branch 3 gets an `Item` afterwards, and `add` puts it in `ready` at
//! once.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::Verdict;
use crate::id::ScopeId;
use crate::spec::InputKind;
use crate::table::{DependencyTable, EventIndex, StepIndex, StepRow};

/// By step, the open branches with events of their own that the step takes.
#[derive(Debug, Default)]
pub(super) struct Joins(BTreeMap<StepIndex, Branches>);

/// The branches of one step, by whether the step has all it requires there.
#[derive(Debug, Default)]
struct Branches {
    /// The branches in which the step has all it requires. An outer event is evaluated there.
    ready: BTreeMap<ScopeId, Join>,
    /// The number of sweeps before the branch had an event of its own that the step takes.
    unready: BTreeMap<ScopeId, u32>,
}

/// A step that is ready in a branch.
#[derive(Debug)]
pub(super) struct Join {
    /// The number of sweeps before the branch had an event of its own that the step takes.
    since: u32,
    /// By type of the trigger, the latest of the verdicts that stay until another one is recorded.
    pub(super) latest: SmallVec<[Latest; 1]>,
}

/// A step that joined in a branch: the number of sweeps before, and the latest verdicts that stay.
pub(super) type Joined = (StepIndex, u32, SmallVec<[Latest; 1]>);

/// A verdict, and the latest sweep that had it.
#[derive(Debug, Clone)]
pub(super) struct Latest {
    /// The type of the outer event: verdicts of other types are remembered apart.
    pub(super) event: EventIndex,
    /// The latest sweep with this verdict. The answer of a precondition for an earlier sweep must not replace
    /// it.
    pub(super) sweep: u32,
    /// A verdict that stays; an execution, for example, is never here.
    pub(super) verdict: Verdict,
}

/// Whether the step can bind an event of a branch beside an event of an outer scope: it has a list, or
/// several inputs.
pub(super) fn can_join(row: &StepRow) -> bool {
    let mut inputs = row.inputs.iter().filter(|input| input.triggers());
    let is_list = |kind| matches!(kind, InputKind::List | InputKind::Fixed(_));
    inputs.next().is_some_and(|first| is_list(first.kind) || inputs.next().is_some())
}

/// The steps that take the event and [can join](can_join).
pub(super) fn joining(table: &DependencyTable, event: EventIndex) -> impl Iterator<Item = StepIndex> {
    table.event(event).takers.iter().copied().filter(|step| can_join(table.step(*step)))
}

impl Joins {
    /// Adds a branch that has an event of its own which the step takes. `sweeps` is the number of sweeps so
    /// far. Called for each such event: the first one sets `since`, and a later one may make the step ready.
    pub(super) fn add(&mut self, step: StepIndex, scope: ScopeId, is_ready: bool, sweeps: u32) {
        let Branches { ready, unready } = self.0.entry(step).or_default();
        if ready.contains_key(&scope) {
            return;
        }
        if is_ready {
            let since = unready.remove(&scope).unwrap_or(sweeps);
            ready.insert(scope, Join { since, latest: SmallVec::new() });
        } else {
            unready.entry(scope).or_insert(sweeps);
        }
    }

    /// Marks that the step has all it requires in the branch.
    /// Ignores a branch without an event of its own for the step: the evaluation in the outer scope covers
    /// it.
    pub(super) fn set_ready(&mut self, step: StepIndex, scope: ScopeId) {
        let Some(Branches { ready, unready }) = self.0.get_mut(&step) else { return };
        if let Some(since) = unready.remove(&scope) {
            ready.insert(scope, Join { since, latest: SmallVec::new() });
        }
    }

    pub(super) fn is_ready(&self, step: StepIndex, scope: ScopeId) -> bool {
        self.0.get(&step).is_some_and(|branches| branches.ready.contains_key(&scope))
    }

    pub(super) fn is_unready(&self, step: StepIndex, scope: ScopeId) -> bool {
        self.0.get(&step).is_some_and(|branches| branches.unready.contains_key(&scope))
    }

    /// The branches in which the step is ready.
    pub(super) fn ready(&self, step: StepIndex) -> impl Iterator<Item = ScopeId> {
        self.0.get(&step).into_iter().flat_map(|branches| branches.ready.keys().copied())
    }

    /// The branches in which something that the step requires is missing.
    pub(super) fn unready(&self, step: StepIndex) -> impl Iterator<Item = ScopeId> {
        self.0.get(&step).into_iter().flat_map(|branches| branches.unready.keys().copied())
    }

    /// The join of a step that is ready in the branch; `None` otherwise.
    pub(super) fn join_mut(&mut self, step: StepIndex, scope: ScopeId) -> Option<&mut Join> {
        self.0.get_mut(&step)?.ready.get_mut(&scope)
    }

    /// The steps that joined in the branch. O(steps that join).
    pub(super) fn of(&self, scope: ScopeId) -> Vec<Joined> {
        let joined = self.0.iter().filter_map(|(step, branches)| {
            let unready = branches.unready.get(&scope).map(|since| (*since, SmallVec::new()));
            let ready = || branches.ready.get(&scope).map(|join| (join.since, join.latest.clone()));
            let (since, latest) = unready.or_else(ready)?;
            Some((*step, since, latest))
        });
        joined.collect()
    }

    /// Adds a branch that is open again.
    pub(super) fn put_back(&mut self, scope: ScopeId, (step, since, latest): Joined, is_ready: bool) {
        let Branches { ready, unready } = self.0.entry(step).or_default();
        if is_ready {
            ready.insert(scope, Join { since, latest });
        } else {
            unready.insert(scope, since);
        }
    }

    /// Removes a closed branch. Returns its steps, each with the number of sweeps before it joined. O(steps
    /// that join).
    pub(super) fn remove(&mut self, scope: ScopeId) -> impl Iterator<Item = (StepIndex, u32)> {
        self.0.iter_mut().filter_map(move |(step, branches)| {
            let since = match branches.unready.remove(&scope) {
                Some(since) => since,
                None => branches.ready.remove(&scope)?.since,
            };
            Some((*step, since))
        })
    }

    /// Every step and branch, with the number of sweeps before it joined.
    pub(super) fn iter(&self) -> impl Iterator<Item = (StepIndex, ScopeId, u32)> {
        self.0.iter().flat_map(|(step, Branches { ready, unready })| {
            let ready = ready.iter().map(|(scope, join)| (scope, join.since));
            let all = ready.chain(unready.iter().map(|(scope, since)| (scope, *since)));
            all.map(|(scope, since)| (*step, *scope, since))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> StepIndex {
        StepIndex::at(0)
    }

    #[test]
    fn a_step_that_is_ready_in_a_branch_stays_so_until_the_branch_is_closed() {
        let mut joins = Joins::default();
        joins.add(step(), ScopeId(1), false, 3);
        assert!(joins.is_unready(step(), ScopeId(1)) && !joins.is_ready(step(), ScopeId(1)));
        joins.set_ready(step(), ScopeId(1));
        joins.add(step(), ScopeId(1), false, 5);
        assert!(joins.ready(step()).eq([ScopeId(1)]) && joins.unready(step()).count() == 0);
        assert!(joins.iter().eq([(step(), ScopeId(1), 3)]), "since its first event");
        assert!(joins.remove(ScopeId(1)).eq([(step(), 3)]));
        assert_eq!(joins.iter().count(), 0);
    }

    #[test]
    fn a_branch_without_an_event_of_its_own_does_not_become_ready() {
        let mut joins = Joins::default();
        joins.add(step(), ScopeId(1), true, 0);
        joins.set_ready(step(), ScopeId(2));
        assert!(joins.ready(step()).eq([ScopeId(1)]));
        assert!(joins.join_mut(step(), ScopeId(2)).is_none());
    }
}
