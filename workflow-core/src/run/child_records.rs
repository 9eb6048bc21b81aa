//! A run as a parent and as a child: records its children, ends after them (S31), and tells its own parent.

use super::commit::Committer;
use super::driver::Driver;
use super::journal::Journal;
use super::shared::RunShared;
use super::state::Batch;
use crate::id::RunStatus;

impl Driver {
    /// Journals the children that have started since the last call.
    pub(super) fn record_children(&mut self) {
        let Committer { journal, shared, .. } = &self.committer;
        if journal.is_none() {
            return;
        }
        let unrecorded = shared.children.get().map(|registry| registry.unrecorded());
        for (child, at) in unrecorded.into_iter().flatten() {
            let _ = self.commit(Batch::ChildStarted { child, at }, None);
        }
    }
}

impl Driver {
    /// Lets a run close its registry although no child has joined: a step that is in a poll on another thread may begin one
    /// now, which then does not join.
    pub(super) fn prepare_to_close_children(&self) {
        if self.executor.had_tasks() {
            self.committer.shared.child_registry();
        }
    }
}

impl Committer {
    /// Children of executions that are dropped now learn of that once the store has the cause (S38): until then, a resume or a
    /// rewind begins the executions again, and they find their children.
    pub(super) fn withhold_drops(&self) {
        let Some(registry) = self.shared.children.get() else { return };
        if let Some(end) =
            self.journal.as_deref().filter(|journal| !journal.is_open_and_written()).map(Journal::end)
        {
            registry.withhold_drops(end);
        }
    }

    /// Tells children of the drops whose causes the store has.
    #[inline]
    pub(super) fn tell_children_of_drops(&self) {
        if let (Some(registry), Some(journal)) = (self.shared.children.get(), self.journal.as_deref()) {
            registry.written(journal.written());
        }
    }
}

/// Ends the run's children and waits for them, so that they end before anyone learns of the run's own end.
/// A resumed run also ends children of its earlier process that no step has asked for again. `left`: another
/// process resumes the run, so its children stay as they are.
pub(super) async fn end_before(run: &RunShared, cancelled: bool, left: bool) {
    if let Some(registry) = run.children.get() {
        for child in registry.close(cancelled, left) {
            child.ended().await;
        }
        registry.all_joined().await;
    }
    if let Some(engine) = run.common.engine().filter(|_| run.may_have_earlier_children() && !left) {
        engine.cancel_orphans_of(run.id.clone()).await;
    }
}

/// Tells the children of a run whose task is gone that their parent is gone. Does not wait for them.
pub(super) fn detach_children(run: &RunShared) {
    if let Some(registry) = run.children.get() {
        let unfinished = run.finished.get().is_none();
        registry.close(unfinished, unfinished);
    }
}

/// Has the parent look at this child again: its execution that waits for the child may rest now.
pub(super) fn wake_parent(run: &RunShared) {
    match run.parent_link() {
        Some(link) => link.wake_parent(),
        None => run.signals.reattached().iter().for_each(|parent| parent.signals.wake()),
    }
}

/// Tells the parent that this child has ended, before handles and observers learn of it.
pub(super) fn notify_parent(run: &RunShared, status: RunStatus) {
    if let Some(link) = &run.parent_link() {
        link.ended(run, status);
    }
}
