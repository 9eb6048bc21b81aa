//! The time of one run, by the engine's clock. One reading serves everything that happens between two polls of
//! user code. What is recorded is the time since the run began; what people see of it is made when they ask.

use std::time::{Duration, Instant, SystemTime};

use crate::clock::EngineClock;

#[derive(Debug, Clone)]
pub(super) struct RunClock {
    /// The last reading, from the beginning of the run. It never goes backwards.
    pub(super) now: Duration,
    pub(super) began_at: SystemTime,
    /// When it was read last. The cost of polls is weighed by this, whatever the engine's clock is.
    read: Instant,
    clock: EngineClock,
}

impl RunClock {
    pub(super) fn start(clock: EngineClock) -> Self {
        Self { now: Duration::ZERO, began_at: clock.now(), read: Instant::now(), clock }
    }

    /// The clock of a run that began then.
    pub(super) fn resume(clock: EngineClock, began_at: SystemTime) -> Self {
        Self { now: Duration::ZERO, began_at, read: Instant::now(), clock }
    }

    /// Shows the time that a record tells of.
    pub(super) fn show(&mut self, at: SystemTime) {
        self.now = self.now.max(at.duration_since(self.began_at).unwrap_or_default());
    }

    /// Shows what time it is by now, however long nobody looked.
    pub(super) fn catch_up(&mut self) {
        self.show(self.clock.now());
        self.read = Instant::now();
    }

    /// Reads the clock; returns the real time since the last reading.
    pub(super) fn tick(&mut self) -> Duration {
        let read = Instant::now();
        let passed = read.saturating_duration_since(self.read);
        self.read = read;
        self.now = match self.clock.given() {
            None => self.now + passed,
            Some(at) => self.now.max(at.duration_since(self.began_at).unwrap_or_default()),
        };
        passed
    }

    /// The last reading as people see it.
    pub(super) fn wall(&self) -> SystemTime {
        self.began_at + self.now
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::future::BoxFuture;

    use super::*;
    use crate::clock::Clock;

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
}
