//! What enters a run's journal at once: what came from outside, and what executions leave behind.

use std::time::SystemTime;

use super::DueEvent;
use crate::error::StepError;
use crate::event::AnyEvent;
use crate::id::{ChildRun, ExecutionId, Seq, TimerId};
use crate::retry::{FailedAttempt, NotRetried};
use crate::scheduler::{CandidateId, Emission, Entered, Fact};
use crate::table::{EventIndex, StepIndex};

/// What enters a run's journal at once.
#[derive(Debug, Clone)]
pub(in crate::run) enum Batch {
    /// An event came from outside.
    Received { event: AnyEvent, index: EventIndex },
    /// A reply came from outside.
    Replied { request: Seq, event: AnyEvent },
    /// The time of a timer has come.
    Fired { timer: TimerId, event: AnyEvent },
    /// A precondition answered, or failed.
    Answered { candidate: CandidateId, step: StepIndex, answer: Result<bool, StepError> },
    /// An execution succeeded, and leaves this behind (S23).
    Succeeded { execution: ExecutionId, returned: Returned },
    /// An attempt failed and another one follows.
    Retried { execution: ExecutionId, failed: FailedAttempt },
    /// An execution failed for good.
    Failed { execution: ExecutionId, error: StepError, not_retried: NotRetried },
    /// An execution started a child.
    ChildStarted { child: ChildRun, at: SystemTime },
    /// The run is to end, whatever is left to do in it.
    Stopped(Stop),
}

impl Batch {
    /// The execution whose batch it is, if one succeeded with it.
    pub(in crate::run) fn succeeded_execution(&self) -> Option<ExecutionId> {
        if let Self::Succeeded { execution, .. } = self { Some(*execution) } else { None }
    }
}

/// What an execution returned.
#[derive(Debug, Clone)]
pub(in crate::run) enum Returned {
    Nothing,
    /// One event, as nearly every execution does.
    Event(EventIndex, AnyEvent),
    /// Anything else. Boxed: batches are handed on.
    Many(Box<ReturnedBatch>),
}

/// What an execution returned, in order.
#[derive(Debug, Default, Clone)]
pub(in crate::run) struct ReturnedBatch {
    pub(in crate::run) emissions: Vec<Emission>,
    /// What enters the log, the items of fan-outs among it.
    pub(in crate::run) events: Vec<AnyEvent>,
    pub(in crate::run) timers: Vec<DueEvent>,
}

impl Returned {
    /// What a journal has of it.
    pub(super) fn of(emissions: Vec<Emission>, mut events: Vec<AnyEvent>, timers: Vec<DueEvent>) -> Self {
        match (emissions.as_slice(), events.pop()) {
            ([Emission::Event(index)], Some(event)) if events.is_empty() => Self::Event(*index, event),
            ([], None) if timers.is_empty() => Self::Nothing,
            (_, last) => {
                events.extend(last);
                Self::Many(Box::new(ReturnedBatch { emissions, events, timers }))
            }
        }
    }

    /// What enters the log, in order.
    pub(in crate::run) fn events(&self) -> &[AnyEvent] {
        match self {
            Self::Nothing => &[],
            Self::Event(_, event) => std::slice::from_ref(event),
            Self::Many(many) => &many.events,
        }
    }

    pub(in crate::run) fn events_mut(&mut self) -> &mut [AnyEvent] {
        match self {
            Self::Nothing => &mut [],
            Self::Event(_, event) => std::slice::from_mut(event),
            Self::Many(many) => &mut many.events,
        }
    }

    pub(in crate::run) fn timers_mut(&mut self) -> &mut [DueEvent] {
        match self {
            Self::Nothing | Self::Event(..) => &mut [],
            Self::Many(many) => &mut many.timers,
        }
    }

    /// The timers that are set, in order.
    pub(in crate::run) fn timers(&self) -> &[DueEvent] {
        match self {
            Self::Nothing | Self::Event(..) => &[],
            Self::Many(many) => &many.timers,
        }
    }

    /// The same in the scheduler's terms, unless it is one event.
    pub(in crate::run) fn emissions(&self) -> &[Emission] {
        match self {
            Self::Nothing | Self::Event(..) => &[],
            Self::Many(many) => &many.emissions,
        }
    }
}

/// Why a run ends that would go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum Stop {
    Cancelled,
    TimedOut,
    /// Nothing more enters its journal: the store failed, or the run is detached.
    Unkept,
}

impl From<Stop> for Fact {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancelled => Self::CancelRequested,
            Stop::TimedOut => Self::TimeRanOut,
            Stop::Unkept => Self::AppendFailed,
        }
    }
}

/// What became of a batch.
#[derive(Debug)]
pub(in crate::run) enum Applied {
    /// Its events are in the log. It names the execution that may begin directly, if one may.
    Entered(Entered),
    /// It changed the state and left no event. It has a record, unless it stopped the run or is the failure of a
    /// precondition.
    WithoutEvent,
    /// The run takes nothing more, or what it is for is over: it is in no journal.
    Refused,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::Gathered;

    fn event() -> AnyEvent {
        AnyEvent::from_erased(Arc::new(Gathered { branches: Vec::new() }))
    }

    #[test]
    fn one_event_and_none_take_no_memory_of_their_own() {
        let index = EventIndex::at(3);
        let one = Returned::of(vec![Emission::Event(index)], vec![event()], Vec::new());
        assert!(matches!(one, Returned::Event(of, _) if of == index));
        assert!(matches!(Returned::of(Vec::new(), Vec::new(), Vec::new()), Returned::Nothing));
    }

    #[test]
    fn several_events_stay_in_their_order() {
        let emissions: Vec<Emission> = (0..3).map(|index| Emission::Event(EventIndex::at(index))).collect();
        let many = Returned::of(emissions.clone(), vec![event(), event(), event()], Vec::new());
        assert_eq!((many.emissions(), many.events().len()), (&emissions[..], 3));
        assert!(many.timers().is_empty());
    }
}
