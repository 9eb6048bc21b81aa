//! Runs checks: on a multi-threaded runtime, with a watchdog.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::block_in_place;
use tokio::time::timeout;
use workflow_core::store::ContextStore;

/// The time limit of a single call that, by contract, nothing may delay.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The time limit of a check or, where calls are counted, of a call.
pub(super) const LIMIT: Duration = Duration::from_mins(1);

/// Opens a context store and runs a check of it to its end. The store is opened and dropped by the calling
/// thread, in reach of the runtime but outside of any task, so that it may block there.
pub(super) fn run<S, C>(open: impl FnOnce() -> S, check: impl FnOnce(Arc<dyn ContextStore>) -> C)
where
    S: ContextStore,
    C: Future<Output = ()> + Send + 'static,
{
    run_within(LIMIT, || Arc::new(open()) as Arc<dyn ContextStore>, check);
}

/// The progress of a check.
pub(super) trait Progress {
    /// A number that changes with every sign of progress.
    fn moments(&self) -> u64;

    /// Describes the latest event.
    fn last(&self) -> String;
}

/// The progress of a check that counts no calls: one time limit covers all its calls.
struct Unknown;

impl Progress for Unknown {
    fn moments(&self) -> u64 {
        0
    }

    fn last(&self) -> String {
        "the check did not end".to_owned()
    }
}

fn run_within<S, C>(limit: Duration, open: impl FnOnce() -> Arc<S>, check: impl FnOnce(Arc<S>) -> C)
where
    S: ?Sized,
    C: Future<Output = ()> + Send + 'static,
{
    run_while(limit, &Unknown, open, check);
}

/// Opens the subject and runs a check of it to its end, as long as the check makes progress within each period of the
/// time limit.
pub(super) fn run_while<T: Clone, C: Future<Output = ()> + Send + 'static>(
    patience: Duration,
    progress: &impl Progress,
    open: impl FnOnce() -> T,
    check: impl FnOnce(T) -> C,
) {
    let runtime = runtime();
    let entered = runtime.enter();
    let opened = open();
    let mut check = runtime.spawn(check(opened.clone()));
    let outcome = runtime.block_on(async {
        loop {
            let moments = progress.moments();
            match timeout(patience, &mut check).await {
                Err(_) if progress.moments() != moments => {}
                outcome => return outcome,
            }
        }
    });
    drop(opened);
    drop(entered);
    // A hanging call blocks its thread, and must not block the test.
    runtime.shutdown_background();
    let ended = outcome.unwrap_or_else(|_| {
        panic!("a call never returned: {}, and nothing happened for {patience:?}", progress.last())
    });
    ended.unwrap_or_else(|error| resume_unwind(error.into_panic()));
}

/// The message of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text")
}

pub(super) fn runtime() -> Runtime {
    let built = Builder::new_multi_thread().worker_threads(4).enable_all().build();
    built.unwrap_or_else(|error| panic!("a suite needs a runtime: {error}"))
}

/// A future that runs to its end on a thread of its own, started from within a function that cannot await.
pub(super) struct Elsewhere {
    until: Instant,
    ended: Receiver<()>,
}

impl Elsewhere {
    /// Starts the future with this time limit.
    pub(super) fn start(patience: Duration, work: impl Future + Send + 'static) -> Self {
        let (sender, ended) = channel();
        let handle = Handle::current();
        std::thread::spawn(move || {
            let _ = handle.block_on(work);
            // The send fails only if no caller waits any more.
            let _ = sender.send(());
        });
        Self { until: Instant::now() + patience, ended }
    }

    /// Blocks until the future has ended; returns `false` after the time limit.
    pub(super) fn ends(&self) -> bool {
        blocking(|| self.ended.recv_timeout(self.until.saturating_duration_since(Instant::now())).is_ok())
    }
}

/// Polls a call that many times and drops it; returns whether the call returned before.
pub(super) async fn abandon(call: impl Future, polls: u32) -> bool {
    let mut call = pin!(call);
    for _ in 0..polls {
        if poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await {
            return true;
        }
        // Gives the call's dependencies time to make progress.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    false
}

/// Blocks without stopping the runtime's other tasks.
fn blocking<R>(work: impl FnOnce() -> R) -> R {
    let is_multi = Handle::try_current().is_ok_and(|at| at.runtime_flavor() == RuntimeFlavor::MultiThread);
    if is_multi { block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::sync::oneshot;
    use workflow_core::store::MemoryContexts;

    use super::*;

    #[test]
    #[should_panic(expected = "a call never returned")]
    fn a_check_that_hangs_fails() {
        run_within(Duration::from_millis(10), Arc::<MemoryContexts>::default, |_| std::future::pending());
    }

    /// Reports progress repeatedly; after the ninth time the check ends.
    struct Nine(AtomicU64, std::sync::Mutex<Option<oneshot::Sender<()>>>);

    impl Progress for Nine {
        fn moments(&self) -> u64 {
            let moments = self.0.fetch_add(1, Ordering::Relaxed);
            if moments == 9 {
                self.1.lock().unwrap().take();
            }
            moments
        }

        fn last(&self) -> String {
            "nothing".to_owned()
        }
    }

    #[test]
    fn a_check_goes_on_while_anything_happens_in_it() {
        let (sender, ended) = oneshot::channel::<()>();
        let nine = Nine(AtomicU64::new(0), Some(sender).into());
        let check = |()| async move { drop(ended.await) };
        run_while(Duration::from_millis(10), &nine, || (), check);
        assert!(nine.0.into_inner() >= 9);
    }

    #[test]
    #[should_panic(expected = "as it was raised")]
    fn a_check_that_panics_fails_with_the_same_panic() {
        run(MemoryContexts::default, |_| async { panic!("as it was raised") });
    }
}
