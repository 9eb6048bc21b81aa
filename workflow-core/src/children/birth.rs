//! What a child run knows of its parent, and what it takes to start one.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, oneshot};

use super::{ChildRun, ParentRun};
use crate::display::Display;
use crate::engine::Start;
use crate::error::{RunError, SendError, StartError};
use crate::id::{RunId, ThreadId};
use crate::run::{Dropped, PrivateThread, RunOptions, RunShared, RunStatus};
use crate::store::StoreError;

/// What a run asks of its engine, which it must not keep alive.
pub(crate) trait HostsRuns: Send + Sync {
    fn start_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> Result<Spawned, StartError>;

    /// The same for a parent that goes on after an earlier process: what that has begun for the same goes on.
    fn find_child(
        self: Arc<Self>,
        start: Start,
        options: RunOptions,
        birth: Birth,
    ) -> BoxFuture<'static, Result<Spawned, StartError>>;

    /// Ends what the run waited for in an earlier process and has not asked for again.
    fn end_forsaken(self: Arc<Self>, parent: RunId) -> BoxFuture<'static, ()>;

    /// Loads a run that was let go of; whether it goes on here.
    fn wake(self: Arc<Self>, run: RunId) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// A note was left for a run, which has to be loaded for it if it was let go of.
    fn note_left(self: Arc<Self>, run: Arc<RunShared>);

    /// Clears the context of a run that has ended, and that of the thread that was made for it alone.
    fn clear_contexts(self: Arc<Self>, run: RunId, thread: Option<ThreadId>) -> BoxFuture<'static, ()>;

    /// Nobody has a handle on a run any more.
    fn handles_gone(&self, run: &RunId);
}

/// A child whose task has been started.
pub(crate) struct Spawned {
    pub(crate) shared: Arc<RunShared>,
    /// Hears when the store has the beginning of the run; none without a store.
    pub(crate) written: Option<oneshot::Receiver<Result<(), SendError>>>,
}

/// Where a child run comes from.
pub(crate) struct Birth {
    pub(crate) parent: ParentRun,
    /// How many runs are above it.
    pub(crate) depth: u32,
    pub(crate) awaited: bool,
    /// Tells it that nobody wants it any more.
    pub(crate) unwanted: Arc<Dropped>,
    /// Where its parent shows what it shows.
    pub(crate) display: Display,
    /// Its parent's place, if it has one to lend.
    pub(crate) lent: Option<Arc<Semaphore>>,
    /// Its own place, for its children to borrow: one at a time.
    pub(crate) lends: Arc<Semaphore>,
    /// The thread that its parent has and it may have too, if that was made for a run above alone.
    pub(crate) private_thread: Option<PrivateThread>,
    /// Whether its parent, or a run above that, goes on after an earlier process, which may have begun the child.
    pub(crate) is_of_resumed: bool,
    /// The parent knows its children, so that this must not keep it alive.
    run: Weak<RunShared>,
    /// Its place among the parent's children.
    place: OnceLock<usize>,
}

impl Birth {
    pub(super) fn of(parent: &Arc<RunShared>, names: ParentRun, awaited: bool, display: Display) -> Self {
        let above = parent.birth();
        Self {
            parent: names,
            depth: above.map_or(0, |birth| birth.depth) + 1,
            awaited,
            unwanted: Arc::default(),
            display,
            lent: above.filter(|_| awaited).map(|birth| Arc::clone(&birth.lends)),
            lends: Arc::new(Semaphore::new(1)),
            private_thread: if awaited { parent.private_thread() } else { None },
            is_of_resumed: parent.is_of_resumed(),
            run: Arc::downgrade(parent),
            place: OnceLock::new(),
        }
    }

    /// What the parent calls the child.
    pub(crate) fn child(&self, run: RunId, workflow: Arc<str>) -> ChildRun {
        self.parent.child(run, workflow, self.awaited)
    }

    /// Joins the parent's family.
    pub(crate) fn join(&self, child: ChildRun, shared: &Arc<RunShared>) -> Result<(), StartError> {
        let ended = || StartError::ParentEnded { run: self.parent.run.clone() };
        let parent = self.run.upgrade().ok_or_else(ended)?;
        let place = parent.family().join(&parent, child, shared, &self.unwanted).ok_or_else(ended)?;
        // A child joins once.
        let _ = self.place.set(place);
        Ok(())
    }

    /// Whether it was begun for this parent, and not for one that was it before and has stopped or is about to.
    pub(crate) fn is_of(&self, parent: &Arc<RunShared>) -> bool {
        std::ptr::eq(self.run.as_ptr(), Arc::as_ptr(parent))
    }

    /// The parent stops and is left, because of what became of the child.
    pub(crate) fn let_parent_down(&self, error: StartError) {
        if let Some(parent) = self.run.upgrade() {
            parent.stops_after_child(&RunError::Store { source: StoreError::unavailable(error) });
        }
    }

    /// The child has ended; its parent's family knows before anybody else.
    pub(crate) fn ended(&self, status: RunStatus) {
        let Some((parent, place)) = self.run.upgrade().zip(self.place.get()) else { return };
        parent.family().left(&parent, *place, status);
    }

    /// Why it is cancelled, when nobody wants it any more.
    pub(crate) fn why_unwanted(&self) -> Arc<str> {
        self.parent.why_unwanted(self.awaited)
    }
}

impl fmt::Debug for Birth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Birth")
            .field("parent", &self.parent)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}
