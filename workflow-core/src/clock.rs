//! Clocks: the contract of a clock, and the system's clock. `run::clock` makes the times of a run from its readings. A
//! clock orders nothing: order is position in the log (S4).

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;

use crate::panics::{caught, caught_in};

/// The source of an engine's times.
///
/// Every time that the library records or shows is a reading of it: when an event entered the log, when something was
/// observed, when an execution started and how long it took. Under a clock that a test drives, a step that waited for
/// an hour of its time took an hour. The processor time of a poll is measured by other means, and order is never taken
/// from a clock.
///
/// A clock has two duties, which belong together: when a sleep ends, its time has come.
///
/// **Threads.** Any thread may call both, several may at once, and some have no runtime: a step may show an item from
/// any thread. A sleep may be polled on another thread than the one that made it, but only on a runtime. So a clock
/// that needs the runtime's timers takes them at the first poll. A sleep wakes its task whichever thread lets time
/// pass.
///
/// **Speed.** With a clock set, `now` is called several times for each step. Neither call may block.
///
/// **Panics.** A clock does not panic, for any time. A panic ends the run that called it.
///
/// `clock_conformance!` of `workflow-testkit` has the tests for your own clock, and its `VirtualClock` never waits.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use futures::future::BoxFuture;
/// use workflow_core::{Clock, Engine, SystemClock};
///
/// /// Lets a test see what happens tomorrow.
/// struct Ahead { by: Duration }
///
/// impl Clock for Ahead {
///     fn now(&self) -> SystemTime {
///         SystemClock.now() + self.by
///     }
///
///     fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
///         // A time that the system's clock cannot show has long passed.
///         SystemClock.sleep_until(at.checked_sub(self.by).unwrap_or(SystemTime::UNIX_EPOCH))
///     }
/// }
///
/// let engine = Engine::builder().clock(Ahead { by: Duration::from_hours(24) }).build()?;
/// # Ok::<(), workflow_core::BuildError>(())
/// ```
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    ///
    /// It does not go backwards: of two calls, the first of which returned before the second began, the second does not
    /// return an earlier time, on any threads. A clock that people set may break that when they do. A run uses the
    /// latest time that it has seen until the clock has caught up, so nothing in its report ends before it starts;
    /// observations show the reading itself.
    fn now(&self) -> SystemTime;

    /// Completes when the time is `at`.
    ///
    /// - **Never early.** Once it has completed, [`now`](Self::now) returns `at` or later.
    /// - **Never lost.** It wakes the task that polled it last. A time that has passed, at the call or at the first
    ///   poll, completes at once, without any further passing of time.
    /// - **Any time.** A time thousands of years away is valid.
    /// - **Many at once.** Sleeps are independent. Neither a long one nor an unpolled one delays another.
    /// - **Only when polled.** Nothing happens without a poll, and a poll does not block. Dropping a sleep affects no
    ///   other sleep, even one until the same time.
    ///
    /// The future borrows nothing, so a run can hold it beside its other waits. It is polled on the run's runtime.
    fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()>;
}

/// A shared clock, such as one that a test drives for several engines.
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> SystemTime {
        (**self).now()
    }

    fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
        (**self).sleep_until(at)
    }
}

impl fmt::Debug for dyn Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The longest sleep of [`SystemClock`] without a look at the system's clock.
const LOOK: Duration = Duration::from_mins(1);

/// The duration of a sleep that a clock's panic ends.
const PAUSE: Duration = Duration::from_secs(1);

/// The system's clock: the default of an engine.
///
/// It sleeps by tokio's timers and checks the system's clock before it completes. After a suspend of the machine, or a
/// set clock, a sleep notices the change within a minute.
///
/// A pending sleep needs a runtime with timers (`enable_time`), and panics without, as tokio's own does. On a runtime
/// with paused time it repeats its sleep until the system's clock shows the time: use the `VirtualClock` of
/// `workflow-testkit` there.
///
/// ```
/// use std::time::Duration;
/// use workflow_core::{Clock, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let at = SystemClock.now() + Duration::from_millis(2);
/// SystemClock.sleep_until(at).await;
/// assert!(SystemClock.now() >= at);
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
        Wall::default().sleep_until(at)
    }
}

/// A reading of the system's clock, or in a test, of the test's.
#[derive(Clone, Default)]
struct Wall(#[cfg(test)] Option<Arc<dyn Fn() -> SystemTime + Send + Sync>>);

impl Wall {
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "only a test sets it"))]
    fn now(&self) -> SystemTime {
        #[cfg(test)]
        if let Some(shown) = &self.0 {
            return shown();
        }
        SystemTime::now()
    }

    fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
        let wall = self.clone();
        Box::pin(async move {
            // A timer may be early, because it uses another clock, which people cannot set.
            while let Some(left) = time_left(wall.now(), at) {
                tokio::time::sleep(left.min(LOOK)).await;
            }
        })
    }
}

/// Returns the rest of the wait; `None` once the time has come.
fn time_left(now: SystemTime, at: SystemTime) -> Option<Duration> {
    at.duration_since(now).ok().filter(|left| !left.is_zero())
}

/// An engine's clock. The default one reads the system's clock itself, so that a run may derive its times from readings
/// that it needs anyway.
#[derive(Clone, Default)]
pub(crate) struct EngineClock {
    given: Option<Arc<dyn Clock>>,
    /// The system's clock, for the default.
    wall: Wall,
}

impl EngineClock {
    pub(crate) fn new(clock: impl Clock) -> Self {
        Self { given: Some(Arc::new(clock)), wall: Wall::default() }
    }

    /// Whether it is the default: its sleeps end by the readings of the system's clock.
    pub(crate) fn is_system(&self) -> bool {
        self.given.is_none()
    }

    /// The time by the engine's own clock, if it has one.
    pub(crate) fn given(&self) -> Option<SystemTime> {
        self.given.as_deref().map(Clock::now)
    }

    /// A moment on the scale of this clock, in nanoseconds: only its distance from other moments means something. `read`:
    /// the real time. Never 0.
    pub(crate) fn moment(&self, read: Instant) -> u64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        let passed = match self.given {
            None => read.saturating_duration_since(*START),
            Some(_) => self.shown().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
        };
        u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// Completes when the time has come.
    pub(crate) fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
        self.given.as_deref().map_or_else(|| self.wall.sleep_until(at), |clock| clock.sleep_until(at))
    }

    /// The same for a sleep without a run. If the clock panics, the sleep completes a little later: the run then calls
    /// the clock itself, and ends by its panic.
    pub(crate) async fn slept_until(&self, at: SystemTime) {
        if caught_in(async { self.sleep_until(at).await }).await.is_err() {
            // A pause, because a task that is woken again and again must not spin.
            let _ = caught_in(tokio::time::sleep(PAUSE)).await;
        }
    }

    /// Completes so long after now. A time beyond the clock's range never comes.
    pub(crate) fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        match self.now().checked_add(time) {
            Some(at) => self.sleep_until(at),
            None => Box::pin(std::future::pending()),
        }
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.given().unwrap_or_else(|| self.wall.now())
    }

    /// The time for people. If the engine's clock panics, this is the system's time, so that a run can report its end
    /// by that panic.
    pub(crate) fn shown(&self) -> SystemTime {
        if self.is_system() {
            return self.wall.now();
        }
        caught(|| self.now()).unwrap_or_else(|_| self.wall.now())
    }
}

impl fmt::Debug for EngineClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EngineClock").field(&self.given).finish()
    }
}

/// A system's clock that a test sets.
#[cfg(test)]
pub(crate) mod set {
    use std::sync::atomic::{AtomicI64, Ordering};

    use tokio::time::Instant;

    use super::*;

    /// Follows tokio's time, which a test pauses. The test also sets it forward and back.
    #[derive(Clone)]
    pub(crate) struct SetClock {
        began: Instant,
        ahead: Arc<AtomicI64>,
    }

    impl SetClock {
        pub(crate) fn new() -> Self {
            Self { began: Instant::now(), ahead: Arc::default() }
        }

        /// Sets it forward by so many seconds, or back.
        pub(crate) fn set_by(&self, seconds: i64) {
            self.ahead.fetch_add(seconds, Ordering::SeqCst);
        }

        pub(crate) fn now(&self) -> SystemTime {
            let noon = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000) + self.began.elapsed();
            let ahead = self.ahead.load(Ordering::SeqCst);
            let by = Duration::from_secs(ahead.unsigned_abs());
            if ahead < 0 { noon - by } else { noon + by }
        }

        /// An engine's default clock.
        pub(crate) fn of_engine(&self) -> EngineClock {
            let clock = self.clone();
            EngineClock { given: None, wall: Wall(Some(Arc::new(move || clock.now()))) }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_time_that_has_come_needs_no_wait() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(1);
        assert_eq!(time_left(now, now), None);
        assert_eq!(time_left(now, SystemTime::UNIX_EPOCH), None);
        assert_eq!(time_left(now, now + Duration::from_nanos(1)), Some(Duration::from_nanos(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_early_is_not_believed() {
        let at = SystemTime::now() + Duration::from_millis(20);
        // Paused timers complete at once, whatever the system's clock shows.
        SystemClock.sleep_until(at).await;
        assert!(SystemTime::now() >= at);
    }

    #[test]
    fn a_sleep_that_need_not_wait_needs_no_runtime() {
        assert!(SystemClock.sleep_until(SystemTime::UNIX_EPOCH).now_or_never().is_some());
    }

    #[tokio::test]
    #[should_panic(expected = "timers are disabled")]
    async fn a_sleep_that_has_to_wait_panics_where_there_are_no_timers() {
        let without_timers = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _entered = without_timers.enter();
        let tomorrow = SystemTime::now() + Duration::from_hours(24);
        let _ = SystemClock.sleep_until(tomorrow).now_or_never();
    }
    #[tokio::test(start_paused = true)]
    async fn a_sleep_notices_within_a_minute_that_the_clock_was_set_forward() {
        let system = set::SetClock::new();
        let mut sleep = system.of_engine().sleep_until(system.now() + Duration::from_hours(24));
        assert!((&mut sleep).now_or_never().is_none());
        system.set_by(24 * 3_600);
        let began = tokio::time::Instant::now();
        sleep.await;
        assert!(began.elapsed() <= LOOK + Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_follows_a_clock_that_was_set_back() {
        let system = set::SetClock::new();
        let at = system.now() + Duration::from_hours(1);
        let mut sleep = system.of_engine().sleep_until(at);
        assert!((&mut sleep).now_or_never().is_none());
        system.set_by(-3_600);
        sleep.await;
        assert!(system.now() >= at);
    }

    /// A stopped clock.
    struct Broken;

    impl Clock for Broken {
        fn now(&self) -> SystemTime {
            panic!("it is broken")
        }

        fn sleep_until(&self, _: SystemTime) -> BoxFuture<'static, ()> {
            panic!("it is broken")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_panics_shows_the_systems_time_and_ends_sleeps_that_no_run_waits_for() {
        let (clock, before) = (EngineClock::new(Broken), SystemTime::now());
        assert!(clock.shown() >= before);
        clock.slept_until(before + Duration::from_hours(24)).await;
    }
}
