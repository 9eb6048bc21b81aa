//! Timers: set with the batch of an execution, pending until they fire or are dropped. When one is due, only who
//! has a clock can tell: here it is pending, and fires when that is told.

use super::{Cause, Scheduler};
use crate::id::{ExecutionId, ScopeId, Seq, TimerId};
use crate::table::EventIndex;

/// A timer of a batch, with its place in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerEntry {
    /// Its number.
    pub timer: TimerId,
    /// The execution that sets it.
    pub execution: ExecutionId,
    /// The scope that its event will be of; it holds the scope open (S47).
    pub scope: ScopeId,
    /// What enters the log when it fires.
    pub event: EventIndex,
    /// For one that closes a request: the request.
    pub request: Option<Seq>,
}

impl Scheduler {
    /// The timers that are pending, in the order in which they were set.
    pub fn timers(&self) -> impl ExactSizeIterator<Item = &TimerEntry> {
        self.timers.values()
    }

    /// The timer, while it is pending.
    pub(crate) fn timer(&self, timer: TimerId) -> Option<&TimerEntry> {
        self.timers.get(&timer)
    }

    /// How many timers are pending, or will be once their batches are in the log.
    pub(crate) fn count_timers(&self) -> usize {
        self.timers.len() + self.appending.iter().map(super::append::Batch::timers).sum::<usize>()
    }

    /// A timer of a batch that is in the log.
    pub(super) fn set_timer(&mut self, entry: TimerEntry) {
        match entry.request {
            // The request holds the scope already; one that is not open was dropped with its scope.
            Some(request) => match self.requests.get_mut(&request) {
                Some(open) => open.timer = Some(entry.timer),
                None => return,
            },
            None if self.scopes.get(entry.scope).is_some() => self.hold(entry.scope),
            None => return,
        }
        self.timers.insert(entry.timer, entry);
    }

    /// The hold of the timer, or of the request that it closes, becomes the batch's.
    pub(super) fn fire(&mut self, timer: TimerId) {
        let pending = if self.refuses() { None } else { self.timers.remove(&timer) };
        let Some(TimerEntry { execution, scope, event, request, .. }) = pending else {
            return self.refuse();
        };
        let cause = match request {
            Some(request) => {
                self.requests.remove(&request);
                Cause::Expired(request)
            }
            None => Cause::Timer { timer, execution },
        };
        self.append_one(cause, scope, event);
    }
}
