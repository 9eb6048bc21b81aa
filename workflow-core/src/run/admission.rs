//! Admission: whether a run may begin an execution or a precondition now (S21, S40).
//!
//! Bounds stand between an effect and its begin. Each may delay it; none changes what a journal means.
//!
//! ```text
//! effect ──▶ executions of the run ──▶ lease of the engine ──▶ permit of the run ──▶ begins
//!            (limit, deferred)         (lease guard)           (permit)
//! ```
//!
//! Admission knows neither futures nor what an effect does. The driver asks, performs the effect, and gives
//! the permit up when the run waits or ends.
//!
//! # Invariants
//! - Deferred executions begin in order. While one is deferred, no other execution passes it
//!   ([`Admission::admits_directly`]).
//! - A run that got `Later`, `Waits` or `Queued` is woken when the answer may have changed.
//!
//! # Example
//! At most two executions at a time: 1 and 2 execute, 3 and 4 are deferred. Execution 2 completes, and 3
//! begins. A new execution 5 waits behind 4.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Context;
use std::time::SystemTime;

use rustc_hash::{FxHashMap, FxHashSet};

use super::journal::Journal;
use super::lease_guard::LeaseGuard;
use super::permits::{Limit, Permit, PermitRequest};
use super::run_permit::RunPermit;
use super::state::{EffectKind, RunState};
use super::turns::Turn;
use crate::id::ExecutionId;
use crate::lease::Lease;
use crate::scheduler::ExecutionStart;

/// The bounds on what a run may begin.
#[derive(Default)]
pub(super) struct Admission {
    /// The run's permit among the engine's running runs; `None` if no limit applies.
    permit: Option<Box<RunPermit>>,
    /// The check of the engine's lease; `None` without leases.
    lease_guard: Option<Box<LeaseGuard>>,
    /// The most executions of the run at a time. Preconditions do not count.
    limit: usize,
    /// Executions that wait for others of the run to complete, oldest first. The store has what they follow from. An
    /// execution that was dropped meanwhile is removed when its turn comes.
    deferred: VecDeque<EffectKind>,
    /// Executions that wait for their turn or have it; `None` in a run under which no two processes ended.
    turns: Option<Box<FxHashMap<ExecutionId, TakenTurn>>>,
}

/// The turn of an execution.
struct TakenTurn {
    /// Dropped when the attempt has ended.
    _turn: Arc<Turn>,
    stage: TurnStage,
}

/// How far an execution is with its turn. From the wait to the end of the attempt it counts among the run's executions,
/// so that none that has its turn waits for one that waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnStage {
    /// It waits for the turn.
    Waits,
    /// It has the turn, and its attempt waits for the store.
    Has,
    /// Its attempt has begun.
    Begun,
}

/// The answer of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admit {
    /// The effect begins, and nothing changed.
    Now,
    /// Now, since the run has just taken its permit: its active time counts from here.
    TookPermit,
    /// Not now: the engine's lease has lapsed, or the store has not confirmed the run for the new term.
    WaitsForLease,
    /// Not now: other runs have the permits. The run's active time does not count meanwhile.
    WaitsForPermit,
    /// Not now: a `RunKept` record was queued, and the store must have it first.
    RecordQueued,
}

impl Admission {
    pub(super) fn new(
        slots: Option<(PermitRequest, Option<Permit>)>,
        lease: Option<&Arc<Lease>>,
        limit: usize,
    ) -> Self {
        Self {
            permit: slots.map(|(places, place)| RunPermit::new(places, place)),
            lease_guard: lease.map(|lease| Box::new(LeaseGuard::new(lease))),
            limit,
            deferred: VecDeque::new(),
            turns: None,
        }
    }

    /// The admission of a run that was suspended with this permit and this bound. It has no lease guard: only runs
    /// without a journal are suspended.
    pub(super) fn with_permit(permit: Option<Box<RunPermit>>, limit: usize) -> Self {
        Self { permit, limit, ..Self::default() }
    }

    /// The permit and the bound, for a run that is suspended.
    pub(super) fn take_permit(&mut self) -> (Option<Box<RunPermit>>, usize) {
        (self.permit.take(), self.limit)
    }

    /// The check of the lease, to set its term after a reload.
    pub(super) fn lease_guard_mut(&mut self) -> Option<&mut LeaseGuard> {
        self.lease_guard.as_deref_mut()
    }

    /// The term of the lease in which the run is known to belong to this engine.
    pub(super) fn term(&self) -> Option<u64> {
        self.lease_guard.as_deref().and_then(LeaseGuard::term)
    }

    /// Whether neither a lease nor a deferred execution keeps the run from being suspended.
    pub(super) fn allows_suspension(&self) -> bool {
        self.lease_guard.is_none() && self.deferred.is_empty()
    }

    /// Whether the run may begin anything now. Takes the run's permit if one is free; else the waker wakes
    /// the run later.
    pub(super) fn admit(
        &mut self,
        journal: Option<&mut Journal>,
        at: SystemTime,
        cx: &mut Context<'_>,
    ) -> Admit {
        // The lease comes first: a run that another engine may own must not take a permit from runs that can
        // begin.
        if let (Some(guard), Some(journal)) = (&mut self.lease_guard, journal) {
            let admit = guard.admit(journal, at, cx);
            if admit != Admit::Now {
                return admit;
            }
        }
        self.permit.as_mut().map_or(Admit::Now, |permit| permit.admit(cx))
    }

    /// Whether another execution may begin beside `executing` others.
    #[inline]
    pub(super) fn has_room(&self, executing: usize) -> bool {
        executing < self.limit
    }

    /// Whether the run may begin something without [`admit`](Self::admit): it needs no lease and has its
    /// permit.
    #[inline]
    pub(super) fn is_admitted(&self) -> bool {
        self.lease_guard.is_none() && self.permit.as_ref().is_none_or(|permit| permit.has_permit())
    }

    /// Whether another execution may begin directly, with no check and no deferred one before it.
    #[inline]
    pub(super) fn admits_directly(&self, executing: usize) -> bool {
        self.is_admitted() && self.deferred.is_empty() && self.has_room(executing)
    }

    /// Defers an execution until another one completes.
    pub(super) fn defer(&mut self, begins: EffectKind) {
        self.deferred.push_back(begins);
    }

    /// Puts a deferred execution back in front, because the run may not begin it now.
    pub(super) fn put_back(&mut self, begins: EffectKind) {
        self.deferred.push_front(begins);
    }

    /// Takes the oldest deferred execution, if another one fits beside `executing`.
    pub(super) fn next_deferred(&mut self, executing: usize) -> Option<EffectKind> {
        if self.deferred.is_empty() || !self.has_room(executing) { None } else { self.deferred.pop_front() }
    }

    /// The deferred executions, oldest first.
    pub(super) fn deferred(&self) -> impl ExactSizeIterator<Item = &EffectKind> {
        self.deferred.iter()
    }

    /// The first attempts that have not begun, from the effects and the deferred ones. Some may not be wanted
    /// any more.
    pub(super) fn due<'a>(&'a self, state: &'a RunState) -> impl Iterator<Item = &'a ExecutionStart> {
        let due = state.effects.iter().map(|effect| &effect.begins).chain(self.deferred());
        due.filter_map(|begins| if let EffectKind::Execution(start) = begins { Some(start) } else { None })
    }

    /// The executions of [`due`](Self::due), by their numbers.
    pub(super) fn unbegun(&self, state: &RunState) -> FxHashSet<ExecutionId> {
        self.due(state).map(|start| start.execution).collect()
    }

    /// The bound on executions, if executions are deferred because of it.
    pub(super) fn full(&self) -> Option<usize> {
        (!self.deferred.is_empty()).then_some(self.limit)
    }

    /// Keeps the turn of an execution, which waits for it from here on.
    pub(super) fn take_turn(&mut self, execution: ExecutionId, turn: Arc<Turn>) {
        let turn = TakenTurn { _turn: turn, stage: TurnStage::Waits };
        self.turns.get_or_insert_default().insert(execution, turn);
    }

    /// Notes that an execution has come so far with its turn. Returns whether it had one.
    pub(super) fn note_turn(&mut self, execution: ExecutionId, stage: TurnStage) -> bool {
        let turn = self.turns.as_mut().and_then(|turns| turns.get_mut(&execution));
        turn.map(|turn| turn.stage = stage).is_some()
    }

    /// How far an execution is with its turn; `None` if it takes none.
    pub(super) fn turn_of(&self, execution: ExecutionId) -> Option<TurnStage> {
        self.turns.as_ref()?.get(&execution).map(|turn| turn.stage)
    }

    /// The executions that wait for their turns, or have one and have not begun.
    pub(super) fn turns_before_begin(&self) -> impl Iterator<Item = (ExecutionId, TurnStage)> {
        let turns = self.turns.iter().flat_map(|turns| turns.iter());
        turns.map(|(id, turn)| (*id, turn.stage)).filter(|(_, stage)| *stage != TurnStage::Begun)
    }

    /// Gives the turn of an execution to the next one, because its attempt has ended.
    #[inline]
    pub(super) fn give_up_turn(&mut self, execution: ExecutionId) {
        if let Some(turns) = &mut self.turns {
            turns.remove(&execution);
        }
    }

    /// Forgets a lease record that a rewind removed from the journal. It is queued again if still needed.
    pub(super) fn rewind(&mut self) {
        if let Some(guard) = &mut self.lease_guard {
            guard.rewind();
        }
    }

    /// The limit at which the run waits for a permit, if it does.
    pub(super) fn waits_at(&self) -> Option<&Limit> {
        self.permit.as_ref().and_then(|permit| permit.waits_at())
    }

    /// Gives the run's permit to another run, because this one waits or has ended.
    pub(super) fn give_up_permit(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.give_up_permit();
        }
    }
}

#[cfg(test)]
mod tests;
