//! The clock of one run, by the engine's clock.
//!
//! One reading serves everything that happens between two polls of user code. The run has three times:
//!
//! | time | is | used for |
//! |---|---|---|
//! | `now` | the time since the run's beginning; never goes back | the state, durations |
//! | `stamp` | beginning + `now` | records, reports |
//! | `wall` | the engine's clock | due times of timers, and whether they are due |
//!
//! The system's clock can be set, and it continues while the machine sleeps; so durations do not use it, and
//! sleeps do.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime};

use crate::clock::EngineClock;
use crate::store::Record;

/// A thousand years: longer than any process runs.
const ROOM: Duration = Duration::from_hours(24 * 366 * 1_000);

/// The times of one run.
#[derive(Debug, Clone)]
pub(super) struct RunClock {
    /// The last reading, from the beginning of the run. Never goes back.
    pub(super) now: Duration,
    pub(super) began_at: SystemTime,
    /// Whether [`SystemTime`] reaches [`ROOM`] beyond the beginning.
    has_room: bool,
    /// The system's time at the last reading, if it was needed since.
    shown: Cell<Option<SystemTime>>,
    /// The real time of the last reading. The cost of polls is measured by this, whatever the engine's clock
    /// is.
    pub(super) read: Instant,
    clock: EngineClock,
}

/// The clock of a suspended run, without the parts that the engine has too.
#[derive(Debug)]
pub(super) struct SuspendedClock {
    now: Duration,
    began_at: SystemTime,
    read: Instant,
}

impl RunClock {
    pub(super) fn start(clock: EngineClock) -> Self {
        let began_at = clock.now();
        Self::resume(clock, began_at)
    }

    /// The clock of a run that began at this time.
    pub(super) fn resume(clock: EngineClock, began_at: SystemTime) -> Self {
        Self {
            now: Duration::ZERO,
            began_at,
            has_room: began_at.checked_add(ROOM).is_some(),
            shown: Cell::default(),
            read: Instant::now(),
            clock,
        }
    }

    /// The clock in its compact form.
    pub(super) fn suspend(&self) -> SuspendedClock {
        SuspendedClock { now: self.now, began_at: self.began_at, read: self.read }
    }

    /// The clock as it was before it was suspended. The time since then counts.
    pub(super) fn restore(clock: EngineClock, suspended: &SuspendedClock) -> Self {
        let SuspendedClock { now, began_at, read } = *suspended;
        Self { now, read, ..Self::resume(clock, began_at) }
    }

    /// Moves `now` forward to the time of a record.
    pub(super) fn show(&mut self, at: SystemTime) {
        self.now = self.now.max(at.duration_since(self.began_at).unwrap_or_default());
    }

    /// When the run ended, from its beginning, if this record says so.
    pub(super) fn end_of(&self, last: Option<&Record>) -> Option<Duration> {
        let Some(Record::RunEnded { at, .. }) = last else { return None };
        Some(at.duration_since(self.began_at).unwrap_or_default())
    }

    /// Moves `now` forward to the engine's time, however long nobody read the clock.
    pub(super) fn catch_up(&mut self) {
        self.show(self.clock.now());
        self.shown.set(None);
        self.read = Instant::now();
    }

    /// Reads the clock. Returns the real time since the last reading.
    #[inline]
    pub(super) fn tick(&mut self) -> Duration {
        let read = Instant::now();
        let passed = read.saturating_duration_since(self.read);
        self.read = read;
        self.shown.set(None);
        self.now = match self.clock.given() {
            None => self.later(passed).unwrap_or(self.now),
            Some(at) => self.now.max(at.duration_since(self.began_at).unwrap_or_default()),
        };
        passed
    }

    /// What `now` would be if the clock were read.
    pub(super) fn current(&self) -> Duration {
        if self.clock.is_system() {
            return self.later(self.read.elapsed()).unwrap_or(self.now);
        }
        self.now.max(self.clock.shown().duration_since(self.began_at).unwrap_or_default())
    }

    /// `now` later by `passed`, if a [`SystemTime`] can show it: a journal may claim that its run began near
    /// the end of time.
    fn later(&self, passed: Duration) -> Option<Duration> {
        let now = self.now.checked_add(passed)?;
        let is_shown = self.has_room && now < ROOM || self.began_at.checked_add(now).is_some();
        is_shown.then_some(now)
    }

    /// The last reading as a time for records and reports. A replay takes its times from records, and the
    /// state uses `now`; so both must be the same reading, even if the system's clock is set. Only the time
    /// at which a timer is set uses `wall`, as its due time does.
    pub(super) fn stamp(&self) -> SystemTime {
        self.began_at + self.now
    }

    /// The time by which sleeps end: when timers fall due, and whether they are due. If the engine was given a
    /// clock, this is the last reading of it, and never goes back.
    pub(super) fn wall(&self) -> SystemTime {
        if !self.clock.is_system() {
            return self.stamp();
        }
        let shown = self.shown.get().unwrap_or_else(|| self.clock.now());
        self.shown.set(Some(shown));
        shown
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::future::BoxFuture;

    use super::*;
    use crate::clock::Clock;
    use crate::clock::set::SetClock;
    use crate::prelude::*;

    /// Shows these seconds, one after the other.
    struct Shows(Mutex<std::vec::IntoIter<u64>>);

    impl Clock for Shows {
        fn now(&self) -> SystemTime {
            let seconds = self.0.lock().unwrap().next().unwrap();
            SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
        }

        fn sleep_until(&self, _: SystemTime) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn a_clock_that_is_set_back_stands_still_until_it_has_caught_up() {
        let shown = vec![100, 107, 103, 99, 108];
        let mut clock = RunClock::start(EngineClock::new(Shows(Mutex::new(shown.into_iter()))));
        let seconds = [(); 4].map(|()| {
            clock.tick();
            clock.now.as_secs()
        });
        assert_eq!(seconds, [7, 7, 7, 8]);
    }

    #[test]
    fn without_a_clock_of_its_own_it_goes_by_the_real_one() {
        let mut clock = RunClock::start(EngineClock::default());
        let pause = Duration::from_millis(2);
        std::thread::sleep(pause);
        assert!(clock.tick() >= pause);
        assert!(clock.now >= pause);
    }
    const TEN_MINUTES: Duration = Duration::from_mins(10);

    /// How long a ten-minute timer takes if it is set after the clock was set by `set_by` seconds.
    async fn takes(set_by: i64) -> Duration {
        let system = SetClock::new();
        let mut clock = RunClock::start(system.of_engine());
        system.set_by(set_by);
        clock.tick();
        let due = clock.wall() + TEN_MINUTES;
        let began = tokio::time::Instant::now();
        clock.clock.sleep_until(due).await;
        clock.tick();
        assert!(clock.wall() >= due, "it is due when the sleep for it ends");
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_set_after_the_clock_was_set_takes_its_full_time() {
        for set_by in [0, 3_600, -3_600] {
            let took = takes(set_by).await;
            assert!((TEN_MINUTES..TEN_MINUTES + Duration::from_secs(1)).contains(&took), "{took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_pending_while_the_clock_is_set_forward_is_due_by_the_clock() {
        let system = SetClock::new();
        let mut clock = RunClock::start(system.of_engine());
        let due = clock.wall() + TEN_MINUTES;
        system.set_by(600);
        assert!(clock.wall() < due, "one reading serves what happens at the same time");
        clock.tick();
        assert!(clock.wall() >= due);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_resumes_goes_by_the_clock() {
        let system = SetClock::new();
        let began_at = system.now();
        system.set_by(3_600);
        let mut clock = RunClock::resume(system.of_engine(), began_at);
        clock.catch_up();
        assert_eq!((clock.wall(), clock.now), (began_at + Duration::from_hours(1), Duration::from_hours(1)));
    }

    #[test]
    fn the_time_for_which_it_was_suspended_counts() {
        let mut clock = RunClock::start(EngineClock::default());
        clock.tick();
        let (began_at, now) = (clock.began_at, clock.now);
        let suspended = clock.suspend();
        let pause = Duration::from_millis(2);
        std::thread::sleep(pause);
        let mut clock = RunClock::restore(EngineClock::default(), &suspended);
        assert_eq!((clock.began_at, clock.now), (began_at, now));
        assert!(clock.tick() >= pause);
        assert!(clock.now >= now + pause);
    }

    #[test]
    fn a_time_that_cannot_be_shown_is_never_come_to() {
        let last = SystemTime::UNIX_EPOCH + Duration::from_secs(i64::MAX.unsigned_abs());
        for (began_at, shown) in [(last, last), (SystemTime::UNIX_EPOCH, last), (last - ROOM, last)] {
            let mut clock = RunClock::resume(EngineClock::default(), began_at);
            clock.show(shown);
            for passed in [Duration::ZERO, Duration::from_hours(1), ROOM, Duration::MAX] {
                let later = clock.later(passed);
                assert!(later.is_none_or(|later| began_at.checked_add(later).is_some()), "{passed:?}");
            }
            assert_eq!(clock.later(ROOM), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn how_long_something_took_is_reckoned_without_the_clock() {
        let system = SetClock::new();
        let mut clock = RunClock::start(system.of_engine());
        system.set_by(3_600);
        clock.tick();
        assert!(clock.now < Duration::from_mins(1));
    }
    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(start, crate = crate)]
    struct Begin;

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(crate = crate)]
    struct Rang;

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    #[event(stop, crate = crate)]
    struct Done;

    /// Sets the clock, and then a timer; twice.
    struct Alarms(SetClock, i64);

    #[workflow(crate = crate)]
    impl Alarms {
        #[step]
        async fn first(&self, _begin: &Begin) -> Timer<Rang> {
            self.0.set_by(self.1);
            Timer::after(TEN_MINUTES, Rang)
        }

        #[step(loops, max_executions = 2)]
        async fn second(&self, _rang: &Rang) -> Timer<Rang> {
            self.0.set_by(self.1);
            Timer::after(TEN_MINUTES, Rang)
        }

        #[step]
        async fn end(&self, _rang: &FixedList<Rang, 2>) -> Done {
            Done
        }
    }

    // S32
    #[tokio::test(start_paused = true)]
    async fn every_timer_of_a_run_takes_its_full_time_however_the_clock_was_set_before() {
        for set_by in [0, 3_600, -3_600] {
            let system = SetClock::new();
            let engine = Engine::builder().workflow(Alarms(system.clone(), set_by));
            let engine = engine.system_clock(system.of_engine()).build().unwrap();
            let began = tokio::time::Instant::now();
            let run = engine.start::<Alarms>(Begin).await.unwrap();
            run.outcome().await.unwrap();
            let took = began.elapsed();
            assert!((2 * TEN_MINUTES..2 * TEN_MINUTES + Duration::from_secs(2)).contains(&took), "{took:?}");
        }
    }
}
