//! The memory of a run's state. A finished run moves the same memory into its report, so that nothing is
//! copied.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::state::RunState;
use crate::scheduler::SchedulerLimits;
use crate::table::DependencyTable;

/// The state of a run; empty once the finished run has given it to its report.
#[derive(Debug)]
pub(super) struct StateBox(Option<Box<RunState>>);

const UNTIL_FINISHED: &str = "a run has its state until it has finished";

impl StateBox {
    /// A new state, created in its final memory.
    #[inline]
    pub(super) fn new(table: &Arc<DependencyTable>, limits: SchedulerLimits) -> Self {
        Self(Some(Box::new(RunState::new(table, limits))))
    }

    pub(super) fn of(state: RunState) -> Self {
        Self(Some(Box::new(state)))
    }

    /// Takes the state out of a run that has finished. The run does not read or change its state afterwards.
    pub(super) fn take(&mut self) -> Self {
        Self(self.0.take())
    }
}

impl Deref for StateBox {
    type Target = RunState;

    #[inline]
    fn deref(&self) -> &RunState {
        self.0.as_ref().expect(UNTIL_FINISHED)
    }
}

impl DerefMut for StateBox {
    #[inline]
    fn deref_mut(&mut self) -> &mut RunState {
        self.0.as_mut().expect(UNTIL_FINISHED)
    }
}
