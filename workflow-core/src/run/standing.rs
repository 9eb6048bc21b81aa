//! Where a run stands, for its handles to look at and to wait for.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;
use tokio::task::coop;

use super::RunStatus;

/// The status of a run. Whoever waits sees the latest, and not all that were between.
#[derive(Debug)]
pub(crate) struct Standing {
    /// The place of the status among all.
    now: AtomicU8,
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

impl Standing {
    /// That of a run that runs.
    pub(crate) fn new() -> Self {
        Self { now: AtomicU8::new(RunStatus::Running as u8), changed: Notify::const_new() }
    }

    pub(super) fn now(&self) -> RunStatus {
        ALL[usize::from(self.now.load(Ordering::Acquire))]
    }

    pub(super) fn set(&self, status: RunStatus) {
        self.now.store(status as u8, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Lets those who wait look again, at what they wait for beside the status.
    pub(super) fn look_again(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until that is so of the status, and answers it.
    pub(super) async fn wait_for(&self, is_due: impl Fn(RunStatus) -> bool) -> RunStatus {
        // Whoever asks over and over leaves turns to others, also where the answer is there.
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

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn each_status_is_where_it_is_looked_for() {
        let standing = Standing::new();
        assert_eq!(standing.now(), RunStatus::Running);
        for status in ALL {
            standing.set(status);
            assert_eq!(standing.now(), status);
        }
    }

    #[test]
    fn who_waits_is_told_of_the_latest_status_when_it_is_due() {
        let standing = Standing::new();
        let mut ends = pin!(standing.wait_for(RunStatus::is_ended));
        assert_eq!(ends.as_mut().now_or_never(), None);
        standing.set(RunStatus::Waiting);
        assert_eq!(ends.as_mut().now_or_never(), None);
        standing.set(RunStatus::Running);
        standing.set(RunStatus::Failed);
        assert_eq!(ends.now_or_never(), Some(RunStatus::Failed));
        assert_eq!(standing.wait_for(RunStatus::is_ended).now_or_never(), Some(RunStatus::Failed));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_change_is_missed_however_it_coincides_with_a_wait() {
        for _ in 0..1_000 {
            let standing = Arc::new(Standing::new());
            let waits = tokio::spawn({
                let standing = Arc::clone(&standing);
                async move { standing.wait_for(RunStatus::is_ended).await }
            });
            standing.set(RunStatus::Completed);
            assert_eq!(waits.await.expect("it ends"), RunStatus::Completed);
        }
    }
}
