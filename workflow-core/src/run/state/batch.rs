//! The batch: everything that one fact adds to a run, applied to the state and journaled at once.
//!
//! A fact comes from outside (an event, a reply, a timer, a stop) or from an execution or a precondition.
//! This module has the data only; [`RunState::apply`](super::RunState::apply) gives it its meaning.
//!
//! ```text
//!  driver   command, completion, alarm ─▶ Batch ─┐
//!                                                ├─▶ RunState::apply ─▶ Applied ─▶ records, answers
//!  replay   records of a journal ───────▶ Batch ─┘                             ─▶ compared with the records
//! ```
//!
//! Invariant: a batch has everything that its effect depends on, beside the state. So the same batches in the
//! same order lead to the same state, live and in a replay.
//!
//! Example: a client sends `Begin`, and the driver applies `Received`. `fetch` returns `Page`, and the driver
//! applies `Succeeded` with `Returned::Event`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashSet;

use super::DueEvent;
use crate::error::{Excess, StepError};
use crate::event::AnyEvent;
use crate::id::{ChildRun, ExecutionId, Origin, Redriver, RunStatus, Seq, TimerId};
use crate::retry::{FailedAttempt, NotRetried};
use crate::scheduler::{CandidateId, Emission, End, LoggedBatch};
use crate::store::{EndedChild, ReachedLimit};
use crate::table::{DependencyTable, EventIndex, StepIndex};

/// One change of a run's state, which the state takes or refuses as a whole.
#[derive(Debug, Clone)]
pub(in crate::run) enum Batch {
    /// An event came from outside: the start event, or an external one.
    Received { event: AnyEvent, index: EventIndex, origin: Option<Arc<Origin>> },
    /// A reply to this request came from outside.
    Replied { request: Seq, event: AnyEvent, origin: Option<Arc<Origin>> },
    /// A timer fell due. `event` is the event that the timer was set with, or the expiry of a request.
    Fired { timer: TimerId, event: AnyEvent },
    /// A precondition answered, or failed. `step` is the step of the candidate, for the error.
    Answered { candidate: CandidateId, step: StepIndex, answer: Result<bool, StepError> },
    /// An execution succeeded and emitted this (S23).
    Succeeded { execution: ExecutionId, returned: Returned },
    /// An attempt failed, and the policy has another.
    Retried { execution: ExecutionId, failed: FailedAttempt },
    /// An attempt begins that is journaled.
    AttemptBegan { execution: ExecutionId },
    /// An execution failed for good.
    Failed { execution: ExecutionId, error: StepError, not_retried: NotRetried },
    /// An execution started a child, at this time. Live, `at` is the time of the start; the batch may come later.
    ChildStarted { child: ChildRun, at: SystemTime },
    /// Children have ended. The run learns of it with its next batch, and this is no activity of the run.
    ChildrenEnded(Vec<EndedChild>),
    /// The run has ended, and its clean-up begins (S31).
    CleanUpStarted(Box<CleanUpStart>),
    /// The run ends before it has nothing left to do, or its clean-up does.
    Stopped(Stop),
    /// A caller with this origin cancels the run.
    Cancelled(Arc<Origin>),
    /// A caller ended the waits for next attempts.
    DelaysEnded,
    /// The run is paused (S61).
    Paused(Box<PauseStart>),
    /// A pause of the run ends: its own, or that with its parent. With an id in its origin, also one that has ended.
    Unpaused { by_parent: bool, origin: Option<Arc<Origin>> },
    /// The run continues after its end (S39). Only a replay applies it: a redriven run is always loaded from its journal.
    Redriven(Reopening),
    /// Clean-up steps run again after the end of the run (S86). Only a replay applies it, for the same reason.
    CleanUpRedriven(Box<CleanUpReopening>),
}

impl Batch {
    /// The execution that succeeded with this batch, if one did.
    pub(in crate::run) fn succeeded_execution(&self) -> Option<ExecutionId> {
        if let Self::Succeeded { execution, .. } = self { Some(*execution) } else { None }
    }

    /// Whether a stop event enters the log with this batch, which may complete the run.
    pub(in crate::run) fn has_stop(&self, table: &DependencyTable) -> bool {
        let is_stop = |event: EventIndex| table.event(event).roles.is_stop();
        match self {
            Self::Received { index, .. } | Self::Succeeded { returned: Returned::Event(index, _), .. } => {
                is_stop(*index)
            }
            Self::Fired { event, .. } => table.event_named(event.name()).is_some_and(is_stop),
            Self::Succeeded { returned: Returned::Many(many), .. } => {
                let stops =
                    |emission: &Emission| matches!(emission, Emission::Event(index) if is_stop(*index));
                many.emissions.iter().any(stops)
            }
            _ => false,
        }
    }

    /// The execution that ends with this batch, if one does.
    pub(super) fn ended_execution(&self) -> Option<ExecutionId> {
        match self {
            Self::Succeeded { execution, .. } | Self::Failed { execution, .. } => Some(*execution),
            _ => None,
        }
    }

    /// The origin of a pause or an unpause, if it has one.
    pub(in crate::run) fn origin_of_pause(&self) -> Option<&Origin> {
        match self {
            Self::Paused(start) => start.origin.as_deref(),
            Self::Unpaused { origin, .. } => origin.as_deref(),
            _ => None,
        }
    }
}

/// The emissions of an execution.
#[derive(Debug, Clone)]
pub(in crate::run) enum Returned {
    /// The execution returned `()`, `None` or an empty `Vec` (S24).
    Nothing,
    /// One event, as nearly every execution does.
    Event(EventIndex, AnyEvent),
    /// Anything else. Boxed, because batches are moved often.
    Many(Box<ReturnedBatch>),
}

/// Emissions of any number, with the events and timers in the order in which the step returned them.
#[derive(Debug, Default, Clone)]
pub(in crate::run) struct ReturnedBatch {
    /// The types, in the order in which the step returned them. The scheduler gives them positions.
    pub(in crate::run) emissions: Vec<Emission>,
    /// The events for the log, with the items of fan-outs among them.
    pub(in crate::run) events: Vec<AnyEvent>,
    /// The timers to set, expiries of requests among them.
    pub(in crate::run) timers: Vec<DueEvent>,
}

impl Returned {
    /// The smallest form for these emissions. `events` are those that enter the log.
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

    /// The events for the log, in order.
    pub(in crate::run) fn events(&self) -> &[AnyEvent] {
        match self {
            Self::Nothing => &[],
            Self::Event(_, event) => std::slice::from_ref(event),
            Self::Many(many) => &many.events,
        }
    }

    /// The same, to be replaced: a rewind puts the JSON back that was made for the journal.
    pub(in crate::run) fn events_mut(&mut self) -> &mut [AnyEvent] {
        match self {
            Self::Nothing => &mut [],
            Self::Event(_, event) => std::slice::from_mut(event),
            Self::Many(many) => &mut many.events,
        }
    }

    /// The timers, to replace their events likewise.
    pub(in crate::run) fn timers_mut(&mut self) -> &mut [DueEvent] {
        match self {
            Self::Nothing | Self::Event(..) => &mut [],
            Self::Many(many) => &mut many.timers,
        }
    }

    /// The timers to set, in order.
    pub(in crate::run) fn timers(&self) -> &[DueEvent] {
        match self {
            Self::Nothing | Self::Event(..) => &[],
            Self::Many(many) => &many.timers,
        }
    }

    /// The emissions in the scheduler's terms. Empty also for a single event, whose type stands in
    /// `Self::Event`.
    pub(in crate::run) fn emissions(&self) -> &[Emission] {
        match self {
            Self::Nothing | Self::Event(..) => &[],
            Self::Many(many) => &many.emissions,
        }
    }
}

/// How the run continues after its end.
#[derive(Debug, Clone)]
pub(in crate::run) struct Reopening {
    /// Who redrove it.
    pub(in crate::run) by: Redriver,
    /// The steps whose executions are made again although they are in doubt (S69).
    pub(in crate::run) again: Vec<StepIndex>,
    /// Executions that cannot have begun, since they follow from entries that the journal does not have.
    pub(in crate::run) unbegun: FxHashSet<ExecutionId>,
}

/// Which clean-up steps run again.
#[derive(Debug, Clone)]
pub(in crate::run) struct CleanUpReopening {
    pub(in crate::run) by: Redriver,
    pub(in crate::run) steps: Vec<StepIndex>,
    /// The steps whose executions are made again although they are in doubt.
    pub(in crate::run) again: Vec<StepIndex>,
}

/// How the run is paused.
#[derive(Debug, Clone, Default)]
pub(in crate::run) struct PauseStart {
    /// Whether it is paused with its parent, or by itself.
    pub(in crate::run) by_parent: bool,
    /// The executions whose attempts are under way, and continue.
    pub(in crate::run) running: Vec<ExecutionId>,
    /// Those whose attempts are dropped.
    pub(in crate::run) dropped: Vec<ExecutionId>,
    /// The author of the pause, if the caller named one.
    pub(in crate::run) origin: Option<Arc<Origin>>,
}

/// The facts with which a clean-up begins. The state needs the steps and the first execution; the others are for the
/// journal.
#[derive(Debug, Clone)]
pub(in crate::run) struct CleanUpStart {
    /// The status that the run will end with.
    pub(in crate::run) status: RunStatus,
    /// The step whose precondition failed, if that ended the run.
    pub(in crate::run) step: Option<Arc<str>>,
    /// The error of that precondition, or the reason of the cancel.
    pub(in crate::run) error: Option<String>,
    /// The limit that ended the run, if one did.
    pub(in crate::run) limit: Option<ReachedLimit>,
    /// What an execution returned beyond that limit, if it returned more than one event.
    pub(in crate::run) excess: Option<Box<Excess>>,
    /// The deadline that passed, if that ended the run.
    pub(in crate::run) deadline: Option<SystemTime>,
    /// The limit of active time that the run had reached, if that ended it.
    pub(in crate::run) after: Option<Duration>,
    /// The steps, in the order in which they run.
    pub(in crate::run) steps: Vec<StepIndex>,
    /// The number of the first clean-up execution.
    pub(in crate::run) first: ExecutionId,
}

/// Why a run ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) enum Stop {
    /// A caller, or the parent of a child run, cancelled it.
    Cancelled,
    /// The active time reached its limit (S32).
    TimedOut,
    /// This deadline passed (S73).
    DeadlinePassed(SystemTime),
    /// The journal takes nothing more: the store failed, or the run is detached.
    JournalFailed,
    /// The run reached a limit, as its journal says. Live, the scheduler finds that itself.
    AtLimit(ReachedLimit, Option<Box<Excess>>),
    /// The journal has the end of the run, and lacks those of clean-up steps: earlier releases had a time for all of them.
    CleanUpOver,
}

impl From<Stop> for End {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancelled => Self::Cancelled,
            Stop::TimedOut | Stop::DeadlinePassed(_) => Self::TimedOut,
            Stop::AtLimit(limit, Some(excess)) => match limit {
                ReachedLimit::Events(_) => Self::TooManyEvents(excess),
                ReachedLimit::Executions(_) => Self::TooManyItems(excess),
            },
            Stop::AtLimit(ReachedLimit::Events(_), None) => Self::LogFull,
            Stop::AtLimit(ReachedLimit::Executions(_), None) => Self::TooManyExecutions,
            Stop::JournalFailed | Stop::CleanUpOver => Self::AppendFailed,
        }
    }
}

/// The state's answer to a batch.
#[derive(Debug)]
pub(in crate::run) enum Applied {
    /// The batch's events are in the log. `LoggedBatch` names the execution that may begin directly, if one may.
    Logged(LoggedBatch),
    /// The batch changed the state and left no event. It has a record, unless it stopped the run or is the
    /// failure of a precondition.
    WithoutEvent,
    /// The run has ended, or the batch's execution, request or timer is gone. No journal has the batch.
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Gathered;

    fn event() -> AnyEvent {
        AnyEvent::from_erased(Arc::new(Gathered::new(Vec::new())))
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
