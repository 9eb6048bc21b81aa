//! Where a run stands, for its handles to look at and to wait for.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::sync::Notify;
use tokio::task::coop;

use super::RunStatus;

/// The status of a run. A waiter sees the latest, and not all that were between.
#[derive(Debug)]
pub(crate) struct StatusCell {
    /// The place of the status among all.
    now: AtomicU8,
    /// Whether the run began here, as far as anybody was told.
    begun: AtomicBool,
    changed: Notify,
}

const ALL: [RunStatus; 7] = [
    RunStatus::Running,
    RunStatus::Waiting,
    RunStatus::Completed,
    RunStatus::Failed,
    RunStatus::Stalled,
    RunStatus::Cancelled,
    RunStatus::TimedOut,
];

impl StatusCell {
    /// That of a run that runs.
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

    pub(super) fn set(&self, status: RunStatus) {
        self.now.store(status as u8, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Notes that the run began here; whether that is new. Wakes nobody: it goes with a status that does, or with
    /// `look_again`.
    pub(super) fn begin(&self) -> bool {
        !self.begun.swap(true, Ordering::Relaxed)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Waits until the run began here or ended; whether it began.
    pub(crate) async fn begun(&self) -> bool {
        self.wait_for(|status| self.has_begun() || status.is_ended()).await;
        self.has_begun()
    }

    /// Lets those who wait look again, at what they wait for beside the status.
    pub(super) fn look_again(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until that is so of the status, and answers it.
    pub(super) async fn wait_for(&self, is_due: impl Fn(RunStatus) -> bool) -> RunStatus {
        // A caller that asks over and over leaves turns to others, also where the answer is there.
        std::future::poll_fn(coop::poll_proceed).await.made_progress();
        loop {
            // It hears of every change from here on.
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

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn each_status_is_where_it_is_looked_for() {
        let status_cell = StatusCell::new();
        assert_eq!(status_cell.now(), RunStatus::Running);
        for status in ALL {
            status_cell.set(status);
            assert_eq!(status_cell.now(), status);
        }
    }

    #[test]
    fn a_run_begins_once_and_who_waits_for_that_looks_again() {
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
    fn who_waits_is_told_of_the_latest_status_when_it_is_due() {
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
    async fn no_change_is_missed_however_it_coincides_with_a_wait() {
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
