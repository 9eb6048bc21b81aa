//! Whether a run may begin something now: permits among the engine's runs, the lease of its engine, and how many of its
//! executions may run at a time (S21, S40). What these decide changes when something begins, never what a journal means.

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

/// What stands between a run and what it is to begin.
#[derive(Default)]
pub(super) struct Admission {
    /// Its permit among the engine's running runs; none if nothing bounds these.
    seat: Option<Box<Seat>>,
    /// None without leases.
    fence: Option<Box<Fence>>,
    /// The most executions at a time.
    most: usize,
    /// Executions that wait for others of the run, oldest first.
    deferred: VecDeque<Begins>,
}

/// Whether something may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admit {
    Now,
    /// Now, and not before: the run has just got its permit.
    Took,
    /// The run is woken when that may have changed.
    Later,
    /// The same; others have the permit meanwhile.
    Waits,
    /// A record that has to be written first was queued; the run is woken then.
    Queued,
}

impl Admission {
    pub(super) fn new(
        slots: Option<(Places, Option<Place>)>,
        lease: Option<&Arc<Lease>>,
        most: usize,
    ) -> Self {
        Self {
            seat: slots.map(|(places, place)| Seat::new(places, place)),
            fence: lease.map(|lease| Box::new(Fence::new(lease))),
            most,
            deferred: VecDeque::new(),
        }
    }

    /// Of a run that waits, with its permit's place.
    pub(super) fn of_seat(seat: Option<Box<Seat>>, most: usize) -> Self {
        Self { seat, most, ..Self::default() }
    }

    pub(super) fn take_seat(&mut self) -> (Option<Box<Seat>>, usize) {
        (self.seat.take(), self.most)
    }

    pub(super) fn fence_mut(&mut self) -> Option<&mut Fence> {
        self.fence.as_deref_mut()
    }

    /// The term of the lease for which the run is known to be this engine's.
    pub(super) fn term(&self) -> Option<u64> {
        self.fence.as_deref().and_then(Fence::term)
    }

    /// Whether a lease or a deferred execution is to be looked at before the run may be suspended.
    pub(super) fn is_plain(&self) -> bool {
        self.fence.is_none() && self.deferred.is_empty()
    }

    /// Whether the run may begin anything now.
    pub(super) fn admit(
        &mut self,
        journal: Option<&mut Journal>,
        at: SystemTime,
        cx: &mut Context<'_>,
    ) -> Admit {
        if let (Some(fence), Some(journal)) = (&mut self.fence, journal) {
            let fenced = fence.admit(journal, at, cx);
            if fenced != Admit::Now {
                return fenced;
            }
        }
        self.seat.as_mut().map_or(Admit::Now, |seat| seat.admit(cx))
    }

    /// Whether another execution may begin beside so many.
    #[inline]
    pub(super) fn has_room(&self, executing: usize) -> bool {
        executing < self.most
    }

    /// Whether the run may begin something without asking anybody: no lease is to be looked at, and it has its permit.
    #[inline]
    pub(super) fn is_admitted(&self) -> bool {
        self.fence.is_none() && self.seat.as_ref().is_none_or(|seat| seat.has_place())
    }

    /// Whether an execution may begin beside so many without asking anybody.
    #[inline]
    pub(super) fn is_open(&self, executing: usize) -> bool {
        self.is_admitted() && self.deferred.is_empty() && self.has_room(executing)
    }

    /// The run has as many executions as it may: this one begins when another completes.
    pub(super) fn defer(&mut self, begins: Begins) {
        self.deferred.push_back(begins);
    }

    /// It may not begin now, and waits longest as before.
    pub(super) fn put_back(&mut self, begins: Begins) {
        self.deferred.push_front(begins);
    }

    /// The execution that waits longest, if there is room beside so many.
    pub(super) fn next_deferred(&mut self, executing: usize) -> Option<Begins> {
        if self.deferred.is_empty() || !self.has_room(executing) { None } else { self.deferred.pop_front() }
    }

    pub(super) fn deferred(&self) -> impl ExactSizeIterator<Item = &Begins> {
        self.deferred.iter()
    }

    /// The executions that are due and have not begun, be they wanted or not.
    pub(super) fn due<'a>(&'a self, state: &'a RunState) -> impl Iterator<Item = &'a ExecutionStart> {
        let due = state.effects.iter().map(|effect| &effect.begins).chain(self.deferred());
        due.filter_map(|begins| if let Begins::Execution(start) = begins { Some(start) } else { None })
    }

    /// The same, by their numbers.
    pub(super) fn unbegun(&self, state: &RunState) -> FxHashSet<ExecutionId> {
        self.due(state).map(|start| start.execution).collect()
    }

    /// The most executions at a time, if that is what executions wait for.
    pub(super) fn full(&self) -> Option<usize> {
        (!self.deferred.is_empty()).then_some(self.most)
    }

    /// The journal ends where the store has it: what was queued behind is queued again, if it is still needed.
    pub(super) fn rewind(&mut self) {
        if let Some(fence) = &mut self.fence {
            fence.rewind();
        }
    }

    /// Where the run waits for a permit, if it does.
    pub(super) fn gate(&self) -> Option<&Gate> {
        self.seat.as_ref().and_then(|seat| seat.gate())
    }

    /// A run that waits, or has ended, gives its permit to another.
    pub(super) fn give_up_permit(&mut self) {
        if let Some(seat) = &mut self.seat {
            seat.give_up_permit();
        }
    }
}

#[cfg(test)]
mod tests;
