//! Replay: the state that a journal leads to (S39).
//!
//! [`Replay`] reads records in order, makes of each the batch that it was, and applies the batch with the
//! same [`RunState::apply`] that drove the run. It performs no effect and knows no store. At the end,
//! [`Replayed`] has the state and the work that is left: effects, retries, and entries that the journal
//! lacks.
//!
//! ```text
//! records                                    batch                      the state has now
//! RunStarted                                 -
//! EventLogged 1 Begin (outside)              Received Begin             log 1, effect: write
//! ExecutionSucceeded write  ┐
//! EventLogged 2 Draft       ┘ (one batch)    Succeeded write -> Draft   log 2, effect: send's precondition
//! PreconditionAnswered send                  Answered send -> true      effect: send
//! FanOutGathered, EventLogged (a failure)    -                          logged already: only compared
//! ```
//!
//! Each batch goes the same way: `complete` lets the state decide everything that follows from earlier batches,
//! `RunState::apply` applies the batch, and `take_results` collects what the driver of a live run would take.
//!
//! # Invariants
//! - Every record follows from those before it. A record that does not is a [`Contradiction`] with its
//!   position: the table changed incompatibly, or the journal is damaged.
//! - Entries that the state logs by itself (gathers, events of caught failures) must stand behind the batch
//!   that leads to them, before the next batch. `derived` has those that the journal has not reached.
//! - An effect that follows from the journal may have begun in an earlier process. Replay turns its first attempt into
//!   [`EffectKind::Attempt`], which is *another* attempt. Only an effect of an entry that the journal lacks cannot have
//!   begun (S38), and stays a first attempt.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Applied, Batch, Effect, EffectKind, RunState};
use crate::error::StepError;
use crate::event::AnyEvent;
use crate::id::{ExecutionId, RunStatus, ScopeId, Seq};
use crate::retry::{FailedAttempt, NotRetried};
use crate::run::Host;
use crate::run::earlier_tables::EarlierTables;
use crate::scheduler::{CandidateId, Cause, EvaluationKey, SchedulerLimits, TimerEntry};
use crate::store::{Position, Record, RecordedEvent};
use crate::table::{DependencyTable, EventIndex, RecordedTable, StepIndex};

mod committed;
mod ends;
mod logged;
mod paused;
mod tables;

/// Follows a journal record by record with a state.
pub(crate) struct Replay {
    /// Has the present table, and reads events. Calls no step.
    host: Arc<Host>,
    /// The state behind the records so far. Its own queue of effects is empty between two records.
    pub(super) state: RunState,
    /// The time from which the times of the state count.
    began_at: SystemTime,
    /// The position of the record that is being read.
    position: Position,
    /// Entries that the state has logged by itself and the journal has not reached, oldest first.
    derived: VecDeque<Seq>,
    /// Effects of the records so far, oldest first. Later records answer most of them, which are then
    /// unwanted.
    effects: VecDeque<Effect>,
    /// Preconditions without an answer so far, by step, scope and trigger: a record names these, not the
    /// candidate.
    questions: FxHashMap<EvaluationKey, CandidateId>,
    /// The due times of next attempts, of executions whose last attempt failed.
    retries: FxHashMap<ExecutionId, SystemTime>,
    /// Errors of a live run's executions, which replace the texts in the records. Empty on resume from a
    /// store.
    failures: FxHashMap<ExecutionId, StepError>,
    /// Whether the run was queued, and no process has driven it so far: nothing can have begun.
    queued: bool,
    /// The tables so far, and whether each leaves the idempotency keys of the one before.
    tables: Vec<(RecordedTable, bool)>,
    /// The status in `RunEnded`, once that record was read: only `RunRedriven` follows it.
    ended: Option<RunStatus>,
}

/// The state at the end of a journal, and the work that is left.
pub(crate) struct Replayed {
    /// The state, with the effects that are to begin. Its limits are still those of the replay.
    pub(crate) state: RunState,
    /// Executions that wait for their next attempts, with the times at which these are due.
    pub(crate) retries: Vec<(ExecutionId, SystemTime)>,
    /// Entries that follow from the journal and that the journal lacks, in order.
    pub(crate) derived: VecDeque<Seq>,
}

/// A record that does not follow from the records before it.
#[derive(Debug)]
pub(crate) struct Contradiction {
    /// The position of the first record of the batch.
    pub(crate) position: Position,
    /// The difference, as the end of a sentence about that record.
    pub(crate) what: String,
}

/// The error is the text of a [`Contradiction`]; `take` adds the position.
type ReplayResult<T = ()> = Result<T, String>;

impl Replay {
    /// A replay of a run that began at this time, in its state before the first event.
    pub(crate) fn new(host: Arc<Host>, mut state: RunState, began_at: SystemTime) -> Self {
        state.scheduler.set_redrivable(true);
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
            queued: false,
            tables: Vec::new(),
            ended: None,
        }
    }

    /// Gives the scheduler the execution numbers of the records, and of earlier tables. An earlier version may have numbered
    /// executions in another order. Must come before [`take`](Self::take), since a number is given when an execution is
    /// created, and the record that names it comes later.
    pub(in crate::run) fn recall(&mut self, records: &[Record], earlier: &EarlierTables) {
        // A damaged journal with high numbers takes no memory: the bound is what so many records could lead to.
        let told = records.len().saturating_mul(self.host.table.steps.len().saturating_add(1)) as u64;
        let most = told.saturating_add(SchedulerLimits::default().executions);
        let table = &self.host.table;
        let known: Vec<_> = numbers(table, records).collect();
        let named = known.iter().map(|(_, execution)| *execution).collect();
        self.state.scheduler.reserve_numbers(known.into_iter().chain(earlier.numbers(table, &named)), most);
    }

    /// Takes the errors of executions from the live state of the same run, because a record has only their
    /// texts.
    pub(crate) fn use_errors_of(&mut self, live: &RunState) {
        self.failures.clone_from(live.failures.executions());
    }

    /// Reads the records behind those already read.
    ///
    /// # Errors
    /// A [`Contradiction`] if a record does not follow from those before it.
    pub(crate) fn take(&mut self, records: &[Record]) -> Result<(), Contradiction> {
        let mut rest = records;
        while let Some((record, behind)) = rest.split_first() {
            // One record, or a success with its events and timers.
            let taken = self.take_one(record, behind);
            let taken = taken.map_err(|what| Contradiction { position: self.position, what })?;
            self.position = self.position.after(taken);
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// The state at the end of the records, with the work that is left.
    pub(crate) fn finish(mut self) -> Replayed {
        self.complete();
        self.state.scheduler.set_redrivable(false);
        self.state.lives.forget_gone();
        self.state.lives.set_keys(self.key_parts());
        // During replay, positions of effects count only the records of batches. The journal has all of them,
        // so afterwards each effect may begin at once.
        let known = self.known();
        self.state.position = self.position;
        let effects = std::mem::take(&mut self.effects);
        for Effect { after, begins } in effects {
            if !self.state.is_wanted(&begins) {
                continue;
            }
            let begins = if after <= known && !self.queued { begins.again() } else { begins };
            self.state.effects.push_back(Effect { after: Position(0), begins });
        }
        // `take_results` left it out on the way: the run waits only if it waits at the end.
        if self.state.scheduler.waits() {
            self.state.effects.push_back(Effect { after: Position(0), begins: EffectKind::Wait });
        }
        // An execution that ended since, or whose next attempt began, waits for none.
        let running = self.retries.into_iter().filter(|(id, _)| self.state.scheduler.is_running(*id));
        let retries = running.filter(|(id, _)| self.state.trace.next_attempt(*id).is_some()).collect();
        Replayed { state: self.state, retries, derived: self.derived }
    }

    /// Reads one record, with the records behind it that belong to its batch. Returns how many records these
    /// were.
    fn take_one(&mut self, record: &Record, behind: &[Record]) -> ReplayResult<usize> {
        // Only a redrive follows `RunEnded`: a journal that continues otherwise is damaged.
        let reopens =
            |record: &Record| matches!(record, Record::RunRedriven { .. } | Record::CleanUpRedriven { .. });
        if self.ended.is_some() && !reopens(record) {
            return Err("the run had ended".into());
        }
        match record {
            Record::RunStarted { table, queued, .. } if self.position == Position(0) => {
                self.queued = *queued;
                self.tables.extend(record.table_with_keys());
                self.written_under(table);
            }
            Record::RunStarted { .. } => return Err("the run starts a second time".into()),
            Record::RunResumed { table, at, .. } => {
                self.tables.extend(record.table_with_keys());
                self.resumed(table.as_ref(), *at);
            }
            Record::RunDetached { dropped, .. } => {
                self.complete();
                self.state.lives.detach(dropped);
            }
            Record::RunWaiting { .. } | Record::RunPaused { .. } | Record::RunUnpaused { .. } => {
                self.paused(record)?;
            }
            // About the lease.
            Record::RunKept { .. } => {}
            Record::EventLogged { seq, scope, cause, event, origin, at } => {
                self.logged(*cause, (*seq, *scope), event, (origin.as_ref(), *at))?;
            }
            Record::TimerSet { .. } => return Err("the timer has no execution that set it".into()),
            Record::FanOutGathered { seq, scope, fan_out, .. } => {
                self.check_derived(*seq, *scope, fan_out)?;
            }
            Record::PreconditionAnswered { step, scope, trigger, answer, error, at } => {
                let answer =
                    error.as_ref().map_or(Ok(*answer), |error| Err(StepError::permanent(error.clone())));
                self.answered((self.step(step)?, *scope, *trigger), answer, *at)?;
            }
            Record::ExecutionSucceeded { execution, step, scope, trigger, fan_outs, at } => {
                // Checked before the batch is applied, since the message names step, scope and trigger.
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
                let (retry_in, compacts) = (*retry_in, *compacts);
                let failed = FailedAttempt { class, error, retry_in, compacts, redriven: false };
                // A later failure of the execution replaces the entry; `finish` removes entries that are
                // over.
                self.retries.insert(*execution, at.checked_add(retry_in).unwrap_or(*at));
                self.apply(Batch::Retried { execution: *execution, failed }, *at)?;
            }
            Record::ExecutionFailed { execution, step, scope, trigger, class, error, not_retried, at } => {
                self.is_running(*execution, (self.step(step)?, *scope, *trigger))?;
                // The live error, if there is one, has more than the text.
                let known = self.failures.get(execution);
                let known = known.filter(|known| known.class() == *class && known.to_string() == *error);
                let error = known.cloned().unwrap_or_else(|| StepError::new(*class, error.clone()));
                self.failed(*execution, error, *not_retried, *at)?;
            }
            Record::AttemptBegan { execution, step, scope, trigger, at } => {
                self.is_running(*execution, (self.step(step)?, *scope, *trigger))?;
                self.apply(Batch::AttemptBegan { execution: *execution }, *at)?;
            }
            Record::ChildStarted { child, at, .. } => {
                self.apply(Batch::ChildStarted { child: child.clone(), at: *at }, *at)?;
            }
            Record::ChildrenEnded { children, at } => {
                self.apply(Batch::ChildrenEnded(children.clone()), *at)?;
            }
            Record::CleanUpStarted { .. } => self.clean_up_started(record)?,
            Record::RunEnded { status, error, step, deadline, origin, at } => {
                let failed = step.as_deref().zip(error.as_deref());
                self.ended((*status, *deadline), failed, (origin.as_ref(), *at))?;
            }
            Record::DelaysEnded { at } => {
                for due in self.retries.values_mut() {
                    *due = (*due).min(*at);
                }
                self.apply(Batch::DelaysEnded, *at)?;
            }
            Record::RunRedriven { by, again, at, .. } => self.redriven(by.clone(), again, *at)?,
            Record::CleanUpRedriven { by, steps, again, at } => {
                self.clean_up_redriven(by.clone(), [steps, again], *at)?;
            }
        }
        Ok(1)
    }

    /// A time of a record, from the beginning of the run.
    fn since_began(&self, at: SystemTime) -> Duration {
        at.duration_since(self.began_at).unwrap_or_default()
    }

    /// Completes the consequences of the batches so far, and takes the results out of the state.
    fn complete(&mut self) {
        self.state.advance(&mut usize::MAX.clone());
        self.take_results();
    }

    /// Takes derived entries and effects out of the state. Dropped executions need nothing: no future is in
    /// flight here.
    fn take_results(&mut self) {
        while let Some(seq) = self.state.take_derived() {
            self.derived.push_back(seq);
        }
        let _ = self.state.take_dropped();
        while let Some(effect) = self.state.effects.pop_front() {
            // A run that waits on the way has been continued by a later record.
            if matches!(effect.begins, EffectKind::Wait) {
                continue;
            }
            // A record names a question by its step, scope and trigger.
            if let EffectKind::Precondition(id) = effect.begins
                && let Some(candidate) = self.state.scheduler.asked(id)
            {
                self.questions.insert((candidate.step, candidate.scope, candidate.trigger), id);
            }
            self.effects.push_back(effect);
        }
        // Most effects are answered by the next records. Removing them here bounds the list by the work that
        // is open.
        while self.effects.front().is_some_and(|effect| !self.state.is_wanted(&effect.begins)) {
            self.effects.pop_front();
        }
    }

    /// Applies a batch. The journal must have every entry that followed from earlier batches: a live run journals
    /// gathers before the next batch, and so the order of the journal is the order of the log.
    fn apply(&mut self, batch: Batch, at: SystemTime) -> ReplayResult<Applied> {
        self.complete();
        if let Some(seq) = self.derived.front().and_then(|seq| self.state.log.get(*seq)) {
            let name = &self.host.table.event(seq.index).name;
            return Err(format!("`{name}` would be logged before it now"));
        }
        self.state.lives.note_batch(batch.ended_execution());
        let applied = self.state.apply(batch, self.since_began(at));
        if matches!(applied, Applied::Refused) {
            return Err("the run would refuse it now".into());
        }
        // The driver would begin this execution directly. Here it becomes an effect like any other.
        if let Applied::Logged(entered) = &applied
            && let Some(start) = entered.next()
        {
            self.state.queue_effect(EffectKind::Execution(start));
        }
        self.complete();
        Ok(applied)
    }

    /// `RunResumed`: a later process took the run up here. The run was not active in between (S32), and every
    /// effect that follows from the journal so far may have begun before.
    fn resumed(&mut self, table: Option<&RecordedTable>, at: SystemTime) {
        self.complete();
        let (at, known) = (self.since_began(at), self.known());
        let (mut unbegun, queued) = (FxHashSet::default(), std::mem::take(&mut self.queued));
        for Effect { after, begins } in std::mem::take(&mut self.effects) {
            let may_have_begun = after <= known && !queued;
            unbegun.extend(begins.execution().filter(|_| !may_have_begun));
            let begins = if may_have_begun { begins.again() } else { begins };
            self.effects.push_back(Effect { after, begins });
        }
        self.state.begin_life(at, &unbegun);
        if let Some(table) = table {
            self.written_under(table);
        }
    }

    /// The position up to which the state follows from records: entries that the journal has not reached come behind.
    fn known(&self) -> Position {
        let derived = self.derived.len() as u64;
        Position(self.state.position.0.saturating_sub(derived))
    }

    /// The step of that name in the present table.
    fn step(&self, name: &str) -> ReplayResult<StepIndex> {
        let step = self.host.table.step_named(name);
        step.ok_or_else(|| format!("step `{name}` ran, which the workflow does not have any more"))
    }

    /// The event type of that name in the present table.
    fn event_named(&self, name: &str) -> ReplayResult<EventIndex> {
        let event = self.host.table.event_named(name);
        event.ok_or_else(|| format!("event `{name}` was logged, which the workflow does not know any more"))
    }

    /// Decodes an event of the journal. `request` is that of a reply or an expiry.
    fn decoded(
        &self,
        event: &RecordedEvent,
        index: EventIndex,
        request: Option<Seq>,
    ) -> ReplayResult<AnyEvent> {
        let request = request.and_then(|seq| self.state.log.get(seq)).map(|record| &record.event);
        self.host.read(event, index, request).map_err(|error| {
            format!("event `{}` was logged, which cannot be read as what it is now: {error}", event.name())
        })
    }

    /// Checks that the execution runs, and that step, scope and trigger are those of the record.
    fn is_running(&mut self, execution: ExecutionId, (step, scope, trigger): EvaluationKey) -> ReplayResult {
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

    /// `ExecutionFailed`: the event of a caught failure is in the log now, and must be the next record.
    fn failed(
        &mut self,
        execution: ExecutionId,
        error: StepError,
        not_retried: NotRetried,
        at: SystemTime,
    ) -> ReplayResult {
        let applied = self.apply_failure(execution, error, not_retried, at)?;
        if let Applied::Logged(entered) = applied {
            // The failure entered the log before the gathers that `apply` collected behind it, so the list is
            // sorted.
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
    ) -> ReplayResult<Applied> {
        self.apply(Batch::Failed { execution, error, not_retried }, at)
    }

    /// A precondition failed and ended the run. The record names the step alone: of several open questions
    /// the oldest stands for it. No open question is no contradiction, since nothing follows the record.
    fn precondition_error(&mut self, step: StepIndex, error: &str, at: SystemTime) -> ReplayResult {
        let asked =
            self.questions.iter().filter(|((of, ..), _)| *of == step).map(|(_, candidate)| *candidate);
        let Some(candidate) = asked.filter(|id| self.state.scheduler.asked(*id).is_some()).min() else {
            return Ok(());
        };
        let answer = Err(StepError::permanent(error.to_owned()));
        self.apply(Batch::Answered { candidate, step, answer }, at).map(|_| ())
    }

    /// `PreconditionAnswered`: an error has no such record, as it ends the run.
    fn answered(
        &mut self,
        question: EvaluationKey,
        answer: Result<bool, StepError>,
        at: SystemTime,
    ) -> ReplayResult {
        self.complete();
        // An evaluation asks at most once, so the key names one question.
        let Some(candidate) = self.questions.remove(&question) else {
            let name = &self.host.table.step(question.0).name;
            return Err(format!("the precondition of `{name}` answered, and would not be asked now"));
        };
        let (step, ..) = question;
        self.apply(Batch::Answered { candidate, step, answer }, at).map(|_| ())
    }

    /// Checks that the next record is the oldest entry that the state has logged by itself.
    fn check_derived(&mut self, seq: Seq, scope: ScopeId, name: &str) -> ReplayResult {
        self.complete();
        let Some(derived) = self.derived.pop_front() else {
            return Err(format!("`{name}` was logged, and would not be logged now"));
        };
        let record = self.state.log.get(derived);
        let is_it = record.is_some_and(|record| record.scope == scope && self.is_named(record.index, name));
        if derived == seq && is_it {
            return Ok(());
        }
        Err(format!("`{name}` was logged, and would be logged elsewhere now"))
    }

    /// Whether the event type has this name.
    fn is_named(&self, event: EventIndex, name: &str) -> bool {
        *self.host.table.event(event).name == *name
    }
}

impl Replay {
    /// The state so far, with everything that follows from the records read.
    pub(crate) fn state(&mut self) -> &RunState {
        self.complete();
        &self.state
    }

    /// The position up to which the journal is read.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// The timer that expires a request.
    fn expiry_of(&self, request: Seq) -> Option<&TimerEntry> {
        self.state.scheduler.timers().find(|timer| timer.request == Some(request))
    }
}

/// The executions that the records name, by step, scope and trigger.
fn numbers(
    table: &DependencyTable,
    records: &[Record],
) -> impl Iterator<Item = (EvaluationKey, ExecutionId)> {
    // S31: clean-up executions have the numbers behind all others.
    let step_named = |step: &str| table.step_named(step).filter(|step| !table.step(*step).cleans_up());
    records.iter().filter_map(move |record| match record {
        Record::ExecutionSucceeded { execution, step, scope, trigger, .. }
        | Record::ExecutionFailed { execution, step, scope, trigger, .. }
        | Record::RetryScheduled { execution, step, scope, trigger, .. }
        | Record::AttemptBegan { execution, step, scope, trigger, .. } => {
            Some(((step_named(step)?, *scope, *trigger), *execution))
        }
        Record::ChildStarted { child, scope, trigger, .. } => {
            Some(((step_named(&child.step)?, *scope, *trigger), child.execution))
        }
        _ => None,
    })
}

/// The cause of an entry, for a message.
fn caused(cause: Cause) -> String {
    match cause {
        Cause::Failure(execution) => format!("the failure of {execution} was caught"),
        Cause::Execution(execution) => format!("{execution} emitted an event before it ended"),
        _ => "an event was logged".into(),
    }
}
