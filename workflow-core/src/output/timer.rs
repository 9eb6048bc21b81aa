//! `Timer<E>`: an event that enters the log when its time has come. Who waits for that is the run.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::{Emitted, EmittedItem, One, OutputSpec, StepOutput};
use crate::error::StepError;
use crate::event::{AnyEvent, ControlEvent};

/// How many timers of one run can be pending.
pub(crate) const MAX_TIMERS: usize = 10_000;

/// What stands for a time that the clock cannot show.
const FAR: Duration = Duration::from_hours(24 * 365 * 1_000);

/// A step's output that wakes the run later: the event enters the log when its time has come by the engine's
/// [`Clock`](crate::Clock).
///
/// The timer is set when the execution commits (S23): one that fails sets none. Meanwhile it keeps the scope that
/// it was set in open (S47), and a run with nothing else to do waits and takes none of the engine's places (S30).
/// When the time has come, the event enters the log in that scope and is evaluated like any other. A time that has
/// passed comes at once; of several, the earliest comes first, and of those for one time the one that was set
/// first.
///
/// A timer is dropped with its branch, and with the run when that ends. It can stand wherever an event can: in
/// `Option`, `Vec`, tuples and `Result`. At most 10,000 timers of a run are pending, those of requests that
/// [expire](crate::Expiring) included; an execution that would set more fails with [`TimerError`].
///
/// ```
/// use std::time::Duration;
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct OrderPlaced;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct PayLater;
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Reminded;
/// # struct Reminders;
/// #[workflow]
/// impl Reminders {
///     #[step]
///     async fn place(&self, order: &OrderPlaced) -> Timer<PayLater> {
///         Timer::after(Duration::from_millis(5), PayLater)
///     }
///
///     #[step]
///     async fn remind(&self, due: &PayLater) -> Reminded {
///         Reminded
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), RunError> {
/// assert_eq!(Reminders.run(OrderPlaced).await?, Reminded);
/// # Ok(())
/// # }
/// ```
#[must_use = "a timer is set by returning it from a step"]
pub struct Timer<E> {
    when: When,
    event: E,
}

impl<E> Timer<E> {
    /// The event comes when so much time has passed since the step returned.
    pub fn after(delay: Duration, event: E) -> Self {
        Self { when: When::After(delay), event }
    }

    /// The event comes at this time.
    pub fn at(time: SystemTime, event: E) -> Self {
        Self { when: When::At(time), event }
    }
}

impl<E> fmt::Debug for Timer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timer({:?})", self.when)
    }
}

impl<E: ControlEvent> StepOutput for Timer<E> {
    const SPEC: OutputSpec = OutputSpec::Timed(E::TYPE);
    type Events = One<E>;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        let Self { when, event } = self;
        let timer = SetTimer { when, event: AnyEvent::new(event) };
        emitted.put(EmittedItem::Timer(Box::new(timer)));
        Ok(())
    }
}

/// Why an execution failed that wanted to set a timer.
///
/// ```
/// use workflow_core::{RunError, TimerError};
///
/// fn set_too_many(error: &RunError) -> bool {
///     matches!(error, RunError::StepFailed { source, .. } if source.downcast_ref::<TimerError>().is_some())
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimerError {
    /// The bound of timers that are pending in one run is reached.
    #[error(
        "{limit} timers of the run are pending, which is the most there can be: set one for several events, or wait in fewer branches at a time"
    )]
    TooMany {
        /// How many timers of one run can be pending.
        limit: usize,
    },
}

/// A timer in a batch, its event erased.
#[derive(Debug)]
pub(crate) struct SetTimer {
    pub(crate) when: When,
    pub(crate) event: AnyEvent,
}

/// When a timer is due.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    After(Duration),
    At(SystemTime),
}

impl When {
    /// The time, for a timer that is set now. A time before 1970 has long come, and has no form in a journal.
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
    fn a_time_that_no_clock_can_show_is_far_away() {
        let now = SystemTime::UNIX_EPOCH;
        assert_eq!(When::After(Duration::MAX).due(now), now + FAR);
    }

    #[test]
    fn the_last_time_that_a_clock_can_show_has_none_behind_it() {
        let mut last = SystemTime::UNIX_EPOCH;
        for seconds in (0..64).rev().map(|bit| 1 << bit) {
            last = last.checked_add(Duration::from_secs(seconds)).unwrap_or(last);
        }
        for delay in [Duration::ZERO, Duration::from_hours(1), Duration::MAX] {
            assert_eq!(When::After(delay).due(last), last);
        }
    }

    #[test]
    fn a_time_before_all_times_has_come() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(When::At(before).due(SystemTime::now()), SystemTime::UNIX_EPOCH);
    }
}
