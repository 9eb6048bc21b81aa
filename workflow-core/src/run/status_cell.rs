//! The status of a run, which handles read and wait for.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::sync::Notify;
use tokio::task::coop;

use crate::id::RunStatus;

/// The current status. A waiter may miss a status that another one follows at once.
#[derive(Debug)]
pub(crate) struct StatusCell {
    /// The status as an index into `ALL`.
    now: AtomicU8,
    /// Whether the run was announced as started or resumed in this process.
    begun: AtomicBool,
    changed: Notify,
}

const ALL: [RunStatus; 9] = [
    RunStatus::Running,
    RunStatus::Waiting,
    RunStatus::Paused,
    RunStatus::CleaningUp,
    RunStatus::Completed,
    RunStatus::Failed,
    RunStatus::Stalled,
    RunStatus::Cancelled,
    RunStatus::TimedOut,
];

impl StatusCell {
    /// The status of a running run that was not announced.
    pub(crate) fn new() -> Self {
        Self {
            now: AtomicU8::new(RunStatus::Running as u8),
            begun: AtomicBool::new(false),
            changed: Notify::const_new(),
        }
    }

    pub(super) fn now(&self) -> RunStatus {
        ALL[usize::from(self.now.load(Ordering::Acquire))]
    }

    /// Sets the status and wakes all waiters.
    pub(super) fn set(&self, status: RunStatus) {
        self.now.store(status as u8, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Notes that the run is announced. Returns whether it was not before. Wakes no waiter: `set` or
    /// `look_again` follows.
    pub(super) fn begin(&self) -> bool {
        !self.begun.swap(true, Ordering::Relaxed)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Waits until the run is announced or has ended. Returns whether it was announced.
    pub(crate) async fn begun(&self) -> bool {
        self.wait_for(|status| self.has_begun() || status.is_ended()).await;
        self.has_begun()
    }

    /// Wakes all waiters, to check a condition beside the status.
    pub(super) fn look_again(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until the status fulfils the condition, and returns the status.
    pub(super) async fn wait_for(&self, is_due: impl Fn(RunStatus) -> bool) -> RunStatus {
        // A caller that asks in a loop yields to other tasks, even if the answer is there.
        std::future::poll_fn(coop::poll_proceed).await.made_progress();
        loop {
            // This waiter receives every change from here on.
            let changed = self.changed.notified();
            let now = self.now();
            if is_due(now) {
                return now;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn each_status_is_read_as_it_was_set() {
        let status_cell = StatusCell::new();
        assert_eq!(status_cell.now(), RunStatus::Running);
        for status in ALL {
            status_cell.set(status);
            assert_eq!(status_cell.now(), status);
        }
    }

    #[test]
    fn a_run_is_announced_once_and_its_waiters_look_again() {
        let status_cell = StatusCell::new();
        let mut begun = pin!(status_cell.begun());
        assert_eq!(begun.as_mut().now_or_never(), None);
        assert!(status_cell.begin() && !status_cell.begin());
        status_cell.look_again();
        assert_eq!(begun.now_or_never(), Some(true));
    }

    #[test]
    fn a_run_that_ends_before_it_begins_did_not_begin() {
        let status_cell = StatusCell::new();
        status_cell.set(RunStatus::Failed);
        assert_eq!(status_cell.begun().now_or_never(), Some(false));
    }

    #[test]
    fn a_waiter_receives_the_latest_status_once_it_fulfils_the_condition() {
        let status_cell = StatusCell::new();
        let mut ends = pin!(status_cell.wait_for(RunStatus::is_ended));
        assert_eq!(ends.as_mut().now_or_never(), None);
        status_cell.set(RunStatus::Waiting);
        assert_eq!(ends.as_mut().now_or_never(), None);
        status_cell.set(RunStatus::Running);
        status_cell.set(RunStatus::Failed);
        assert_eq!(ends.now_or_never(), Some(RunStatus::Failed));
        assert_eq!(status_cell.wait_for(RunStatus::is_ended).now_or_never(), Some(RunStatus::Failed));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_waiter_misses_no_change_that_coincides_with_its_wait() {
        for _ in 0..1_000 {
            let status_cell = Arc::new(StatusCell::new());
            let waits = tokio::spawn({
                let status_cell = Arc::clone(&status_cell);
                async move { status_cell.wait_for(RunStatus::is_ended).await }
            });
            status_cell.set(RunStatus::Completed);
            assert_eq!(waits.await.expect("it ends"), RunStatus::Completed);
        }
    }
}
