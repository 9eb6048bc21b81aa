//! A run among its parent and its children: being cancelled by the one, and ending after the others (S31).

use std::task::Context;

use super::RunStatus;
use super::drive::Run;
use super::shared::RunShared;
use crate::scheduler::{End, Fact};
use crate::store::Record;

impl Run {
    /// A child that nobody wants any more is cancelled.
    pub(super) fn poll_unwanted(&mut self, cx: &mut Context<'_>) {
        let Some(birth) = &self.shared.birth() else { return };
        // Where its parent is left, that is said before it is told that nobody wants it.
        if self.scheduler.end().is_some() || !birth.unwanted.is_told(cx) || self.is_leaving() {
            return;
        }
        self.scheduler.apply(Fact::CancelRequested);
        if self.scheduler.end().is_some() {
            self.cancel_reason = Some(birth.why_unwanted());
        }
    }

    /// Whether it has any, or may have had before it was gone on with.
    pub(super) fn has_children(&self) -> bool {
        self.shared.children.get().is_some() || self.shared.is_of_resumed()
    }

    /// Children first: those that end with the run have ended before anybody is told that it has.
    pub(super) async fn end_children(&mut self) {
        if let Some(family) = self.shared.children.get() {
            let cancelled = matches!(self.scheduler.end(), Some(End::Cancelled));
            let left = self.journal_error().is_some() || self.is_left;
            for child in family.close(cancelled, left) {
                child.ended().await;
            }
        }
        let engine = self.shared.common.engine.upgrade().filter(|_| self.shared.is_of_resumed());
        if let Some(engine) = engine.filter(|_| self.journal_error().is_none() && !self.is_left) {
            engine.end_forsaken(self.shared.id.clone()).await;
        }
    }

    /// Which children there are by now enters the journal.
    pub(super) fn record_children(&mut self) {
        let Some((journal, family)) = self.journal.as_mut().zip(self.shared.children.get()) else { return };
        for (child, at) in family.unrecorded() {
            let Some((_, scope, trigger)) = self.trace.origin(child.execution) else { continue };
            journal.record(Record::ChildStarted { child, scope, trigger, at });
        }
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
