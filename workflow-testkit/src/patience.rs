//! Gives up on a run whose clock advances without any observation: an idle runtime reports before it parks, and then
//! its virtual clock jumps to the next timer.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::recording::Recording;

/// The maximum number of clock jumps without an observation of the run.
pub(crate) const JUMPS: u32 = 1_000_000;

/// Counts the jumps of a scenario's clock.
#[derive(Debug)]
pub(crate) struct Patience {
    recording: Recording,
    /// The number of observations before the last jump.
    observed: AtomicUsize,
    /// The number of clock jumps since then.
    jumps: AtomicU32,
    lost: Notify,
}

impl Patience {
    pub(crate) fn with(recording: Recording) -> Self {
        Self { recording, observed: AtomicUsize::new(0), jumps: AtomicU32::new(0), lost: Notify::new() }
    }

    /// The scenario's thread is about to park.
    pub(crate) fn parked(&self) {
        let observed = self.recording.len();
        if self.observed.swap(observed, Ordering::Relaxed) != observed {
            self.jumps.store(0, Ordering::Relaxed);
        }
        if self.jumps.fetch_add(1, Ordering::Relaxed) == JUMPS {
            self.lost.notify_waiters();
        }
    }

    /// Waits until the clock has jumped that often from now on.
    pub(crate) async fn lost(&self) {
        self.jumps.store(0, Ordering::Relaxed);
        self.lost.notified().await;
    }
}
