//! The memory in which a run has its state. When the run has finished, its report and explanation are made from the same
//! memory: nothing is copied.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::state::RunState;
use crate::scheduler::SchedulerLimits;
use crate::table::DependencyTable;

/// The state of a run until the run has finished, and from then on of its report.
#[derive(Debug)]
pub(super) struct HeldState(Option<Box<RunState>>);

const UNTIL_FINISHED: &str = "a run has its state until it has finished";

impl HeldState {
    /// The state of a run that begins. It is made where it stays.
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

impl Deref for HeldState {
    type Target = RunState;

    #[inline]
    fn deref(&self) -> &RunState {
        self.0.as_ref().expect(UNTIL_FINISHED)
    }
}

impl DerefMut for HeldState {
    #[inline]
    fn deref_mut(&mut self) -> &mut RunState {
        self.0.as_mut().expect(UNTIL_FINISHED)
    }
}
