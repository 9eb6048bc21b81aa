//! A run as a parent and as a child: records its children, ends after them (S31), and tells its own parent.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::{Either, select};
use tokio::runtime::Handle;

use super::commit::Committer;
use super::driver::Driver;
use super::finish::Finished;
use super::journal::Journal;
use super::shared::RunShared;
use super::state::Batch;
use super::{ChildRegistry, Unrecorded};
use crate::id::{ExecutionId, RunStatus};
use crate::outcome::RunError;
use crate::scheduler::End;
use crate::store::{Position, Record};

impl Driver {
    /// Journals the children that have started since the last call. Of a run that waits also those that have ended: no batch
    /// may follow for long, and the run may be unloaded.
    #[inline]
    pub(super) fn record_children(&mut self) {
        if self.committer.journal.is_some() && self.committer.shared.children.get().is_some() {
            let waits = matches!(self.committer.shared.status(), RunStatus::Waiting | RunStatus::Paused);
            self.record_started_and(waits);
        }
    }

    /// Journals the children that have started since the last call, and those that have ended (S82). Without a journal, only
    /// notes the ends for the report.
    pub(super) fn record_children_and_ends(&mut self) {
        self.record_started_and(true);
    }

    fn record_started_and(&mut self, with_ends: bool) {
        let Committer { journal, shared, .. } = &self.committer;
        let Some(registry) = shared.children.get() else { return };
        // Nothing is behind the end, and later events are not known.
        if journal.as_deref().is_some_and(Journal::has_ended) {
            return;
        }
        let Unrecorded { started, mut ended } = registry.unrecorded(with_ends);
        if journal.is_none() {
            return;
        }
        for (child, at) in started {
            let _ = self.commit(Batch::ChildStarted { child, at }, None);
        }
        // A child whose execution the journal does not have is not in it either.
        ended.retain(|child| self.committer.state.has_open_child(&child.run));
        if !ended.is_empty() {
            let _ = self.commit(Batch::ChildrenEnded(ended), None);
        }
    }

    /// Journals what is left of children before the end of the run: of one that completed in an earlier process, which lacks
    /// only its end, the awaited ones end with it.
    pub(super) fn record_last_children(&mut self) {
        self.record_children_and_ends();
        let Committer { journal, state, clock, .. } = &mut self.committer;
        if let Some(journal) = journal.as_deref_mut().filter(|journal| !journal.has_ended()) {
            let children = state.cancel_children();
            if !children.is_empty() {
                journal.queue([Record::ChildrenEnded { children, at: clock.stamp() }]);
            }
        }
    }

    /// Journals the children that have started or ended before a batch is applied. Returns whether no child joins from here
    /// on: the batch may complete the run, and no journal has anything behind the end.
    #[inline(never)]
    pub(super) fn record_children_before(&mut self, batch: &Batch) -> bool {
        if matches!(batch, Batch::ChildStarted { .. } | Batch::ChildrenEnded(_)) || self.children().is_none()
        {
            return false;
        }
        let seals = batch.has_stop(&self.host.table);
        if seals {
            self.seal_children(true);
        }
        self.record_children_and_ends();
        seals
    }

    /// Children join again, unless the batch has ended the run. Those that the run awaited have ended with it if it completed.
    #[cold]
    pub(super) fn unseal_or_complete(&self) {
        match (self.committer.state.end(), self.children()) {
            (None, _) => self.seal_children(false),
            (Some(End::Completed(_)), Some(registry)) => registry.parent_ended(true),
            _ => {}
        }
    }

    /// Keeps children from joining, or lets them join again.
    #[cold]
    pub(super) fn seal_children(&self, sealed: bool) {
        if let Some(registry) = self.children() {
            registry.seal(sealed);
        }
    }

    /// The run's children, if it has any, or a step on another thread may begin one just now.
    pub(super) fn children(&self) -> Option<&Arc<ChildRegistry>> {
        let shared = &self.committer.shared;
        if self.executor.had_tasks() { Some(shared.child_registry()) } else { shared.children.get() }
    }
}

impl Driver {
    /// These executions are dropped, or end. The children that they wait for learn of that once the store has the cause (S38).
    pub(super) fn drop_children_of(&self, executions: &[ExecutionId]) {
        let Some(registry) = self.children() else { return };
        if let Some(journal) = self.committer.journal.as_deref() {
            registry.withhold_drops(journal.end());
        }
        registry.drop_awaited(executions);
        self.cancel_unasked(registry, executions);
    }

    /// Cancels the children of these executions that no attempt has asked for again, once the store has why no one will. The
    /// end of the run cancels those that are left then.
    #[cold]
    #[inline(never)]
    fn cancel_unasked(&self, registry: &ChildRegistry, executions: &[ExecutionId]) {
        for (child, drop_signal) in registry.drop_unasked(executions) {
            let (Ok(runtime), run) = (Handle::try_current(), Arc::clone(&self.committer.shared)) else {
                return;
            };
            runtime.spawn(async move {
                let told = poll_fn(|cx| if drop_signal.is_set(cx) { Poll::Ready(()) } else { Poll::Pending });
                let Either::Left(_) = select(pin!(told), pin!(run.ended())).await else { return };
                let Some(engine) = run.common.engine() else { return };
                if let Some(ended) = engine.cancel_left_child(child, run.id.clone()).await {
                    run.child_registry().ended_elsewhere(vec![ended]);
                    run.signals.wake();
                }
            });
        }
    }

    /// An attempt has ended. If its execution had begun again, the attempt may not have asked for all children that it had.
    #[inline]
    pub(super) fn drop_unasked_children(&self, execution: ExecutionId) {
        if self.committer.journal.is_some() && self.committer.shared.has_unasked(execution) {
            self.drop_children_of(&[execution]);
        }
    }

    /// Everything in flight is dropped. Children do not learn of that before the cause is in the journal, whose end
    /// [`withheld_until_here`](Self::withheld_until_here) then says.
    pub(super) fn withhold_drops(&self) {
        if let Some(registry) = self.children().filter(|_| self.committer.journal.is_some()) {
            registry.withhold_drops(Position(u64::MAX));
        }
    }

    /// The journal has the causes of all drops so far: children learn of them once the store has it up to here.
    pub(super) fn withheld_until_here(&self) {
        if let (Some(registry), Some(journal)) =
            (self.committer.shared.children.get(), self.committer.journal.as_deref())
        {
            registry.withheld_until(journal.end(), journal.written());
        }
    }

    /// Tells children of the drops whose causes the store has, and of the clean-up of their parent.
    #[inline]
    pub(super) fn tell_children_of_drops(&self) {
        if let (Some(registry), Some(journal)) =
            (self.committer.shared.children.get(), self.committer.journal.as_deref())
        {
            registry.written(journal.written());
        }
        if self.ends_children() {
            // They end once the store has that the run cleans up.
            self.committer.shared.signals.wake();
        }
    }
}

/// Ends the run's children and waits for them, so that they end before anyone learns of the run's own end.
/// A resumed run also ends children of its earlier process that no step has asked for again. `left`: another
/// process resumes the run, so its children stay as they are. With `before`, only the children of earlier executions end:
/// those of its clean-up go on.
pub(super) async fn end_before(run: &RunShared, cancelled: bool, left: bool, before: Option<ExecutionId>) {
    if let Some(registry) = run.children.get() {
        for child in registry.close(cancelled, left, before) {
            child.ended().await;
        }
        registry.all_joined().await;
    }
    if let Some(engine) = run.common.engine().filter(|_| run.may_have_orphans() && !left) {
        let ended = engine.cancel_orphans_of(run.id.clone(), before).await;
        if let Some(registry) = run.children.get() {
            registry.ended_elsewhere(ended);
        }
    }
}

impl RunShared {
    /// Whether the run has ended, and no other process continues it.
    pub(crate) fn has_ended_for_good(&self) -> bool {
        let is_end = |finished: &Finished| match &finished.outcome {
            // Its store refused to begin it, since another run has its id.
            Err(RunError::Conflict { .. }) => !self.has_begun() && !self.may_have_earlier_children(),
            _ => finished.left_by().is_none(),
        };
        self.finished.get().is_some_and(|finished| !self.common.is_durable || is_end(finished))
    }
}

/// Tells the children of a run whose task is gone that their parent is gone. Does not wait for them.
pub(super) fn detach_children(run: &RunShared) {
    if let Some(registry) = run.children.get() {
        let unfinished = run.finished.get().is_none();
        registry.close(unfinished, unfinished, None);
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
    if let Some(registry) = run.signals.reattached().as_ref().and_then(|parent| parent.children.get()) {
        registry.reattached_ended(run, status);
    }
}
