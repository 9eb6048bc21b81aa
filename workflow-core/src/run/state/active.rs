//! The active time of a run (S32). A period begins with the batch that gives the run something to do, and
//! ends with the batch after which it waits. Only the times of batches count, so a journal determines the
//! active time.
//!
//! ```text
//!  batch       1 s          4 s: waits       9 s: reply     10 s: the last one    60 s: resumed
//!  active      ├──── 3 s ────┤               ├──── 1 s ────┤                      ├───
//!  used        0             3 s                                                  4 s
//! ```
//!
//! Invariant: `used` never decreases, and no moment counts twice.
//!
//! A live run with a timeout also closes the period while other runs have the permits. No journal has this: a
//! replay counts such a wait up to the next batch as active.

use std::time::Duration;

/// The time a run has been active. Times are from the beginning of the run's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ActiveTime {
    /// The sum of the periods that are over.
    used: Duration,
    /// The begin of the current period; `None` while the run waits for an arrival or a permit.
    since: Option<Duration>,
}

impl ActiveTime {
    /// Begins a period with a batch at this time, unless one is under way.
    #[inline]
    pub(crate) fn resume(&mut self, at: Duration) {
        self.since.get_or_insert(at);
    }

    /// Ends the period: the run waits since this time.
    pub(crate) fn pause(&mut self, at: Duration) {
        if let Some(since) = self.since.take() {
            self.used = self.used.saturating_add(at.saturating_sub(since));
        }
    }

    /// When an active run will have been active for `limit`; `None` while it waits.
    pub(crate) fn runs_out(&self, limit: Duration) -> Option<Duration> {
        self.since?.checked_add(limit.saturating_sub(self.used))
    }

    /// No process drove the run between these times: they do not count. A waiting run stays without a period.
    pub(crate) fn restart(&mut self, from: Duration, to: Duration) {
        if self.since.is_some() {
            self.pause(from);
            // If the clock was set back meanwhile, no time counts twice.
            self.since = Some(to.max(from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_between_a_batch_and_the_wait_behind_it_counts() {
        let seconds = Duration::from_secs;
        let mut active = ActiveTime::default();
        active.resume(seconds(1));
        active.resume(seconds(2));
        assert_eq!(active.runs_out(seconds(10)), Some(seconds(11)));
        active.pause(seconds(4));
        assert_eq!(active.runs_out(seconds(10)), None);
        active.pause(seconds(9));
        active.resume(seconds(20));
        assert_eq!(active.runs_out(seconds(10)), Some(seconds(27)));
        assert_eq!(active.runs_out(seconds(2)), Some(seconds(20)), "it has run out");
    }

    #[test]
    fn no_time_counts_twice_though_the_clock_was_set_back_between_two_processes() {
        let mut active = ActiveTime::default();
        active.resume(Duration::ZERO);
        for _ in 0..3 {
            active.restart(Duration::MAX, Duration::ZERO);
        }
        active.pause(Duration::MAX);
        assert_eq!(active, ActiveTime { used: Duration::MAX, since: None });
    }
}
