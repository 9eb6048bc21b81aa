//! Detects without a clock that a runtime is idle: a single-threaded runtime reports before it parks. A runtime that
//! waits for one of its other threads or for the network parks too, and counts as idle.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, error::Elapsed, timeout_at};

/// The maximum virtual time without an operation at the gate.
pub(super) const IDLE: Duration = Duration::from_hours(365 * 24);

/// Wakes a task when the runtime is idle.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waits: Option<Waker>,
    /// Whether the next park may happen: virtual time advances only during a park.
    advance: bool,
    reached: bool,
}

impl Quiet {
    /// Creates a single-threaded runtime with virtual time, and its idle detector.
    pub(super) fn runtime() -> (Runtime, Arc<Self>) {
        let quiet = Arc::<Self>::default();
        let parked = Arc::clone(&quiet);
        let mut builder = Builder::new_current_thread();
        builder.enable_all().start_paused(true).on_thread_park(move || parked.parked());
        (builder.build().unwrap_or_else(|error| panic!("no runtime to explore on: {error}")), quiet)
    }

    /// Waits until the runtime is idle.
    pub(super) async fn reached(&self) {
        self.wait(false).await;
    }

    /// Lets virtual time advance to the next timer, or part of the way to a distant one, and waits until the runtime is
    /// idle again.
    ///
    /// # Errors
    /// Returns an error at `until`.
    pub(super) async fn after_time(&self, until: Instant) -> Result<(), Elapsed> {
        timeout_at(until, self.wait(true)).await
    }

    async fn wait(&self, advance: bool) {
        let mut waits = false;
        poll_fn(|cx| {
            let mut state = self.state();
            if waits && state.reached {
                return Poll::Ready(());
            }
            if !waits {
                (state.advance, state.reached, waits) = (advance, false, true);
            }
            state.waits = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn parked(&self) {
        let waits = {
            let mut state = self.state();
            if std::mem::take(&mut state.advance) {
                return;
            }
            state.reached = state.waits.is_some();
            state.waits.take()
        };
        if let Some(waits) = waits {
            waits.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
