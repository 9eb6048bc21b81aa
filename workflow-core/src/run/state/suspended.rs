//! The compact form of the state of a run that waits for its handles alone, and the way back.

use std::sync::Arc;
use std::time::Duration;

use super::RunState;
use super::log::{Log, SuspendedLog};
use super::trace::{SuspendedTrace, Trace};
use crate::scheduler::SuspendedScheduler;
use crate::store::Position;
use crate::table::DependencyTable;

/// The compact state of a run that waits only for its handles.
#[derive(Debug)]
pub(in crate::run) struct SuspendedState {
    /// Has the open requests that the run waits for.
    scheduler: SuspendedScheduler,
    /// All events, since later steps may be bound to any of them.
    log: SuspendedLog,
    /// All executions, each of which succeeded.
    trace: SuspendedTrace,
    now: Duration,
    position: Position,
}

impl RunState {
    /// Whether the state fits [`SuspendedState`]: the run waits for its handles alone. O(1).
    pub(in crate::run) fn can_suspend(&self) -> bool {
        self.scheduler.can_suspend()
            && self.log.can_suspend()
            && self.trace.can_suspend()
            && self.timers.is_empty()
            && self.failures.is_empty()
            && self.rare.is_none()
            && self.effects.is_empty()
            && self.derived.is_empty()
    }

    /// Moves the state into its compact form. [`can_suspend`](Self::can_suspend) must hold.
    pub(in crate::run) fn suspend(&mut self) -> SuspendedState {
        SuspendedState {
            scheduler: SuspendedScheduler::of(&mut self.scheduler),
            log: self.log.suspend(),
            trace: self.trace.suspend(),
            now: self.now,
            position: self.position,
        }
    }
}

impl SuspendedState {
    /// The state as it was before it was suspended.
    pub(in crate::run) fn restore(self, table: Arc<DependencyTable>) -> RunState {
        let Self { scheduler, log, trace, now, position } = self;
        RunState {
            log: Log::restore(log),
            trace: Trace::restore(trace),
            now,
            position,
            ..RunState::of(scheduler.restore(table))
        }
    }
}
