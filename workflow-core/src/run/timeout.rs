//! The timeout of an attempt.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Either, Fuse, select};

use super::in_flight::StepResult;
use crate::clock::EngineClock;
use crate::error::TimedOut;
use crate::panics::caught;

/// The most time that one attempt may take, by this clock.
pub(super) struct Timeout {
    after: Duration,
    clock: EngineClock,
}

impl Timeout {
    pub(super) fn new(after: Duration, clock: &EngineClock) -> Self {
        Self { after, clock: clock.clone() }
    }

    /// Runs the attempt, and drops it when its time is over. The drop also discards what the attempt has
    /// shown and emitted (S23, S25).
    pub(super) async fn around(self, attempt: impl Future<Output = StepResult> + Send) -> StepResult {
        let over = self.clock.sleep(self.after);
        let mut attempt = pin!(attempt.fuse());
        // An attempt that ends at that very moment has ended.
        if let Either::Left((result, _)) = select(attempt.as_mut(), over).await {
            return result;
        }
        // A panic in the drop of an attempt that timed out has no consequence.
        let _ = caught(|| attempt.set(Fuse::terminated()));
        Err(TimedOut::after(self.after))
    }
}
