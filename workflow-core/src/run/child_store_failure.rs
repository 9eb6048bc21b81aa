//! A run whose child's store failed, or that has a child which this program cannot resume: how the child ends is not known
//! before another engine drives it. So no step is told, and the run stops too and leaves its journal open.

use super::RunShared;
use super::drive::Run;
use crate::error::{RunError, StartError};
use crate::store::StoreError;

/// What is wrong with the store of a child that ended like that; none if nothing is.
pub(super) fn failure_of(error: &RunError) -> Option<StoreError> {
    match error {
        RunError::Store { source } | RunError::Start(StartError::Store(source)) => Some(source.clone()),
        RunError::Conflict { .. }
        | RunError::Incompatible { .. }
        | RunError::Start(StartError::Elsewhere { .. }) => Some(StoreError::unavailable(error.clone())),
        _ => None,
    }
}

impl RunShared {
    /// Whether the run stops and leaves its journal open, because of that end of a child or of a signal before: then no
    /// step is told. A run without a journal does not: there is nowhere to go on from.
    pub(crate) fn stops_after_child(&self, error: &RunError) -> bool {
        // The child's task is gone, and nothing is wrong with the store: neither is anything with the run's own journal.
        if self.common.is_kept && matches!(error, RunError::Abandoned) {
            self.note_leave();
        }
        self.common.is_kept && (self.signals.child_ended(error) || self.stops())
    }

    /// Whether it stops and leaves its journal open.
    pub(crate) fn stops(&self) -> bool {
        self.common.is_kept && (self.is_to_be_left() || self.signals.child_store_failure().is_some())
    }
}

impl Run {
    /// Stops as if the run's own store had failed, once what it is being given is answered.
    pub(super) fn read_child_store_failure(&mut self) {
        let Some(journal) = self.journal.as_mut() else { return };
        let Some(why) = self.shared.signals.child_store_failure() else { return };
        if self.state.end().is_none() && journal.fail(why) {
            self.unkept();
        }
    }
}
