//! A run whose child the store has let down: what becomes of the child is not known before somebody goes on with it, so
//! that no step is told, and the run stops too and is left as it is.

use std::sync::OnceLock;
use std::task::Context;

use futures::task::AtomicWaker;

use super::drive::Run;
use crate::error::{RunError, StartError};
use crate::store::StoreError;

/// A note beside a run's mailbox that says that the store has let down a child that it waits for.
#[derive(Debug, Default)]
pub(crate) struct LetDown {
    /// Written once: what is wrong with the first of them.
    why: OnceLock<StoreError>,
    waker: AtomicWaker,
}

impl LetDown {
    /// Leaves the note if that is how a child ended; says whether it is.
    pub(crate) fn leave(&self, error: &RunError) -> bool {
        let why = match error {
            RunError::Store { source } | RunError::Start(StartError::Store(source)) => source.clone(),
            RunError::Conflict { .. } | RunError::Start(StartError::Elsewhere { .. }) => {
                StoreError::unavailable(error.clone())
            }
            _ => return false,
        };
        // Another child may have been let down before.
        let _ = self.why.set(why);
        self.waker.wake();
        true
    }
}

impl Run {
    /// Stops as if the store had let down the run itself, once what it is being given is answered.
    pub(super) fn poll_let_down(&mut self, cx: &mut Context<'_>) {
        let Some(journal) = self.journal.as_mut() else { return };
        self.shared.let_down.waker.register(cx.waker());
        let Some(why) = self.shared.let_down.why.get() else { return };
        if self.scheduler.end().is_none() && journal.fail(why) {
            self.not_entered(Vec::new());
        }
    }
}
