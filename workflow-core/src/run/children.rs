//! A run among its parent and its children: being cancelled by the one, and ending after the others (S31).

use std::task::Context;

use super::RunStatus;
use super::drive::{Phase, Run};
use super::shared::RunShared;
use super::state::Batch;
use crate::scheduler::End;

impl Run {
    /// A child that nobody wants any more is cancelled.
    pub(super) fn poll_unwanted(&mut self, cx: &mut Context<'_>) {
        let Some(birth) = self.shared.birth() else { return };
        // Where its parent is left, that is said before it is told that nobody wants it.
        if self.state.end().is_some() || !birth.unwanted.is_told(cx) || self.is_leaving() {
            return;
        }
        let reason = birth.why_unwanted();
        self.cancel(reason);
    }

    /// Whether it has any, or may have had before it was gone on with.
    pub(super) fn has_children(&self) -> bool {
        self.shared.children.get().is_some() || self.shared.is_of_resumed()
    }

    /// Children first: those that end with the run have ended before anybody is told that it has.
    pub(super) async fn end_children(&mut self) {
        if let Some(family) = self.shared.children.get() {
            let cancelled = matches!(self.state.end(), Some(End::Cancelled));
            let left = self.journal_error().is_some() || self.is_detached();
            for child in family.close(cancelled, left) {
                child.ended().await;
            }
        }
        let engine = self.shared.common.engine.upgrade().filter(|_| self.shared.is_of_resumed());
        if let Some(engine) = engine.filter(|_| self.journal_error().is_none() && !self.is_detached()) {
            engine.end_forsaken(self.shared.id.clone()).await;
        }
    }

    /// Which children there are by now enters the journal.
    pub(super) fn record_children(&mut self) {
        if self.journal.is_none() {
            return;
        }
        let unrecorded = self.shared.children.get().map(|family| family.unrecorded());
        for (child, at) in unrecorded.into_iter().flatten() {
            let _ = self.commit(Batch::ChildStarted { child, at }, None);
        }
    }

    /// Whether the run stopped without an end.
    pub(super) fn is_detached(&self) -> bool {
        self.phase == Phase::Detached
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
