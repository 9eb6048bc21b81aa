//! Where time comes from. This file owns what a clock promises, and the clock of the system; what a run makes
//! of its readings is in `run::clock`. Nothing here orders anything: order is position in the log (S4).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;

use crate::panics::{caught, caught_in};

/// Where an engine takes the time from (S36).
///
/// Every time that the library records or shows is a reading of it: when an event entered the log, when
/// something was observed, when an execution started and how long it took. So under a clock that is driven by
/// a test, a step that waited for an hour of its time took an hour. What a poll costs the processor is
/// measured by other means, and order is never taken from a clock (S4).
///
/// A clock has two duties. They belong together: when a sleep ends, the time it was for has come.
///
/// **Threads.** Both are called from any thread, also from several at once, and also from threads without a
/// runtime: a step may show something from wherever it works. A sleep may be polled on another thread than the
/// one that made it, but only on a runtime; so one that needs the runtime's timers takes them when it is first
/// polled, not when it is made. Time that passes on any thread wakes it.
///
/// **Speed.** With a clock set, `now` is called several times for each step. Neither call may block.
///
/// **Panics.** A clock does not panic, whatever time it is asked for. One that does ends the run that asked.
///
/// `clock_conformance!` of `workflow-testkit` has the tests for a clock of your own, and its `VirtualClock` is
/// a clock that waits for nothing.
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
    /// The time.
    ///
    /// It does not go backwards: of two calls, of which one returned before the other began, the second does
    /// not return the earlier time, whichever threads they came from. A clock that people set may break that
    /// when they do. A run takes the latest time it has seen for the time until the clock has caught up, so
    /// that nothing in its report ends before it started; observations show the reading as it is.
    fn now(&self) -> SystemTime;

    /// Completes when it is `at`.
    ///
    /// - **Never early.** Once it has completed, [`now`](Self::now) returns `at` or later.
    /// - **Never lost.** It completes without being asked again: the task that polled it last is woken. A time
    ///   that has passed, when it is called or when it is first polled, completes at once, without any further
    ///   passing of time.
    /// - **Any time will do.** One that is thousands of years away is waited for like any other.
    /// - **Many at once.** Sleeps know nothing of each other. Neither a long one nor one that is never polled
    ///   holds up another.
    /// - **Nothing happens without being polled**, and a poll does not block. Dropping a sleep at any time has
    ///   no effect on other sleeps, also on those until the same time.
    ///
    /// It borrows nothing, so that a run can keep it beside what else it waits for. It is polled on the
    /// runtime that the run was started on.
    fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()>;
}

impl fmt::Debug for dyn Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The longest that [`SystemClock`] sleeps without a look at the system's clock.
const LOOK: Duration = Duration::from_mins(1);

/// How long a sleep lasts that a clock's panic ends.
const PAUSE: Duration = Duration::from_secs(1);

/// The system's clock: what an engine goes by that was given no other.
///
/// It sleeps by tokio's timers and looks at the system's clock before it ends. When the machine was
/// suspended, or its clock was set, a sleep notices that within a minute.
///
/// A sleep that has to wait needs a runtime whose timers are enabled (`enable_time`), and panics without, as
/// tokio's own does. On a runtime whose time is paused it sleeps over and over until the time has come by the
/// system's clock: take the `VirtualClock` of `workflow-testkit` there.
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

/// What the system's clock shows; in a test, what the test lets it show.
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
            // A timer may be early: it goes by another clock, which nobody sets.
            while let Some(left) = time_left(wall.now(), at) {
                tokio::time::sleep(left.min(LOOK)).await;
            }
        })
    }
}

/// Nothing once the time has come.
fn time_left(now: SystemTime, at: SystemTime) -> Option<Duration> {
    at.duration_since(now).ok().filter(|left| !left.is_zero())
}

/// The clock of an engine. One that was given none reads the system's clock itself, so that a run may derive
/// its times from readings that it takes anyway.
#[derive(Clone, Default)]
pub(crate) struct EngineClock {
    given: Option<Arc<dyn Clock>>,
    /// What it goes by if it was given none.
    wall: Wall,
}

impl EngineClock {
    pub(crate) fn new(clock: impl Clock) -> Self {
        Self { given: Some(Arc::new(clock)), wall: Wall::default() }
    }

    /// Whether it was given none: its sleeps go by what the system's clock shows when they end.
    pub(crate) fn is_system(&self) -> bool {
        self.given.is_none()
    }

    /// The time by the clock that the engine was given, if it was given one.
    pub(crate) fn given(&self) -> Option<SystemTime> {
        self.given.as_ref().map(|clock| clock.now())
    }

    /// Ends when the time has come.
    pub(crate) fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
        self.given.as_ref().map_or_else(|| self.wall.sleep_until(at), |clock| clock.sleep_until(at))
    }

    /// The same where no run waits for it. A clock that panics ends the sleep a little later: the run that it was for asks
    /// the clock itself then, and ends by it.
    pub(crate) async fn slept_until(&self, at: SystemTime) {
        if caught_in(async { self.sleep_until(at).await }).await.is_err() {
            // Whoever is to be woken again and again is not woken without a pause.
            let _ = caught_in(tokio::time::sleep(PAUSE)).await;
        }
    }

    /// Ends so long after now. A time that the clock cannot show never comes.
    pub(crate) fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        match self.now().checked_add(time) {
            Some(at) => self.sleep_until(at),
            None => Box::pin(std::future::pending()),
        }
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.given().unwrap_or_else(|| self.wall.now())
    }

    /// The time to be shown to people, who are shown the system's where the engine's clock panics: what has happened is
    /// told also while a run ends by such a panic.
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

    /// Goes on with tokio's time, which a test pauses, and is set forward and back besides.
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

        /// An engine's that was given no other clock.
        pub(crate) fn of_engine(&self) -> EngineClock {
            let clock = self.clone();
            EngineClock { given: None, wall: Wall(Some(Arc::new(move || clock.now()))) }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn nothing_is_left_of_a_time_that_has_come() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(1);
        assert_eq!(time_left(now, now), None);
        assert_eq!(time_left(now, SystemTime::UNIX_EPOCH), None);
        assert_eq!(time_left(now, now + Duration::from_nanos(1)), Some(Duration::from_nanos(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_early_is_not_believed() {
        let at = SystemTime::now() + Duration::from_millis(20);
        // Paused timers end at once, whatever the system's clock shows.
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

    /// Has stopped for good.
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
