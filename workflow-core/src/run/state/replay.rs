//! A state out of a journal (S39): records become the batches that they were, and these are applied as they were when the
//! run was driven. Entries that follow from a batch by themselves have to stand behind it in the journal; what does not
//! agree is a contradiction, with its position.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;

use super::{Applied, Batch, Begins, Effect, RunState, Stop};
use crate::error::StepError;
use crate::event::AnyEvent;
use crate::id::{ExecutionId, RunStatus, ScopeId, Seq};
use crate::retry::{FailedAttempt, NotRetried};
use crate::run::Host;
use crate::scheduler::{CandidateId, Cause, Evaluated, TimerEntry};
use crate::store::{Position, Record, RecordedEvent};
use crate::table::{DependencyTable, EventIndex, StepIndex};

mod committed;
mod logged;

/// A run's state that follows a journal, record by record.
pub(crate) struct Replay {
    host: Arc<Host>,
    pub(super) state: RunState,
    began_at: SystemTime,
    /// Where the record is that is being read.
    position: Position,
    /// Entries that follow from the batches so far and that the journal has not come to, oldest first.
    derived: VecDeque<Seq>,
    /// What is to be begun, oldest first: most of it was, and is not wanted any more.
    effects: VecDeque<Effect>,
    /// What was asked and is not answered.
    questions: FxHashMap<Evaluated, CandidateId>,
    /// When the next attempts of executions are due that failed.
    retries: FxHashMap<ExecutionId, SystemTime>,
    /// What executions failed with, where the errors are there and not only their texts.
    failures: FxHashMap<ExecutionId, StepError>,
    /// How the run ended by its last record, if that has it.
    ended: Option<RunStatus>,
}

/// A state where its journal ends, and what is left to do in it.
pub(crate) struct Replayed {
    pub(crate) state: RunState,
    /// The next attempts that are waited for.
    pub(crate) retries: Vec<(ExecutionId, SystemTime)>,
    /// Entries that follow from the journal and that it does not have, in order.
    pub(crate) derived: VecDeque<Seq>,
}

/// Why a record cannot be what follows from those before it.
#[derive(Debug)]
pub(crate) struct Contradiction {
    pub(crate) position: Position,
    pub(crate) what: String,
}

type Taken<T = ()> = Result<T, String>;

impl Replay {
    /// Of a run that began then, in this state before its first event.
    pub(crate) fn new(host: Arc<Host>, state: RunState, began_at: SystemTime) -> Self {
        Self {
            host,
            state,
            began_at,
            position: Position(0),
            derived: VecDeque::new(),
            effects: VecDeque::new(),
            questions: FxHashMap::default(),
            retries: FxHashMap::default(),
            failures: FxHashMap::default(),
            ended: None,
        }
    }

    /// Gives executions the numbers that the records have: a journal of an earlier version may have numbered them in
    /// another order.
    pub(crate) fn recall(&mut self, records: &[Record]) {
        self.state.scheduler.recall(numbers(&self.host.table, records));
    }

    /// Takes the errors of executions from a state that the journal is of, which has more than their texts.
    pub(crate) fn know_failures_of(&mut self, live: &RunState) {
        self.failures.clone_from(live.failures.executions());
    }

    /// Takes in the records behind those before.
    ///
    /// # Errors
    /// If one does not follow from those before it.
    pub(crate) fn take(&mut self, records: &[Record]) -> Result<(), Contradiction> {
        let mut rest = records;
        while let Some((record, behind)) = rest.split_first() {
            let taken = self.take_one(record, behind);
            let taken = taken.map_err(|what| Contradiction { position: self.position, what })?;
            self.position = self.position.after(taken);
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// The state where the records end.
    pub(crate) fn finish(mut self) -> Replayed {
        self.complete();
        // Whatever followed from records before the last batch may have begun before.
        let last = std::mem::replace(&mut self.state.position, self.position);
        let effects = std::mem::take(&mut self.effects);
        for Effect { after, begins } in effects {
            if !self.state.is_wanted(&begins) {
                continue;
            }
            let begins = if after < last { begins.again() } else { begins };
            self.state.effects.push_back(Effect { after: Position(0), begins });
        }
        if self.state.scheduler.waits() {
            self.state.effects.push_back(Effect { after: Position(0), begins: Begins::Wait });
        }
        let running = self.retries.into_iter().filter(|(id, _)| self.state.scheduler.is_running(*id));
        let retries = running.filter(|(id, _)| self.state.trace.next_attempt(*id).is_some()).collect();
        Replayed { state: self.state, retries, derived: self.derived }
    }

    /// Takes a record in, with those behind it that belong to it; says how many these were.
    fn take_one(&mut self, record: &Record, behind: &[Record]) -> Taken<usize> {
        if self.ended.is_some() {
            return Err("the run had ended".into());
        }
        match record {
            Record::RunStarted { .. } if self.position == Position(0) => {}
            Record::RunStarted { .. } => return Err("the run begins once more".into()),
            Record::RunResumed { at, .. } => self.resumed(*at),
            Record::RunWaiting { .. } | Record::RunKept { .. } => {}
            Record::EventLogged { seq, scope, cause, event, at } => {
                self.logged(*cause, (*seq, *scope), event, *at)?;
            }
            Record::TimerSet { .. } => return Err("a timer is set by nobody".into()),
            Record::FanOutGathered { seq, scope, fan_out, .. } => {
                self.follows(*seq, *scope, fan_out)?;
            }
            Record::PreconditionAnswered { step, scope, trigger, answer, at } => {
                self.answered((self.step(step)?, *scope, *trigger), *answer, *at)?;
            }
            Record::ExecutionSucceeded { execution, step, scope, trigger, fan_outs, at } => {
                self.is_running(*execution, (self.step(step)?, *scope, *trigger))?;
                return self.succeeded(*execution, fan_outs, behind, *at);
            }
            Record::RetryScheduled {
                execution,
                step,
                scope,
                trigger,
                class,
                error,
                retry_in,
                compacts,
                at,
                ..
            } => {
                self.is_running(*execution, (self.step(step)?, *scope, *trigger))?;
                let (class, error) = (*class, error.clone());
                let failed = FailedAttempt { class, error, retry_in: *retry_in, compacts: *compacts };
                self.retries.insert(*execution, at.checked_add(*retry_in).unwrap_or(*at));
                self.apply(Batch::Retried { execution: *execution, failed }, *at)?;
            }
            Record::ExecutionFailed { execution, step, scope, trigger, class, error, not_retried, at } => {
                self.is_running(*execution, (self.step(step)?, *scope, *trigger))?;
                let known = self.failures.remove(execution);
                let error = known.unwrap_or_else(|| StepError::new(*class, error.clone()));
                self.failed(*execution, error, *not_retried, *at)?;
            }
            Record::ChildStarted { child, at, .. } => {
                self.apply(Batch::ChildStarted { child: child.clone(), at: *at }, *at)?;
            }
            Record::RunEnded { status, error, step, at } => {
                self.ended(*status, step.as_deref().zip(error.as_deref()), *at)?;
            }
        }
        Ok(1)
    }

    /// The time from the beginning of the run.
    fn since_began(&self, at: SystemTime) -> Duration {
        at.duration_since(self.began_at).unwrap_or_default()
    }

    /// Completes what follows from the batches so far.
    fn complete(&mut self) {
        self.state.advance(&mut usize::MAX.clone());
        self.note_derived();
    }

    fn note_derived(&mut self) {
        while let Some(seq) = self.state.take_derived() {
            self.derived.push_back(seq);
        }
        let _ = self.state.take_dropped();
        while let Some(effect) = self.state.effects.pop_front() {
            if matches!(effect.begins, Begins::Wait) {
                continue;
            }
            // What was asked is found by what it is about.
            if let Begins::Question(id) = effect.begins
                && let Some(candidate) = self.state.scheduler.asked(id)
            {
                self.questions.insert((candidate.step, candidate.scope, candidate.trigger), id);
            }
            self.effects.push_back(effect);
        }
        while self.effects.front().is_some_and(|effect| !self.state.is_wanted(&effect.begins)) {
            self.effects.pop_front();
        }
    }

    /// Applies a batch behind which the journal has everything that followed from those before.
    fn apply(&mut self, batch: Batch, at: SystemTime) -> Taken<Applied> {
        self.complete();
        if let Some(seq) = self.derived.front().and_then(|seq| self.state.log.get(*seq)) {
            let name = &self.host.table.event(seq.index).name;
            return Err(format!("`{name}` would be logged before it now"));
        }
        let applied = self.state.apply(batch, self.since_began(at));
        if matches!(applied, Applied::Refused) {
            return Err("it would be refused now".into());
        }
        if let Applied::Entered(entered) = &applied
            && let Some(start) = entered.next()
        {
            self.state.queue_effect(Begins::Execution(start));
        }
        self.complete();
        Ok(applied)
    }

    /// The run went on from here once before. The time in which nobody drove it is not its own.
    fn resumed(&mut self, at: SystemTime) {
        self.complete();
        let at = self.since_began(at);
        self.state.active.restart(self.state.now, at);
        self.state.now = self.state.now.max(at);
        for effect in std::mem::take(&mut self.effects) {
            self.effects.push_back(Effect { after: effect.after, begins: effect.begins.again() });
        }
    }

    fn step(&self, name: &str) -> Taken<StepIndex> {
        let step = self.host.table.step_named(name);
        step.ok_or_else(|| format!("step `{name}` ran, which the workflow does not have any more"))
    }

    fn event_named(&self, name: &str) -> Taken<EventIndex> {
        let event = self.host.table.event_named(name);
        event.ok_or_else(|| format!("event `{name}` was logged, which the workflow does not know any more"))
    }

    fn decoded(&self, event: &RecordedEvent, index: EventIndex, request: Option<Seq>) -> Taken<AnyEvent> {
        let request = request.and_then(|seq| self.state.log.get(seq)).map(|record| &record.event);
        self.host.read(event, index, request).map_err(|error| {
            format!("event `{}` was logged, which cannot be read as what it is now: {error}", event.name())
        })
    }

    /// The execution runs, as the record says.
    fn is_running(&mut self, execution: ExecutionId, (step, scope, trigger): Evaluated) -> Taken {
        self.complete();
        let start = self.state.start_of(execution);
        let is_it = |start: &crate::scheduler::ExecutionStart| {
            (start.step, start.scope, start.trigger) == (step, scope, trigger)
        };
        if start.as_ref().is_some_and(is_it) && self.state.scheduler.is_running(execution) {
            return Ok(());
        }
        let name = &self.host.table.step(step).name;
        let place = if scope == ScopeId::ROOT { String::new() } else { format!(" in {scope}") };
        Err(format!(
            "step `{name}` ran for {trigger}{place} as {execution}, and would not run for it any more"
        ))
    }

    fn failed(
        &mut self,
        execution: ExecutionId,
        error: StepError,
        not_retried: NotRetried,
        at: SystemTime,
    ) -> Taken {
        let applied = self.apply_failure(execution, error, not_retried, at)?;
        if let Applied::Entered(entered) = applied {
            self.derived.extend(entered.events().iter().map(|entry| entry.seq));
            self.derived.make_contiguous().sort_unstable();
        }
        Ok(())
    }

    fn apply_failure(
        &mut self,
        execution: ExecutionId,
        error: StepError,
        not_retried: NotRetried,
        at: SystemTime,
    ) -> Taken<Applied> {
        self.apply(Batch::Failed { execution, error, not_retried }, at)
    }

    /// Of several questions to one precondition, no record says which failed.
    fn asked_in_vain(&mut self, step: StepIndex, error: &str, at: SystemTime) -> Taken {
        let asked =
            self.questions.iter().filter(|((of, ..), _)| *of == step).map(|(_, candidate)| *candidate);
        let Some(candidate) = asked.filter(|id| self.state.scheduler.asked(*id).is_some()).min() else {
            return Ok(());
        };
        let answer = Err(StepError::permanent(error.to_owned()));
        self.apply(Batch::Answered { candidate, step, answer }, at).map(|_| ())
    }

    fn answered(&mut self, question: Evaluated, answer: bool, at: SystemTime) -> Taken {
        self.complete();
        let Some(candidate) = self.questions.remove(&question) else {
            let name = &self.host.table.step(question.0).name;
            return Err(format!("the precondition of `{name}` was asked, and would not be any more"));
        };
        let (step, ..) = question;
        self.apply(Batch::Answered { candidate, step, answer: Ok(answer) }, at).map(|_| ())
    }

    /// The run ended; if by a precondition that failed, by that of this step with this error.
    fn ended(&mut self, status: RunStatus, failed: Option<(&str, &str)>, at: SystemTime) -> Taken {
        self.complete();
        self.ended = Some(status);
        if self.state.end().is_some() {
            return Ok(());
        }
        if let Some((step, error)) = failed {
            let step = self.step(step)?;
            return self.asked_in_vain(step, error, at);
        }
        match status {
            RunStatus::Cancelled => drop(self.apply(Batch::Stopped(Stop::Cancelled), at)?),
            RunStatus::TimedOut => drop(self.apply(Batch::Stopped(Stop::TimedOut), at)?),
            _ => {}
        }
        Ok(())
    }

    /// An entry that follows from the batches so far is what the journal has next.
    fn follows(&mut self, seq: Seq, scope: ScopeId, name: &str) -> Taken {
        self.complete();
        let Some(derived) = self.derived.pop_front() else {
            return Err(format!("`{name}` was logged, and would not be now"));
        };
        let record = self.state.log.get(derived);
        let is_it = record.is_some_and(|record| record.scope == scope && self.is_named(record.index, name));
        if derived == seq && is_it {
            return Ok(());
        }
        Err(format!("`{name}` was logged, and would be logged elsewhere now"))
    }

    fn is_named(&self, event: EventIndex, name: &str) -> bool {
        *self.host.table.event(event).name == *name
    }
}

impl Replay {
    /// The state so far, with all that follows from it.
    pub(crate) fn state(&mut self) -> &RunState {
        self.complete();
        &self.state
    }

    /// Where the journal has been read to.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// The timer that closes a request.
    fn closes(&self, request: Seq) -> Option<&TimerEntry> {
        self.state.scheduler.timers().find(|timer| timer.request == Some(request))
    }
}

/// The numbers of the executions that the records have.
fn numbers(table: &DependencyTable, records: &[Record]) -> impl Iterator<Item = (Evaluated, ExecutionId)> {
    records.iter().filter_map(|record| match record {
        Record::ExecutionSucceeded { execution, step, scope, trigger, .. }
        | Record::ExecutionFailed { execution, step, scope, trigger, .. }
        | Record::RetryScheduled { execution, step, scope, trigger, .. } => {
            Some(((table.step_named(step)?, *scope, *trigger), *execution))
        }
        Record::ChildStarted { child, scope, trigger, .. } => {
            Some(((table.step_named(&child.step)?, *scope, *trigger), child.execution))
        }
        _ => None,
    })
}

/// What caused an entry, for a message.
fn caused(cause: Cause) -> String {
    match cause {
        Cause::Failure(execution) => format!("the failure of {execution} was caught"),
        Cause::Execution(execution) => format!("{execution} emitted an event before it ended"),
        _ => "an event was logged".into(),
    }
}
