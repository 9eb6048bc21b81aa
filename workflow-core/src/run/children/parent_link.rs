//! A child's link to its parent, and the calls of the engine that start and load runs.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, oneshot};

use super::registry::Joining;
use crate::display::Display;
use crate::id::{ChildRun, ExecutionId, ParentRun, RunId, RunStatus, ThreadId};
use crate::outcome::{RunError, SendError, StartError};
use crate::run::{DropSignal, PrivateThread, RunOptions, RunShared, Start};
use crate::store::{EndedChild, StoreError};

/// The engine, for runs: they hold it weakly and call it through this trait.
pub(crate) trait HostsRuns: Any + Send + Sync {
    /// Starts a child in a task of its own.
    fn start_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        link: ParentLink,
    ) -> Result<Spawned, StartError>;

    /// Whether a source has to be asked for the child's configuration: then [`find_child`](Self::find_child) starts it.
    fn asks_sources(&self, start: &Start, options: &RunOptions) -> bool;

    /// Starts a child of a resumed parent, or resumes the child that an earlier process began for the same execution.
    fn find_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        link: ParentLink,
    ) -> BoxFuture<'static, Result<Spawned, StartError>>;

    /// Cancels the children that the run waited for in an earlier process and has not asked for again: those of executions
    /// before this one, or all. Returns their ends.
    fn cancel_orphans_of(
        self: Arc<Self>,
        parent: RunId,
        before: Option<ExecutionId>,
    ) -> BoxFuture<'static, Vec<EndedChild>>;

    /// Cancels a child that an execution of the run waited for, and which no attempt asks for again. Returns its end.
    fn cancel_left_child(
        self: Arc<Self>,
        child: RunId,
        parent: RunId,
    ) -> BoxFuture<'static, Option<EndedChild>>;

    /// Looks for these children of a run that was loaded: re-attaches those that the engine drives, and returns the ends of
    /// those that have ended, as the store lists them.
    fn look_for_children(
        self: Arc<Self>,
        parent: Arc<RunShared>,
        children: Vec<RunId>,
    ) -> BoxFuture<'static, Vec<EndedChild>>;

    /// Loads an unloaded run. Returns whether this engine drives the run.
    fn wake(self: Arc<Self>, run: RunId) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// A signal was stored for a run. If the run is unloaded, the engine loads it.
    fn deliver_signal(self: Arc<Self>, run: Arc<RunShared>);

    /// Clears the context of an ended run, and of its private thread.
    fn clear_contexts(self: Arc<Self>, run: RunId, thread: Option<ThreadId>) -> BoxFuture<'static, ()>;

    /// The last handle on a run is gone.
    fn handles_gone(&self, run: &RunId);
}

/// A child with its task.
pub(crate) struct Spawned {
    pub(crate) shared: Arc<RunShared>,
    /// Completes when the store has the beginning of the run; `None` without a store.
    pub(crate) written: Option<oneshot::Receiver<Result<(), SendError>>>,
}

/// A child's link to its parent. The child owns it.
pub(crate) struct ParentLink {
    pub(crate) parent: ParentRun,
    /// How many runs are above the child.
    pub(crate) depth: u32,
    pub(crate) awaited: bool,
    /// Set when the child is no longer awaited, or its parent is cancelled.
    pub(crate) drop_signal: Arc<DropSignal>,
    /// The parent's display, which also shows the child's items.
    pub(crate) display: Display,
    /// The parent's permit, if it has one to lend.
    pub(crate) lent: Option<Arc<Semaphore>>,
    /// Lends the child's own permit to its children: to one at a time.
    pub(crate) lends: Arc<Semaphore>,
    /// The parent's private thread, if the child shares it.
    pub(crate) private_thread: Option<PrivateThread>,
    /// How often the execution had begun again when the attempt began that asked for the child.
    pub(crate) asked_in: u32,
    /// Whether an earlier process may have begun the child, because its parent or a run above was resumed.
    pub(crate) may_have_earlier_children: bool,
    /// Weak, because the parent holds its children.
    run: Weak<RunShared>,
    /// The index among the parent's children, once the child has joined.
    index: OnceLock<usize>,
}

impl ParentLink {
    /// A link for a new child. An awaited child borrows its parent's permit and shares its private thread.
    pub(super) fn of(
        parent: &Arc<RunShared>,
        (names, asked_in): (ParentRun, u32),
        awaited: bool,
        display: Display,
    ) -> Self {
        let above = parent.parent_link();
        Self {
            parent: names,
            depth: above.map_or(0, |link| link.depth) + 1,
            awaited,
            drop_signal: Arc::default(),
            display,
            lent: above.filter(|_| awaited).map(|link| Arc::clone(&link.lends)),
            lends: Arc::new(Semaphore::new(1)),
            private_thread: if awaited { parent.private_thread() } else { None },
            asked_in,
            may_have_earlier_children: parent.may_have_earlier_children(),
            run: Arc::downgrade(parent),
            index: OnceLock::new(),
        }
    }

    /// The child's entry in its parent's list.
    pub(crate) fn child(&self, run: RunId, workflow: Arc<str>) -> ChildRun {
        self.parent.child(run, workflow, self.awaited)
    }

    /// The child is about to join, and gets its id in the engine. An error if the parent takes no children any more.
    pub(crate) fn enter(&self) -> Result<Joining, StartError> {
        let joining = self.run.upgrade().and_then(|parent| parent.child_registry().enter());
        joining.ok_or_else(|| StartError::ParentEnded { run: self.parent.run.clone() })
    }

    /// Adds the child to its parent's children. An error if the parent takes no children any more.
    pub(crate) fn join(&self, child: ChildRun, shared: &Arc<RunShared>) -> Result<(), StartError> {
        let ended = || StartError::ParentEnded { run: self.parent.run.clone() };
        let parent = self.run.upgrade().ok_or_else(ended)?;
        let index = parent.child_registry().join(&parent, child, shared, (&self.drop_signal, self.asked_in));
        let index = index.ok_or_else(ended)?;
        // A child joins once.
        let _ = self.index.set(index);
        if parent.common.is_durable {
            // Its journal gets the child, although the step may wait elsewhere.
            parent.signals.wake();
        }
        Ok(())
    }

    /// An error if the attempt that asked for the child was dropped and begins again, or awaits the child no longer. The wait
    /// for a child's store may take long.
    pub(crate) fn is_still_asked(&self) -> Result<(), StartError> {
        let (execution, asked_in) = (self.parent.execution, self.asked_in);
        let begins_again = self.run.upgrade().is_none_or(|parent| parent.asked_in(execution) != asked_in);
        if begins_again || self.awaited && self.drop_signal.is_requested() {
            return Err(StartError::ParentEnded { run: self.parent.run.clone() });
        }
        Ok(())
    }

    /// Whether the child was begun for this load of the parent, and not for an earlier one that was detached.
    pub(crate) fn is_of(&self, parent: &Arc<RunShared>) -> bool {
        std::ptr::eq(self.run.as_ptr(), Arc::as_ptr(parent))
    }

    /// Stops the parent without ending its journal, because the child cannot be resumed here.
    pub(crate) fn child_store_failure(&self, error: StartError) {
        if let Some(parent) = self.run.upgrade() {
            parent.stop_on_child_store_failure(&RunError::Store { source: StoreError::unavailable(error) });
        }
    }

    /// Notifies the parent that this child has ended, before anybody else.
    pub(crate) fn ended(&self, child: &RunShared, status: RunStatus) {
        let Some((parent, index)) = self.run.upgrade().zip(self.index.get()) else { return };
        parent.child_registry().left(&parent, *index, (child, status));
    }

    /// Tells this child whether its parent, which waits for it, is paused.
    pub(crate) fn follow_parent(&self, child: &RunShared) {
        if let Some(parent) = self.run.upgrade().filter(|_| self.awaited) {
            parent.child_registry().tell_paused(child);
        }
    }

    /// Has the parent look at the child again.
    pub(crate) fn wake_parent(&self) {
        if let Some(parent) = self.run.upgrade() {
            parent.signals.wake();
        }
    }

    /// The reason for cancelling the child.
    pub(crate) fn cancel_reason(&self) -> Arc<str> {
        self.parent.cancel_reason(self.awaited)
    }
}

impl fmt::Debug for ParentLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParentLink")
            .field("parent", &self.parent)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}
