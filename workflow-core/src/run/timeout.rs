//! The timeout of an attempt.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Either, Fuse, select};
use futures_util::task::AtomicWaker;

use super::in_flight::StepResult;
use crate::clock::EngineClock;
use crate::error::TimedOut;
use crate::panics::caught;

/// The most time that one attempt may take, by this clock.
pub(super) struct Timeout {
    after: Duration,
    clock: EngineClock,
    timer: Arc<TimerWakes>,
}

/// Whether it was the timer of a timeout that woke its attempt. A long one looks at the system's clock now and then, and
/// the attempt is polled then, without a sign from the step.
#[derive(Debug, Default)]
pub(super) struct TimerWakes {
    woke: AtomicBool,
    attempt: AtomicWaker,
}

impl TimerWakes {
    /// Whether the timer woke the attempt since the last call.
    pub(super) fn take(&self) -> bool {
        self.woke.swap(false, Ordering::Relaxed)
    }
}

impl Wake for TimerWakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woke.store(true, Ordering::Relaxed);
        self.attempt.wake();
    }
}

impl Timeout {
    pub(super) fn new(after: Duration, clock: &EngineClock) -> Self {
        Self { after, clock: clock.clone(), timer: Arc::default() }
    }

    /// What tells that the timer woke the attempt.
    pub(super) fn timer(&self) -> Arc<TimerWakes> {
        Arc::clone(&self.timer)
    }

    /// Runs the attempt, and drops it when its time is over. The drop also discards what the attempt has
    /// shown and emitted (S23, S25).
    pub(super) async fn around(self, attempt: impl Future<Output = StepResult> + Send) -> StepResult {
        let mut over = self.clock.sleep(self.after);
        let waker = Waker::from(self.timer());
        let over = poll_fn(|cx| {
            self.timer.attempt.register(cx.waker());
            over.poll_unpin(&mut Context::from_waker(&waker))
        });
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use futures::task::noop_waker;
    use tokio::time::advance;

    use super::*;
    use crate::clock::set::SetClock;

    // S34
    #[tokio::test(start_paused = true)]
    async fn a_look_at_the_clock_is_told_from_a_sign_of_the_step() {
        let system = SetClock::new();
        let timeout = Timeout::new(Duration::from_hours(2), &system.of_engine());
        let (timer, step) = (timeout.timer(), Arc::new(AtomicWaker::new()));
        let waits = Arc::clone(&step);
        let mut attempt = pin!(timeout.around(poll_fn(move |cx| {
            waits.register(cx.waker());
            Poll::Pending
        })));
        let mut poll =
            || assert!(attempt.as_mut().poll(&mut Context::from_waker(&noop_waker())).is_pending());
        poll();
        assert!(!timer.take());
        // The clock is looked at each minute.
        advance(Duration::from_secs(61)).await;
        assert!(timer.take());
        poll();
        step.wake();
        assert!(!timer.take());
        advance(Duration::from_secs(61)).await;
        assert!(timer.take() && !timer.take());
    }
}
