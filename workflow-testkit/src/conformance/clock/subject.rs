//! A clock under test, and the way its time advances. Checks run on a thread with a runtime of its own, so that the
//! test notices a blocked check.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::runtime::Builder;
use tokio::task::{JoinHandle, yield_now};
use workflow_core::Clock;

use crate::conformance::stage::{PATIENCE, panic_text};

/// The time that one step advances.
const STEP: Duration = Duration::from_millis(1);

type Advance<C> = Arc<dyn Fn(&C, Duration) + Send + Sync>;

/// Makes a clock and advances its time.
pub struct Subject<C> {
    open: Box<dyn FnOnce() -> C>,
    advance: Option<Advance<C>>,
    patience: Duration,
}

impl<C: Clock> Subject<C> {
    /// A clock whose time passes by itself.
    pub fn new(open: impl FnOnce() -> C + 'static) -> Self {
        Self { open: Box::new(open), advance: None, patience: PATIENCE }
    }

    /// A clock whose time passes when this function is called.
    pub fn driven(
        open: impl FnOnce() -> C + 'static,
        advance: impl Fn(&C, Duration) + Send + Sync + 'static,
    ) -> Self {
        Self { open: Box::new(open), advance: Some(Arc::new(advance)), patience: PATIENCE }
    }

    /// Sets how long a check may take.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Makes the clock and runs a check of it to its end.
    pub(super) fn check<F: Future<Output = ()>>(self, check: impl FnOnce(Watch<C>) -> F + Send + 'static) {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("a suite needs a runtime: {error}"));
        let entered = runtime.enter();
        let watch = Watch { clock: Arc::new((self.open)()), advance: self.advance, awaited: Arc::default() };
        drop(entered);
        let awaited = Arc::clone(&watch.awaited);
        let (sender, ended) = channel();
        std::thread::spawn(move || {
            let checked = catch_unwind(AssertUnwindSafe(|| runtime.block_on(check(watch))));
            // The send fails only if the test is over.
            let _ = sender.send(checked);
        });
        let Ok(checked) = ended.recv_timeout(self.patience) else {
            panic!("{}: waited {:?} for that in vain", awaited.get(), self.patience);
        };
        checked.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

impl<C> fmt::Debug for Subject<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("is_driven", &self.advance.is_some()).finish_non_exhaustive()
    }
}

/// The sentence of the contract that a check waits for.
#[derive(Default)]
struct Awaited(Mutex<&'static str>);

impl Awaited {
    fn get(&self) -> &'static str {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A clock that is being tested. Clones are the same.
pub(super) struct Watch<C> {
    clock: Arc<C>,
    advance: Option<Advance<C>>,
    awaited: Arc<Awaited>,
}

impl<C> Clone for Watch<C> {
    fn clone(&self) -> Self {
        Self {
            clock: Arc::clone(&self.clock),
            advance: self.advance.clone(),
            awaited: Arc::clone(&self.awaited),
        }
    }
}

/// A sleep whose panics contain the requested time.
pub(super) type Sleep = BoxFuture<'static, ()>;

/// A sleep that a task of its own waits for; it returns the time at which it ended.
pub(super) struct Asleep {
    task: JoinHandle<SystemTime>,
    until: SystemTime,
}

impl<C: Clock> Watch<C> {
    /// Sets the sentence that a timeout reports from now on.
    pub(super) fn demand(&self, sentence: &'static str) {
        *self.awaited.0.lock().unwrap_or_else(PoisonError::into_inner) = sentence;
    }

    pub(super) fn now(&self) -> SystemTime {
        catch_unwind(AssertUnwindSafe(|| self.clock.now())).unwrap_or_else(|panic| panicked("`now`", &*panic))
    }

    pub(super) fn sleep(&self, until: SystemTime) -> Sleep {
        let made = catch_unwind(AssertUnwindSafe(|| self.clock.sleep_until(until)));
        let sleep = made.unwrap_or_else(|panic| panicked("`sleep_until`", &*panic));
        Box::pin(async move {
            let slept = AssertUnwindSafe(sleep).catch_unwind().await;
            slept.unwrap_or_else(|panic| panicked("a poll of a sleep", &*panic));
        })
    }

    /// Spawns a task for a sleep, and returns once the task has polled it.
    pub(super) async fn fall_asleep(&self, sleep: Sleep, until: SystemTime) -> Asleep {
        let watch = self.clone();
        let task = tokio::spawn(async move {
            sleep.await;
            watch.now()
        });
        yield_now().await;
        Asleep { task, until }
    }

    /// Sleeps for this long while time passes.
    pub(super) async fn sleep_for(&self, time: Duration) {
        let until = self.now() + time;
        let asleep = self.fall_asleep(self.sleep(until), until).await;
        self.pass_until(until).await;
        asleep.ends().await;
    }

    /// Advances to this time, in one step if the clock can.
    pub(super) async fn jump_to(&self, at: SystemTime) {
        if let (Some(advance), Ok(left)) = (&self.advance, at.duration_since(self.now())) {
            advance(&self.clock, left);
        }
        self.pass_until(at).await;
    }

    /// Lets time pass.
    pub(super) async fn pass(&self, time: Duration) {
        self.pass_until(self.now() + time).await;
    }

    /// Advances to this time in small steps.
    pub(super) async fn pass_until(&self, at: SystemTime) {
        while let Ok(left) = at.duration_since(self.now())
            && !left.is_zero()
        {
            match &self.advance {
                Some(advance) => {
                    advance(&self.clock, left.min(STEP));
                    // Woken tasks run now.
                    yield_now().await;
                }
                None => tokio::time::sleep(left.min(STEP)).await,
            }
        }
    }

    /// Whether the test drives the time.
    pub(super) fn is_driven(&self) -> bool {
        self.advance.is_some()
    }

    /// The same for a thread without a runtime. Virtual time stands still.
    pub(super) fn pass_a_little(&self) {
        match &self.advance {
            Some(advance) => advance(&self.clock, STEP),
            None => std::thread::sleep(STEP),
        }
    }
}

impl Asleep {
    /// Waits until the sleep has ended, which is never before its time.
    pub(super) async fn ends(self) {
        let ended = self.task.await.unwrap_or_else(|error| resume_unwind(error.into_panic()));
        let early = self.until.duration_since(ended).unwrap_or_default();
        assert!(early.is_zero(), "a sleep does not end before its time, but this one was {early:?} early");
    }

    pub(super) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

/// Polls a sleep once with a waker that does nothing; returns whether the sleep has ended.
pub(super) fn poll(sleep: &mut Sleep) -> bool {
    Pin::new(sleep).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn panicked(call: &str, panic: &(dyn std::any::Any + Send)) -> ! {
    panic!("a clock does not panic, but {call} did: {}", panic_text(panic))
}
