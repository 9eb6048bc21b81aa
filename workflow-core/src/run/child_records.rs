//! A run among its parent and its children: it records these, and ends after them (S31).

use super::commit::Committer;
use super::driver::Driver;
use super::shared::RunShared;
use super::state::Batch;
use crate::id::RunStatus;

impl Driver {
    /// Which children there are by now enters the journal.
    pub(super) fn record_children(&mut self) {
        let Committer { journal, shared, .. } = &self.committer;
        if journal.is_none() {
            return;
        }
        let unrecorded = shared.children.get().map(|family| family.unrecorded());
        for (child, at) in unrecorded.into_iter().flatten() {
            let _ = self.commit(Batch::ChildStarted { child, at }, None);
        }
    }
}

/// Children first: those that end with the run, which was cancelled or not, have ended before anybody is told that it has.
/// Those of a run that goes on elsewhere, or may, are left as they are.
pub(super) async fn end_before(run: &RunShared, cancelled: bool, left: bool) {
    if let Some(family) = run.children.get() {
        for child in family.close(cancelled, left) {
            child.ended().await;
        }
    }
    if let Some(engine) = run.common.engine().filter(|_| run.is_of_resumed() && !left) {
        engine.end_forsaken(run.id.clone()).await;
    }
}

/// The task of a run is gone. Nothing waits for its children, but they are told.
pub(super) fn disown(run: &RunShared) {
    if let Some(family) = run.children.get() {
        let unfinished = run.finished.get().is_none();
        family.close(unfinished, unfinished);
    }
}

/// Tells whom a child's end concerns, before everybody is told.
pub(super) fn part(run: &RunShared, status: RunStatus) {
    if let Some(birth) = &run.birth() {
        birth.ended(status);
    }
}
