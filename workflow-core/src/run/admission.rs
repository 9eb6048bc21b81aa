//! Admission: whether a run may begin an execution or a precondition now (S21, S40).
//!
//! Three bounds stand between an effect and its begin. Each may delay it; none changes what a journal means.
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
//!   ([`Admission::is_open`]).
//! - A run that got `Later`, `Waits` or `Queued` is woken when the answer may have changed.
//!
//! # Example
//! At most two executions at a time: 1 and 2 execute, 3 and 4 are deferred. Execution 2 completes, and 3
//! begins. A new execution 5 waits behind 4.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Context;
use std::time::SystemTime;

use rustc_hash::FxHashSet;

use super::fence::Fence;
use super::journal::Journal;
use super::places::{Gate, Place, Places};
use super::seat::Seat;
use super::state::{Begins, RunState};
use crate::id::ExecutionId;
use crate::lease::Lease;
use crate::scheduler::ExecutionStart;

/// The bounds on what a run may begin.
#[derive(Default)]
pub(super) struct Admission {
    /// The run's permit among the engine's running runs; `None` if no limit applies.
    permit: Option<Box<Seat>>,
    /// The check of the engine's lease; `None` without leases.
    lease_guard: Option<Box<Fence>>,
    /// The most executions of the run at a time.
    limit: usize,
    /// Executions that wait for others of the run to complete, oldest first.
    deferred: VecDeque<Begins>,
}

/// The answer of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admit {
    Now,
    /// Now, since the run has just taken its permit: its active time counts from here.
    Took,
    /// Not now: the engine's lease has lapsed, or the store has not confirmed the run for the new term.
    Later,
    /// Not now: other runs have the permits. The run's active time does not count meanwhile.
    Waits,
    /// Not now: a `RunKept` record was queued, and the store must have it first.
    Queued,
}

impl Admission {
    pub(super) fn new(
        slots: Option<(Places, Option<Place>)>,
        lease: Option<&Arc<Lease>>,
        limit: usize,
    ) -> Self {
        Self {
            permit: slots.map(|(places, place)| Seat::new(places, place)),
            lease_guard: lease.map(|lease| Box::new(Fence::new(lease))),
            limit,
            deferred: VecDeque::new(),
        }
    }

    /// The admission of a run that was suspended with this permit and this bound.
    pub(super) fn of_seat(permit: Option<Box<Seat>>, limit: usize) -> Self {
        Self { permit, limit, ..Self::default() }
    }

    pub(super) fn take_seat(&mut self) -> (Option<Box<Seat>>, usize) {
        (self.permit.take(), self.limit)
    }

    pub(super) fn fence_mut(&mut self) -> Option<&mut Fence> {
        self.lease_guard.as_deref_mut()
    }

    /// The term of the lease in which the run is known to belong to this engine.
    pub(super) fn term(&self) -> Option<u64> {
        self.lease_guard.as_deref().and_then(Fence::term)
    }

    /// Whether neither a lease nor a deferred execution keeps the run from being suspended.
    pub(super) fn is_plain(&self) -> bool {
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
        self.lease_guard.is_none() && self.permit.as_ref().is_none_or(|permit| permit.has_place())
    }

    /// Whether another execution may begin directly, with no check and no deferred one before it.
    #[inline]
    pub(super) fn is_open(&self, executing: usize) -> bool {
        self.is_admitted() && self.deferred.is_empty() && self.has_room(executing)
    }

    /// Defers an execution until another one completes.
    pub(super) fn defer(&mut self, begins: Begins) {
        self.deferred.push_back(begins);
    }

    /// Puts a deferred execution back in front, because the run may not begin it now.
    pub(super) fn put_back(&mut self, begins: Begins) {
        self.deferred.push_front(begins);
    }

    /// Takes the oldest deferred execution, if another one fits beside `executing`.
    pub(super) fn next_deferred(&mut self, executing: usize) -> Option<Begins> {
        if self.deferred.is_empty() || !self.has_room(executing) { None } else { self.deferred.pop_front() }
    }

    pub(super) fn deferred(&self) -> impl ExactSizeIterator<Item = &Begins> {
        self.deferred.iter()
    }

    /// The first attempts that have not begun, from the effects and the deferred ones. Some may not be wanted
    /// any more.
    pub(super) fn due<'a>(&'a self, state: &'a RunState) -> impl Iterator<Item = &'a ExecutionStart> {
        let due = state.effects.iter().map(|effect| &effect.begins).chain(self.deferred());
        due.filter_map(|begins| if let Begins::Execution(start) = begins { Some(start) } else { None })
    }

    /// The executions of [`due`](Self::due), by their numbers.
    pub(super) fn unbegun(&self, state: &RunState) -> FxHashSet<ExecutionId> {
        self.due(state).map(|start| start.execution).collect()
    }

    /// The bound on executions, if executions are deferred because of it.
    pub(super) fn full(&self) -> Option<usize> {
        (!self.deferred.is_empty()).then_some(self.limit)
    }

    /// Forgets a lease record that a rewind removed from the journal. It is queued again if still needed.
    pub(super) fn rewind(&mut self) {
        if let Some(guard) = &mut self.lease_guard {
            guard.rewind();
        }
    }

    /// The limit at which the run waits for a permit, if it does.
    pub(super) fn gate(&self) -> Option<&Gate> {
        self.permit.as_ref().and_then(|permit| permit.gate())
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
