//! Going on with a run that a store has (S39): its records are told to the scheduler as the facts that they were, so
//! that it comes to stand where it stood. Nothing is performed meanwhile; what was left to do is done afterwards.
//!
//! The scheduler numbers events when they are on their way into the log and evaluates them when they are there. In
//! between other events may have been numbered, so that a batch is confirmed here only when a record needs what follows
//! from it: then each position is given as it was.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use super::RunStatus;
use super::drive::Run;
use super::timers::Setting;
use crate::error::{Incompatibility, StepError};
use crate::event::AnyEvent;
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::retry::{FailedAttempt, NotRetried};
use crate::scheduler::{Action, Answer, CandidateId, Evaluated, Fact, Inputs, Start, Wanted};
use crate::store::{Position, Record, RecordedEvent};
use crate::table::{DependencyTable, EventIndex, StepIndex};

mod batch;
mod logged;

use batch::Logged;

/// A run that comes to stand where its journal ends.
struct Replay<'a> {
    run: &'a mut Run,
    position: Position,
    /// What the scheduler wants in the log and the journal has not told of yet.
    due: VecDeque<Action>,
    /// What was begun and has not ended, as it was begun.
    started: BTreeSet<ExecutionId>,
    /// What was asked and not answered, in the order of asking.
    asked: BTreeMap<CandidateId, Action>,
    /// When the next attempts of what failed are due.
    retries: HashMap<ExecutionId, SystemTime>,
    /// Per batch that is not confirmed yet, when it was recorded, and the timers that it sets.
    unconfirmed: VecDeque<(Duration, Vec<Setting>)>,
    waits: bool,
    /// When what the scheduler wants came to be wanted: a batch is confirmed when the next record needs that, and was in
    /// the log before.
    now: Duration,
}

type Replayed<T = ()> = Result<T, String>;

impl Run {
    /// Comes to stand where the records end. The first of them says how the run began. What the workflow as it is now
    /// would not have written is in the way.
    pub(crate) fn replay(&mut self, records: &[Record]) -> Result<(), Incompatibility> {
        self.scheduler.recall(numbers(&self.host.table, records));
        self.goes_on();
        let mut replay = Replay {
            run: self,
            position: Position(1),
            due: VecDeque::new(),
            started: BTreeSet::new(),
            asked: BTreeMap::new(),
            retries: HashMap::new(),
            unconfirmed: VecDeque::new(),
            waits: false,
            now: Duration::ZERO,
        };
        let mut rest = records.get(1..).unwrap_or_default();
        while let Some((record, behind)) = rest.split_first() {
            let position = replay.position;
            let taken = replay.take(record, behind);
            let taken = taken.map_err(|what| Incompatibility::Journal { position, what })?;
            replay.now = replay.run.clock.now;
            replay.position = position.after(taken);
            rest = &rest[taken..];
        }
        replay.go_on();
        Ok(())
    }
}

/// The numbers of the executions that the records tell of.
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

impl Replay<'_> {
    /// Takes a record in, with those behind it that belong to it; says how many these were.
    fn take(&mut self, record: &Record, behind: &[Record]) -> Replayed<usize> {
        if !matches!(record, Record::RunResumed { .. } | Record::RunWaiting { .. } | Record::RunKept { .. }) {
            self.wake(record.at());
        }
        match record {
            Record::RunStarted { .. } => return Err("the run begins once more".into()),
            Record::RunResumed { at, .. } => self.resumed(*at)?,
            // Nothing follows from them.
            Record::RunWaiting { .. } | Record::RunKept { .. } => {}
            Record::EventLogged { seq, scope, cause, event, .. } => {
                let logged = Logged { seq: *seq, scope: *scope, event };
                self.event(*cause, &logged)?;
            }
            Record::TimerSet { .. } => return Err("a timer is set by nobody".into()),
            Record::FanOutGathered { seq, scope, fan_out, .. } => self.gathered(*seq, *scope, fan_out)?,
            Record::PreconditionAnswered { step, scope, trigger, answer, .. } => {
                self.answered((self.step(step)?, *scope, *trigger), *answer)?;
            }
            Record::ExecutionSucceeded { execution, step, scope, trigger, fan_outs, .. } => {
                self.begun(*execution, (self.step(step)?, *scope, *trigger))?;
                return Ok(1 + self.succeeded(*execution, fan_outs, behind)?);
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
                self.begun(*execution, (self.step(step)?, *scope, *trigger))?;
                let (class, error) = (*class, error.clone());
                let failed = FailedAttempt { class, error, retry_in: *retry_in, compacts: *compacts };
                self.run.trace.failed_attempt(*execution, self.run.clock.now, failed);
                let due = at.checked_add(*retry_in).unwrap_or(*at);
                self.retries.insert(*execution, due);
            }
            Record::ExecutionFailed {
                execution, step, scope, trigger, class, error, not_retried, ..
            } => {
                let step = self.step(step)?;
                self.begun(*execution, (step, *scope, *trigger))?;
                self.failed(*execution, step, StepError::new(*class, error.clone()), *not_retried);
            }
            Record::ChildStarted { child, at, .. } => self.run.shared.family().recall(child.clone(), *at),
            Record::RunEnded { status, error, step, .. } => {
                self.ended(*status, step.as_deref().zip(error.as_deref()))?;
            }
        }
        Ok(1)
    }

    /// The run went on from here once before, with everything confirmed. The time in which nobody drove it is not its own.
    fn resumed(&mut self, at: SystemTime) -> Replayed {
        while self.confirm()? {}
        self.drain()?;
        if !self.waits {
            self.run.rests();
        }
        self.run.clock.show(at);
        self.now = self.run.clock.now;
        if !self.waits {
            self.run.goes_on();
        }
        Ok(())
    }

    /// The clock shows what it did when the record was written, and what waited goes on.
    fn wake(&mut self, at: SystemTime) {
        self.run.clock.show(at);
        self.wakes();
    }

    /// What waited goes on.
    fn wakes(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.run.goes_on();
        }
    }

    fn step(&self, name: &str) -> Replayed<StepIndex> {
        let step = self.run.host.table.step_named(name);
        step.ok_or_else(|| format!("step `{name}` ran, which the workflow does not have any more"))
    }

    fn event_named(&self, name: &str) -> Replayed<EventIndex> {
        let event = self.run.host.table.event_named(name);
        event.ok_or_else(|| format!("event `{name}` was logged, which the workflow does not know any more"))
    }

    fn decoded(&self, event: &RecordedEvent, index: EventIndex, request: Option<Seq>) -> Replayed<AnyEvent> {
        let request = request.and_then(|seq| self.run.log.get(seq)).map(|record| &record.event);
        self.run.host.read(event, index, request).map_err(|error| {
            format!("event `{}` was logged, which cannot be read as what it is now: {error}", event.name())
        })
    }

    /// Takes in what the scheduler wants, without doing any of it.
    fn drain(&mut self) -> Replayed {
        while let Some(action) = self.run.scheduler.next_action() {
            if !matches!(action, Action::Wait) {
                self.wakes();
            }
            match action {
                Action::Append { .. } | Action::AppendGathered { .. } => self.due.push_back(action),
                Action::StartExecution { execution, step, scope, trigger, binding } => {
                    let inputs = Inputs::of(binding, self.run.host.table.step(step), trigger);
                    self.run.trace.start(Start { execution, step, scope, trigger, inputs }, self.now);
                    self.started.insert(execution);
                }
                Action::AskPrecondition { candidate, .. } => {
                    self.asked.insert(candidate, action);
                }
                Action::DropExecution { execution } => {
                    self.started.remove(&execution);
                    self.run.trace.dropped(execution, self.run.clock.now);
                }
                Action::FreeScope { scope } => {
                    self.run.free(scope);
                    self.asked.retain(|_, asked| {
                        !matches!(asked, Action::AskPrecondition { scope: of, .. } if *of == scope)
                    });
                }
                Action::Wait => {
                    self.waits = true;
                    self.run.rests_since(self.now);
                }
                Action::RefuseCommit { execution } => {
                    return Err(format!("{execution} committed, which would be refused now"));
                }
                Action::RefuseReceived => return Err("what came would be refused now".into()),
                Action::Finish { .. } => {}
            }
        }
        Ok(())
    }

    /// The oldest batch that is not confirmed is in the log; `false` if there is none.
    fn confirm(&mut self) -> Replayed<bool> {
        let Some((at, timers)) = self.unconfirmed.pop_front() else { return Ok(false) };
        self.run.scheduler.apply(Fact::Appended);
        self.run.set_timers(timers);
        self.drain()?;
        // Behind it stands only what came from outside, while nothing was done.
        if let Some((next, _)) = self.unconfirmed.front()
            && self.run.scheduler.is_idle()
        {
            self.run.has_rested(next.saturating_sub(at));
        }
        Ok(true)
    }

    /// Confirms batches until it is there, which was so when the record was written; `false` if it never is.
    fn until(&mut self, is_there: impl Fn(&Self) -> bool) -> Replayed<bool> {
        self.drain()?;
        let mut is_so = is_there(self);
        while !is_so && self.confirm()? {
            is_so = is_there(self);
        }
        self.now = self.run.clock.now;
        Ok(is_so)
    }

    /// The execution has begun, as the record says.
    fn begun(&mut self, execution: ExecutionId, (step, scope, trigger): Evaluated) -> Replayed {
        if self.until(|replay| replay.started.contains(&execution))? {
            self.run.trace.attempted_again(execution);
            return Ok(());
        }
        let name = &self.run.host.table.step(step).name;
        let place = if scope == ScopeId::ROOT { String::new() } else { format!(" in {scope}") };
        Err(format!(
            "step `{name}` ran for {trigger}{place} as {execution}, and would not run for it any more"
        ))
    }

    fn failed(&mut self, execution: ExecutionId, step: StepIndex, error: StepError, not_retried: NotRetried) {
        self.started.remove(&execution);
        self.run.trace.failed(execution, self.run.clock.now, &error, not_retried);
        let row = self.run.host.table.step(step);
        if row.failed.is_some() || !row.policy.continue_on_error {
            self.run.failures.insert(execution, error);
        }
        self.run.scheduler.apply(Fact::ExecutionFailed { execution });
    }

    /// Of several questions to one precondition, no record says which failed.
    fn asked_in_vain(&mut self, of: StepIndex, error: &str) {
        let is_of = |asked: &Action| matches!(asked, Action::AskPrecondition { step, .. } if *step == of);
        let asked = self.asked.iter().find(|(_, asked)| is_of(asked)).map(|(candidate, _)| *candidate);
        let Some(candidate) = asked else { return };
        self.asked.remove(&candidate);
        let error = StepError::permanent(error.to_owned());
        self.run.precondition_failures.insert(candidate, (of, error));
        self.run.scheduler.apply(Fact::PreconditionAnswered { candidate, answer: Answer::Failed });
    }

    fn answered(&mut self, question: Evaluated, answer: bool) -> Replayed {
        let asks = |asked: &Action| match asked {
            Action::AskPrecondition { step, scope, trigger, .. } => (*step, *scope, *trigger) == question,
            _ => false,
        };
        let find = |replay: &Self| replay.asked.iter().find(|(_, asked)| asks(asked)).map(|(id, _)| *id);
        if !self.until(|replay| find(replay).is_some())? {
            let name = &self.run.host.table.step(question.0).name;
            return Err(format!("the precondition of `{name}` was asked, and would not be any more"));
        }
        let Some(candidate) = find(self) else { return Ok(()) };
        self.asked.remove(&candidate);
        let answer = if answer { Answer::Yes } else { Answer::No };
        self.run.scheduler.apply(Fact::PreconditionAnswered { candidate, answer });
        Ok(())
    }

    /// The run ended; if by a precondition that failed, by that of this step with this error.
    fn ended(&mut self, status: RunStatus, in_vain: Option<(&str, &str)>) -> Replayed {
        while self.confirm()? {}
        self.drain()?;
        if let Some((step, error)) = in_vain {
            self.asked_in_vain(self.step(step)?, error);
        }
        match status {
            RunStatus::Cancelled => self.run.scheduler.apply(Fact::CancelRequested),
            RunStatus::TimedOut => self.run.scheduler.apply(Fact::TimeRanOut),
            _ => {}
        }
        let _ = self.drain();
        Ok(())
    }

    /// What was left to do when the journal ended is to be done.
    fn go_on(mut self) {
        // Everything that the journal has is in the log. What is refused by now has nobody who waits for it.
        while let Ok(true) = self.confirm() {}
        if self.run.host.is_table() {
            // Nobody else takes in what follows from the last record.
            let _ = self.drain();
        }
        let Self { run, due, started, asked, retries, .. } = self;
        run.rests();
        run.clock.catch_up();
        if run.scheduler.end().is_some() {
            return;
        }
        run.held.extend(due.into_iter().chain(asked.into_values()).map(Wanted::Act));
        for execution in started {
            match retries.get(&execution).map(|due| due.duration_since(run.clock.wall())) {
                Some(Ok(left)) if !left.is_zero() => run.wait_for_retry(execution, left),
                _ => run.attempt_again(execution),
            }
        }
        run.count_time();
    }
}
