//! When an event is due that a step emits for later.

use std::time::{Duration, SystemTime};

/// The delay used where the clock cannot represent the real one.
const FAR: Duration = Duration::from_hours(24 * 365 * 1_000);

/// The time at which a timer is due.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    After(Duration),
    At(SystemTime),
}

impl When {
    /// Whether it is a delay of nothing.
    pub(crate) fn is_no_time(self) -> bool {
        matches!(self, Self::After(Duration::ZERO))
    }

    /// The due time of a timer set now. A time before 1970 counts as 1970, since it is past and journals
    /// cannot represent it.
    pub(crate) fn due(self, now: SystemTime) -> SystemTime {
        let due = match self {
            Self::After(delay) => now.checked_add(delay).or_else(|| now.checked_add(FAR)).unwrap_or(now),
            Self::At(time) => time,
        };
        due.max(SystemTime::UNIX_EPOCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_beyond_the_clock_is_due_far_in_the_future() {
        let now = SystemTime::UNIX_EPOCH;
        assert_eq!(When::After(Duration::MAX).due(now), now + FAR);
    }

    #[test]
    fn the_last_time_of_the_clock_stays() {
        let mut last = SystemTime::UNIX_EPOCH;
        for seconds in (0..64).rev().map(|bit| 1 << bit) {
            last = last.checked_add(Duration::from_secs(seconds)).unwrap_or(last);
        }
        for delay in [Duration::ZERO, Duration::from_hours(1), Duration::MAX] {
            assert_eq!(When::After(delay).due(last), last);
        }
    }

    #[test]
    fn a_time_before_1970_is_due() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(When::At(before).due(SystemTime::now()), SystemTime::UNIX_EPOCH);
    }
}
