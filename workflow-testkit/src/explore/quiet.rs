//! Noticing that a runtime has nothing left to do, without a clock: a single-threaded runtime says so before it parks.
//! A runtime that waits for another thread of its own, or for the network, parks too, and is taken for quiet.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, error::Elapsed, timeout_at};

/// How long nothing may come to the gate, in virtual time.
pub(super) const IDLE: Duration = Duration::from_hours(365 * 24);

/// Wakes whoever waits for a runtime to be quiet.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waits: Option<Waker>,
    /// Whether the next park passes: only in one does virtual time advance.
    advance: bool,
    reached: bool,
}

impl Quiet {
    /// A runtime with one thread and virtual time, and how to notice that it is quiet.
    pub(super) fn runtime() -> (Runtime, Arc<Self>) {
        let quiet = Arc::<Self>::default();
        let parked = Arc::clone(&quiet);
        let mut builder = Builder::new_current_thread();
        builder.enable_all().start_paused(true).on_thread_park(move || parked.parked());
        (builder.build().unwrap_or_else(|error| panic!("no runtime to explore on: {error}")), quiet)
    }

    /// Waits until nothing can go on.
    pub(super) async fn reached(&self) {
        self.wait(false).await;
    }

    /// Lets virtual time advance to the next timer, or on the way to one that is far, and waits until nothing can go on
    /// again.
    ///
    /// # Errors
    /// When it is `until`.
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
