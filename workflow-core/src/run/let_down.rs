//! A run whose child the store has let down, or the program that goes on with it: what becomes of the child is not known
//! before somebody else does, so that no step is told, and the run stops too and is left as it is.

use std::sync::OnceLock;

use super::RunShared;
use crate::error::{RunError, StartError};
use crate::store::StoreError;

/// A note beside a run's mailbox that says that a child that it waits for was let down.
#[derive(Debug, Default)]
pub(crate) struct LetDown {
    /// Written once: what is wrong with the first of them.
    why: OnceLock<Box<StoreError>>,
}

impl LetDown {
    /// What is wrong, if a child was let down.
    pub(super) fn why(&self) -> Option<&StoreError> {
        self.why.get().map(|why| &**why)
    }

    /// Leaves the note if that is how a child ended; says whether it is.
    fn leave(&self, error: &RunError) -> bool {
        let why = match error {
            RunError::Store { source } | RunError::Start(StartError::Store(source)) => source.clone(),
            RunError::Conflict { .. }
            | RunError::Incompatible { .. }
            | RunError::Start(StartError::Elsewhere { .. }) => StoreError::unavailable(error.clone()),
            _ => return false,
        };
        // Another child may have been let down before.
        let _ = self.why.set(Box::new(why));
        true
    }
}

impl RunShared {
    /// Whether the run stops and is left, because of that end of a child or because of what was noted before: then no step
    /// is told. A run without a journal does not: there is nowhere to go on from.
    pub(crate) fn is_let_down(&self, error: &RunError) -> bool {
        // The child's task is gone, and nothing is wrong with the store: neither is anything with the run's own journal.
        if self.common.is_kept && matches!(error, RunError::Abandoned) {
            self.note_leave();
        }
        self.common.is_kept && (self.let_down_by(error) || self.stops())
    }

    /// Leaves the note if that is how a child ended; says whether it is.
    fn let_down_by(&self, error: &RunError) -> bool {
        let is_so = self.let_down.leave(error);
        if is_so {
            self.bell.wake();
        }
        is_so
    }

    /// Whether it stops and is left.
    pub(crate) fn stops(&self) -> bool {
        self.common.is_kept && (self.is_to_be_left() || self.let_down.why().is_some())
    }
}
