//! The time that an attempt may take.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Either, Fuse, select};

use super::in_flight::StepResult;
use crate::clock::EngineClock;
use crate::error::TimedOut;
use crate::panics::caught;

/// How long one attempt may take, and by which clock.
pub(super) struct Timeout {
    after: Duration,
    clock: EngineClock,
}

impl Timeout {
    pub(super) fn new(after: Duration, clock: &EngineClock) -> Self {
        Self { after, clock: clock.clone() }
    }

    /// The attempt, which is dropped when its time is over; with it goes what it had shown and emitted (S23, S25).
    pub(super) async fn around(self, attempt: impl Future<Output = StepResult> + Send) -> StepResult {
        let over = self.clock.sleep(self.after);
        let mut attempt = pin!(attempt.fuse());
        // One that ends at that very moment has ended.
        if let Either::Left((result, _)) = select(attempt.as_mut(), over).await {
            return result;
        }
        // What it panics with while it is dropped is nobody's failure.
        let _ = caught(|| attempt.set(Fuse::terminated()));
        Err(TimedOut::after(self.after))
    }
}
