//! The records of a batch for the journal.
//!
//! ```text
//! batch                         records, in this order
//! Received, Replied, Fired      EventLogged
//! Answered true or false        PreconditionAnswered
//! Succeeded                     ExecutionSucceeded, an EventLogged each, a TimerSet each
//! Retried                       RetryScheduled
//! AttemptBegan                  AttemptBegan
//! Failed                        ExecutionFailed, and EventLogged if a step catches the failure
//! ChildStarted                  ChildStarted
//! ChildrenEnded                 ChildrenEnded
//! Answered with an error        none: the run's end has the error
//! CleanUpStarted                CleanUpStarted
//! Stopped, Cancelled            none: `RunEnded` follows when the run has stopped
//! DelaysEnded                   DelaysEnded
//! Paused, Unpaused              RunPaused, RunUnpaused
//! Redriven, CleanUpRedriven     RunRedriven, CleanUpRedriven
//! any that completes the run    these, ChildrenEnded if awaited children are open, and RunEnded
//! ```
//!
//! The first of these is the lead. It has facts that the state may drop with the batch, such as the scope and
//! the trigger of an answered question. So [`BatchFacts`] is made before the batch is applied, and the records
//! afterwards. An entry that follows by itself becomes one record, without a lead.

use std::sync::Arc;
use std::time::SystemTime;

use smallvec::SmallVec;

use super::clock::RunClock;
use super::state::{Applied, Batch, CleanUpStart, DueEvent, PauseStart, Reopening, RunState};
use crate::event::Gathered;
use crate::id::{Origin, RunStatus, ScopeId, Seq};
use crate::retry::FailedAttempt;
use crate::scheduler::{Candidate, Emission, End, FanOutTerms};
use crate::store::{EndedChild, OpenedFanOut, Record, RecordedEvent};
use crate::table::StepIndex;

/// Facts about a batch for its records, noted before the batch is applied.
pub(super) struct BatchFacts {
    lead: Option<Record>,
    timers: Vec<DueEvent>,
    at: SystemTime,
    /// The wall time from which the delays of the timers count. Equal to `at` without timers.
    set_at: SystemTime,
}

/// The records of a batch.
pub(super) type Records = SmallVec<[Record; 2]>;

impl BatchFacts {
    /// Notes the facts about a batch, which is about to be applied at the clock's time.
    pub(super) fn of(batch: &Batch, state: &RunState, clock: &RunClock) -> Self {
        let timers = match batch {
            Batch::Succeeded { returned, .. } => returned.timers().to_vec(),
            _ => Vec::new(),
        };
        let at = clock.stamp();
        let set_at = if timers.is_empty() { at } else { clock.wall() };
        Self { lead: lead(batch, state, at), timers, at, set_at }
    }

    /// The time of the batch.
    pub(super) fn at(&self) -> SystemTime {
        self.at
    }

    /// The records of the applied batch; none if the state refused it. `cancelled`: the children that end with the run, which
    /// the batch completed.
    pub(super) fn records(self, applied: &Applied, cancelled: Vec<EndedChild>, state: &RunState) -> Records {
        let Self { lead, timers, at, set_at } = self;
        let mut records = Records::new();
        if matches!(applied, Applied::Refused) {
            return records;
        }
        records.extend(lead);
        let Applied::Logged(entered) = applied else { return records };
        records.extend(entered.events().iter().filter_map(|entry| logged(entry.seq, state, at)));
        for (entry, DueEvent { due, event }) in entered.timers().iter().zip(timers) {
            records.push(Record::TimerSet {
                timer: entry.timer,
                execution: entry.execution,
                scope: entry.scope,
                request: entry.request,
                due,
                event: RecordedEvent::new(event),
                at: set_at,
            });
        }
        if !cancelled.is_empty() {
            records.push(Record::ChildrenEnded { children: cancelled, at });
        }
        // The end belongs to the batch that causes it.
        if let Some(End::Completed(_)) = state.end() {
            let (status, error, step) = (RunStatus::Completed, None, None);
            records.push(Record::RunEnded { status, error, step, deadline: None, origin: None, at });
        }
        records
    }
}

/// The record that stands before the events of a batch.
fn lead(batch: &Batch, state: &RunState, at: SystemTime) -> Option<Record> {
    let name = |step: StepIndex| Arc::clone(&state.table().step(step).name);
    match batch {
        Batch::Received { .. }
        | Batch::Replied { .. }
        | Batch::Fired { .. }
        | Batch::Stopped(_)
        | Batch::Cancelled(_) => None,
        Batch::DelaysEnded => Some(Record::DelaysEnded { at }),
        Batch::Paused(start) => {
            let PauseStart { by_parent, running, dropped, origin } = (**start).clone();
            Some(Record::RunPaused { by_parent, running, dropped, origin: journaled(origin.as_ref()), at })
        }
        Batch::Unpaused { by_parent, origin } => {
            Some(Record::RunUnpaused { by_parent: *by_parent, origin: journaled(origin.as_ref()), at })
        }
        Batch::Redriven(Reopening { by, again, .. }) => {
            let again = again.iter().map(|step| name(*step)).collect();
            Some(Record::RunRedriven { by: by.clone(), again, deadline: None, at })
        }
        Batch::CleanUpRedriven(redriven) => {
            let names = |steps: &[StepIndex]| steps.iter().map(|step| name(*step)).collect();
            let (by, steps, again) = (redriven.by.clone(), names(&redriven.steps), names(&redriven.again));
            Some(Record::CleanUpRedriven { by, steps, again, at })
        }
        Batch::Answered { candidate, step, answer } => {
            let Candidate { scope, trigger, .. } = *state.scheduler.asked(*candidate)?;
            let error = answer.as_ref().err().map(ToString::to_string);
            // The failure of a precondition ends the run, except in its clean-up.
            if error.is_some() && !state.scheduler.cleans_up() {
                return None;
            }
            let answer = *answer.as_ref().unwrap_or(&false);
            Some(Record::PreconditionAnswered { step: name(*step), scope, trigger, answer, error, at })
        }
        Batch::Succeeded { execution, returned } => {
            let (step, scope, trigger) = identity_of(*execution, state)?;
            let fan_outs = opened(returned.emissions(), state);
            Some(Record::ExecutionSucceeded {
                execution: *execution,
                step: name(step),
                scope,
                trigger,
                fan_outs,
                at,
            })
        }
        Batch::Retried { execution, failed } => {
            let (step, scope, trigger) = identity_of(*execution, state)?;
            let attempt = state.trace.attempt(*execution);
            let FailedAttempt { class, error, retry_in, compacts, .. } = failed.clone();
            Some(Record::RetryScheduled {
                execution: *execution,
                step: name(step),
                scope,
                trigger,
                attempt,
                class,
                error,
                retry_in,
                compacts,
                at,
            })
        }
        Batch::AttemptBegan { execution } => {
            let (step, scope, trigger) = identity_of(*execution, state)?;
            let execution = *execution;
            Some(Record::AttemptBegan { execution, step: name(step), scope, trigger, at })
        }
        Batch::Failed { execution, error, not_retried } => {
            let (step, scope, trigger) = identity_of(*execution, state)?;
            Some(Record::ExecutionFailed {
                execution: *execution,
                step: name(step),
                scope,
                trigger,
                class: error.class(),
                error: error.to_string(),
                not_retried: *not_retried,
                at,
            })
        }
        Batch::CleanUpStarted(start) => Some(clean_up_started(start, state, at)),
        Batch::ChildStarted { child, at } => {
            let (_, scope, trigger) = identity_of(child.execution, state)?;
            Some(Record::ChildStarted { child: child.clone(), scope, trigger, at: *at })
        }
        Batch::ChildrenEnded(ended) => Some(Record::ChildrenEnded { children: ended.clone(), at }),
    }
}

fn clean_up_started(start: &CleanUpStart, state: &RunState, at: SystemTime) -> Record {
    let CleanUpStart { status, error, step, limit, excess, deadline, after, ref steps, first } =
        start.clone();
    let steps = steps.iter().map(|step| Arc::clone(&state.table().step(*step).name)).collect();
    let origin = origin_of_end(state);
    Record::CleanUpStarted { status, error, step, limit, excess, deadline, after, steps, first, origin, at }
}

/// The origin of the cancel that ended the run.
pub(super) fn origin_of_end(state: &RunState) -> Option<Origin> {
    journaled(state.origins()?.of_cancel())
}

/// The origin as records have it.
fn journaled(origin: Option<&Arc<Origin>>) -> Option<Origin> {
    origin.map(|origin| (**origin).clone())
}

/// The step, scope and trigger of an execution: its identity in records.
fn identity_of(execution: crate::id::ExecutionId, state: &RunState) -> Option<(StepIndex, ScopeId, Seq)> {
    let execution = state.scheduler.executions().get(execution)?;
    Some((execution.step, execution.scope, execution.trigger))
}

/// The fan-outs that a batch opens.
fn opened(emissions: &[Emission], state: &RunState) -> Vec<OpenedFanOut> {
    let opened = emissions.iter().filter_map(|emission| match *emission {
        Emission::FanOut { fan_out, items, terms } => {
            let gathered = state.table().fan_out(fan_out).gathered;
            let fan_out = Arc::clone(&state.table().event(gathered).name);
            let FanOutTerms { concurrency, only_busy, until, tolerated, policy } = terms;
            Some(OpenedFanOut { fan_out, items, concurrency, only_busy, until, tolerated, policy })
        }
        _ => None,
    });
    opened.collect()
}

/// The record of an entry of the log: a gather or an event.
pub(super) fn logged(seq: Seq, state: &RunState, at: SystemTime) -> Option<Record> {
    let record = state.log.get(seq)?;
    let (scope, cause, event) = (record.scope, record.cause, &record.event);
    if let Some(gathered) = event.payload_arc::<Gathered>() {
        let fan_out = Arc::clone(&state.table().event(record.index).name);
        let branches = gathered.branches.iter().map(|branch| branch.scope).collect();
        return Some(Record::FanOutGathered { seq, scope, fan_out, branches, at });
    }
    let (event, origin) = (RecordedEvent::new(event.clone()), journaled(state.origin_of(seq)));
    Some(Record::EventLogged { seq, scope, cause, event, origin, at })
}
