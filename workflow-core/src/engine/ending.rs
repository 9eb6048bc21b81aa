//! The end of an engine: its remaining tasks, and how long it waits for its stores.
//!
//! ```text
//! begin ──▶ nothing begins ──▶ runs end ──▶ is_over (no task is left) ──▶ the lease is given up
//!               time is up ──▶ give_up: every wait for a store ends with `StoreError::ShutDown`
//! ```

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::{TaskTrackerToken, TrackedFuture};

use crate::clock::EngineClock;
use crate::id::RunId;
use crate::panics::{caught_in, locked};
use crate::patience::StorePatience;

/// The end of an engine.
#[derive(Debug, Default)]
pub(super) struct Ending {
    begun: AtomicBool,
    /// Wakes tasks that wait for a permit, for a run's timer, or for another try.
    closing: CancellationToken,
    patience: StorePatience,
    /// The engine's tasks. A task has dropped everything it held before it is counted out.
    tasks: TaskTracker,
    /// The runs that an end by cancels left open in their journals; `None` if the engine does not end so.
    left_open: Mutex<Option<BTreeSet<RunId>>>,
}

impl Ending {
    /// Begins the end: no task and no run begins from here on. O(waiting tasks).
    pub(super) fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
        self.tasks.close();
        self.closing.cancel();
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }

    /// Waits until the engine begins to end.
    pub(super) async fn begins(&self) {
        self.closing.cancelled().await;
    }

    /// Admits a task that is about to be spawned, or returns `None` if the engine ends. The engine's end waits for the
    /// token.
    pub(super) fn enter(&self) -> Option<TaskTrackerToken> {
        // Counted before the check: either the task is refused here, or the engine's end waits for it.
        let token = self.tasks.token();
        (!self.has_begun()).then_some(token)
    }

    /// Admits a task that ends a run, also while the engine ends.
    pub(super) fn enter_late(&self) -> TaskTrackerToken {
        self.tasks.token()
    }

    /// Wraps a task of the engine, so that the engine's end waits for it.
    pub(super) fn track<F: Future>(&self, task: F) -> TrackedFuture<F> {
        self.tasks.track_future(task)
    }

    /// The engine's tasks, for the attempts that have tasks of their own.
    pub(super) fn tasks(&self) -> TaskTracker {
        self.tasks.clone()
    }

    /// Waits until no task is left, once the engine has begun to end.
    pub(super) async fn is_over(&self) {
        self.tasks.wait().await;
    }

    /// Ends all waiting for the stores.
    pub(super) fn give_up(&self) {
        self.patience.end();
    }

    /// From here on, the runs that end here and stay open in their journals are noted.
    pub(super) fn note_open_runs(&self) {
        locked(&self.left_open).get_or_insert_default();
    }

    /// Notes a run that ended here, and whose journal stays open.
    pub(super) fn leaves_open(&self, run: &RunId) {
        if let Some(left) = &mut *locked(&self.left_open) {
            left.insert(run.clone());
        }
    }

    /// The runs that were noted.
    pub(super) fn left_open(&self) -> Vec<RunId> {
        locked(&self.left_open).iter().flatten().cloned().collect()
    }

    /// The bound on waiting for the stores.
    pub(super) fn patience(&self) -> StorePatience {
        self.patience.clone()
    }
}

/// Completes after this time, or never if the engine's clock panics.
pub(super) async fn sleep_or_pend(clock: EngineClock, time: Duration) {
    if caught_in(async move { clock.sleep(time).await }).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn an_engine_that_ends_refuses_tasks_and_waits_for_those_that_it_has() {
        let ending = Ending::default();
        let task = ending.enter().expect("it has not begun to end");
        let mut begins = pin!(ending.begins());
        assert!(begins.as_mut().now_or_never().is_none());
        ending.begin();
        assert!(begins.now_or_never().is_some());
        assert!(ending.enter().is_none());
        assert!(ending.is_over().now_or_never().is_none());
        drop(task);
        assert!(ending.is_over().now_or_never().is_some());
    }

    #[test]
    fn the_end_waits_for_tasks_that_end_its_runs() {
        let ending = Ending::default();
        ending.begin();
        let late = ending.enter_late();
        assert!(ending.is_over().now_or_never().is_none());
        drop(late);
        assert!(ending.is_over().now_or_never().is_some());
    }
}
