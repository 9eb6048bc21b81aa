//! `Timer<E>`: an event that enters the log later. The run waits for the time; this module only describes it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{Emitted, EmittedItem, One, StepOutput};
use crate::error::StepError;
use crate::event::{AnyEvent, ControlEvent, When};
use crate::spec::OutputSpec;

/// The most pending timers of one run.
pub(crate) const MAX_TIMERS: usize = 10_000;

/// A step's output that wakes the run later: an event that enters the log when due.
///
/// The engine's [`Clock`](crate::Clock) decides when the timer is due.
///
/// The timer is set when the execution commits; a failed attempt sets none. A pending timer keeps its scope
/// open. A run with nothing else to do waits, without a run permit. When the timer is due, its event enters
/// the log in that scope and triggers steps like any other event. A time in the past is due at once. Several
/// due timers fire in the order of their times, and those with the same time in the order in which they were
/// set.
///
/// A timer ends with its branch or run. A step can return timers inside `Option`, `Vec`, tuples and `Result`.
/// A run can have 10,000 pending timers, including those of requests that [expire](crate::Expiring). An
/// execution that would exceed this fails with [`TimerError`].
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
    /// Logs the event after this delay, counted from the step's return.
    pub fn after(delay: Duration, event: E) -> Self {
        Self { when: When::After(delay), event }
    }

    /// Logs the event at this time.
    pub fn at(time: SystemTime, event: E) -> Self {
        Self { when: When::At(time), event }
    }
}

impl<E> fmt::Debug for Timer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timer({:?})", self.when)
    }
}

impl<E> Timer<E> {
    pub(super) fn set(self, event: impl FnOnce(E) -> AnyEvent) -> SetTimer {
        SetTimer { when: self.when, event: event(self.event) }
    }
}

impl<E: ControlEvent> StepOutput for Timer<E> {
    const SPEC: OutputSpec = OutputSpec::Timed(E::TYPE);
    type Events = One<E>;

    fn emit(self, emitted: &mut Emitted) -> Result<(), StepError> {
        emitted.put(EmittedItem::Timer(Box::new(self.set(AnyEvent::new))));
        Ok(())
    }
}

/// Why an execution could not set a timer.
///
/// ```
/// use workflow_core::RunError;
/// use workflow_core::errors::TimerError;
///
/// fn set_too_many(error: &RunError) -> bool {
///     matches!(error, RunError::StepFailed { source, .. } if source.downcast_ref::<TimerError>().is_some())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimerError {
    /// The run has as many pending timers as it may.
    #[error(
        "{limit} timers of the run are pending, which is the most there can be: set one for several events, or wait in fewer branches at a time"
    )]
    TooMany {
        /// The most pending timers of one run: 10,000.
        limit: usize,
    },
    /// A request expires in no time, before anyone can reply.
    #[error(
        "`{request}` expires in no time, before anyone can reply: give `expires_in` more than 0, or `expires_at` a deadline that may have passed"
    )]
    NoTime {
        /// The request.
        request: Arc<str>,
    },
}

/// A timer in a batch, with an erased event.
#[derive(Debug)]
pub(crate) struct SetTimer {
    pub(crate) when: When,
    pub(crate) event: AnyEvent,
}
