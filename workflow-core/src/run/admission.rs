//! Admission: whether a run may begin an execution or a precondition now (S21, S40).
//!
//! Bounds stand between an effect and its begin. Each may delay it; none changes what a journal means.
//!
//! ```text
//! effect ──▶ executions of the run ──▶ lease of the engine ──▶ permit of the run ──▶ begins
//!            (limit, deferred)         (lease guard)           (permit)
//! ```
//!
//! An attempt of a step with a named limit then needs a permit of that limit too ([`limited`](super::limited)).
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
use super::limited::LimitedAttempts;
use super::own_permit::{Gate, OwnPermit};
use super::permits::{Permit, PermitRequest};
use super::state::{EffectKind, RunState};
use super::turns::Turn;
use crate::id::ExecutionId;
use crate::lease::Lease;
use crate::report::WaitsFor;
use crate::scheduler::ExecutionStart;

/// The bounds on what a run may begin.
#[derive(Default)]
pub(super) struct Admission {
    /// The run's permit among the engine's running runs; `None` if no limit applies.
    permit: Option<Box<OwnPermit>>,
    /// The check of the engine's lease; `None` without leases.
    lease_guard: Option<Box<LeaseGuard>>,
    /// The most executions of the run at a time. Preconditions do not count.
    limit: usize,
    /// Executions that wait for others of the run to complete, oldest first. The store has what they follow from. An
    /// execution that was dropped meanwhile is removed when its turn comes.
    deferred: VecDeque<EffectKind>,
    /// Parts that few runs need; `None` until the run does.
    rare: Option<Box<Rare>>,
}

/// The parts of an admission that few runs need.
#[derive(Default)]
struct Rare {
    /// Executions that wait for their turn or have it, of a run under which two processes ended.
    turns: FxHashMap<ExecutionId, TakenTurn>,
    /// The attempts of steps with named limits.
    limited: LimitedAttempts,
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
            permit: slots.map(|(places, place)| OwnPermit::new(places, place)),
            lease_guard: lease.map(|lease| Box::new(LeaseGuard::new(lease))),
            limit,
            deferred: VecDeque::new(),
            rare: None,
        }
    }

    /// The admission of a run that was suspended with this permit and this bound. It has no lease guard: only runs
    /// without a journal are suspended.
    pub(super) fn with_permit(permit: Option<Box<OwnPermit>>, limit: usize) -> Self {
        Self { permit, limit, ..Self::default() }
    }

    /// Lets the run begin nothing until the gate of its inbox is open.
    pub(super) fn wait_for_inbox(&mut self, gate: Arc<Gate>) {
        self.permit.get_or_insert_default().wait_for_inbox(gate);
    }

    /// Whether a timer that is due then must not fire before more messages of the inbox are read.
    pub(super) fn holds_timer(&self, due: SystemTime) -> bool {
        self.permit.as_ref().is_some_and(|permit| permit.holds_timer(due))
    }

    /// The run has ended, and its clean-up waits for no message.
    pub(super) fn forget_inbox(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.forget_inbox();
        }
    }

    /// Whether the run waits for an inbox that is away.
    #[inline]
    pub(super) fn lacks_inbox(&self) -> bool {
        self.permit.as_ref().is_some_and(|permit| permit.lacks_inbox())
    }

    /// Whether the inbox of the run is being read.
    pub(super) fn reads_inbox(&self) -> bool {
        self.permit.as_ref().is_some_and(|permit| permit.reads_inbox())
    }

    /// Notes that the journal has that the run waits for its inbox. Returns whether that is news.
    pub(super) fn note_recorded(&mut self) -> bool {
        self.permit.as_mut().is_some_and(|permit| permit.note_recorded(true))
    }

    /// The permit and the bound, for a run that is suspended.
    pub(super) fn take_permit(&mut self) -> (Option<Box<OwnPermit>>, usize) {
        (self.permit.take(), self.limit)
    }

    /// The check of the lease, to set its term after a reload.
    pub(super) fn lease_guard_mut(&mut self) -> Option<&mut LeaseGuard> {
        self.lease_guard.as_deref_mut()
    }

    /// The term of the lease in which the run is known to belong to this engine.
    pub(super) fn term(&mut self, journal: &Journal) -> Option<u64> {
        self.lease_guard.as_deref_mut()?.term(journal)
    }

    /// Whether neither a lease nor a deferred execution keeps the run from being suspended.
    pub(super) fn allows_suspension(&self) -> bool {
        self.lease_guard.is_none()
            && self.deferred.is_empty()
            && self.limited().is_none_or(LimitedAttempts::is_idle)
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
        executing + self.limited().map_or(0, LimitedAttempts::counted) < self.limit
    }

    /// Whether this execution may begin beside `executing` others. One that has its turn is among them already, and one
    /// of which the journal has that it begins counts too.
    #[inline]
    pub(super) fn has_room_for(&self, execution: ExecutionId, executing: usize) -> bool {
        self.has_room(executing)
            || self
                .rare
                .as_ref()
                .is_some_and(|rare| rare.turns.contains_key(&execution) || rare.limited.is_counted(execution))
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

    /// Takes the deferred executions: those that wait for the run, oldest first, and then those that wait for their
    /// steps. They hold nothing any more.
    pub(super) fn take_deferred(&mut self) -> VecDeque<EffectKind> {
        let mut deferred = std::mem::take(&mut self.deferred);
        if let Some(rare) = &mut self.rare {
            rare.limited.take_deferred(&mut deferred);
        }
        deferred
    }

    /// Puts a deferred execution back in front, because the run may not begin it now.
    pub(super) fn put_back(&mut self, begins: EffectKind) {
        self.deferred.push_front(begins);
    }

    /// Takes the oldest deferred execution, if another one fits beside `executing`.
    #[inline]
    pub(super) fn next_deferred(&mut self, executing: usize) -> Option<EffectKind> {
        if self.deferred.is_empty() || !self.has_room(executing) { None } else { self.deferred.pop_front() }
    }

    /// The deferred executions: those that wait for the run, oldest first, and then those that wait for their steps and
    /// for named limits.
    pub(super) fn deferred(&self) -> impl Iterator<Item = &EffectKind> {
        self.deferred.iter().chain(self.limited().into_iter().flat_map(LimitedAttempts::deferred))
    }

    /// How many executions are deferred.
    pub(super) fn deferred_count(&self) -> usize {
        self.deferred.len() + self.limited().map_or(0, LimitedAttempts::deferred_count)
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
        self.rare.get_or_insert_default().turns.insert(execution, turn);
    }

    /// Notes that an execution has come so far with its turn. Returns whether it had one.
    pub(super) fn note_turn(&mut self, execution: ExecutionId, stage: TurnStage) -> bool {
        let turn = self.rare.as_mut().and_then(|rare| rare.turns.get_mut(&execution));
        turn.map(|turn| turn.stage = stage).is_some()
    }

    /// How far an execution is with its turn; `None` if it takes none.
    pub(super) fn turn_of(&self, execution: ExecutionId) -> Option<TurnStage> {
        self.rare.as_ref()?.turns.get(&execution).map(|turn| turn.stage)
    }

    /// The executions that wait for their turns, or have one and have not begun.
    pub(super) fn turns_before_begin(&self) -> impl Iterator<Item = (ExecutionId, TurnStage)> {
        let turns = self.rare.iter().flat_map(|rare| rare.turns.iter());
        turns.map(|(id, turn)| (*id, turn.stage)).filter(|(_, stage)| *stage != TurnStage::Begun)
    }

    /// Gives the turn of an execution to the next one, because its attempt has ended, or waits for a named limit.
    /// Returns whether it had one.
    #[inline]
    pub(super) fn give_up_turn(&mut self, execution: ExecutionId) -> bool {
        self.rare.as_mut().is_some_and(|rare| rare.turns.remove(&execution).is_some())
    }

    /// The attempts of steps with named limits; `None` if there was none yet.
    #[inline]
    pub(super) fn limited(&self) -> Option<&LimitedAttempts> {
        self.rare.as_ref().map(|rare| &rare.limited)
    }

    /// The same, to change.
    pub(super) fn limited_mut(&mut self) -> &mut LimitedAttempts {
        &mut self.rare.get_or_insert_default().limited
    }

    /// Notes that the begin of an attempt is on its way to the store.
    pub(super) fn note_journaled(&mut self, execution: ExecutionId) {
        if let Some(rare) = &mut self.rare {
            rare.limited.note_journaled(execution);
        }
    }

    /// Whether there was an attempt of a step with a named limit, or a turn.
    #[inline]
    pub(super) fn is_rare(&self) -> bool {
        self.rare.is_some()
    }

    /// Defers an attempt of a step with a named limit. One that gave a permit back comes before the others, behind those
    /// that did so earlier.
    pub(super) fn defer_limited(&mut self, begins: EffectKind) {
        let Some(rare) = &mut self.rare else { return self.deferred.push_back(begins) };
        rare.limited.defer_for_room(&mut self.deferred, begins);
    }

    /// Forgets records that a rewind removed from the journal. They are queued again if still needed.
    pub(super) fn rewind(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.note_recorded(false);
        }
        if let Some(guard) = &mut self.lease_guard {
            guard.rewind();
        }
    }

    /// The inbox or the limit for which the run waits, if it does.
    pub(super) fn waits_for(&self) -> Option<WaitsFor> {
        self.permit.as_ref().and_then(|permit| permit.waits_for())
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
