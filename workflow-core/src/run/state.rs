//! The state of one run: a pure function of its journal.
//!
//! [`RunState`] owns the scheduler, the log in memory, the trace, the timers and the effects that have not
//! begun. It has no runtime, no clock, no locks and no I/O, and it does not know which batches the store has.
//! So a live run, a replay and a report reach the same state by the same function.
//!
//! ```text
//! batch ──apply──▶ scheduler ──▶ log, trace, timers
//!                      │
//!                   advance        evaluates events, settles branches, gathers fan-outs
//!                      ▼
//!                   effects        what begins next, each with the journal position that it follows from
//! ```
//!
//! # Invariants
//! - Only [`RunState::apply`] and [`RunState::advance`] append to the log: `apply` the events of a batch,
//!   `advance` the gathers that follow from it.
//! - The state depends on the sequence of batches and their times alone. A batch takes effect after
//!   everything that follows from the batches before it.
//! - The driver performs an effect once the store has the journal up to the effect's position (S38).
//!
//! # Example
//! `write` emits a `Draft`; `send` takes it and has a precondition. Positions are those of the journal, which
//! begins with `RunStarted`.
//!
//! ```text
//! batch                           log              position   effects afterwards
//! Received Begin                  1 Begin                 2   Execution(write), after 2
//! Succeeded write -> Draft        1 Begin, 2 Draft        4   Question(send), after 4
//! Answered send -> true           1 Begin, 2 Draft        5   Execution(send), after 5
//! ```

#![expect(
    clippy::inline_always,
    reason = "every step goes through here: as one function its parts pass no values through memory"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::error::{ErrorClass, StepError};
use crate::event::{AnyEvent, Gathered};
use crate::failure::StepFailed;
use crate::id::{ChildRun, ExecutionId, Origin, RunStatus, Seq};
use crate::report::RedriveReport;
use crate::retry::NotRetried;
use crate::scheduler::{
    Answer, CandidateId, Cause, CleanUp, CleanUpState, CommitOutcome, Emission, End, Entry, Execution,
    ExecutionStart, FanOutFailure, GroupSummary, LoggedBatch, QueuedAction, Scheduler, SchedulerLimits,
};
use crate::store::Position;
use crate::table::{DependencyTable, StepIndex};

mod active;
mod batch;
mod children;
mod effects;
mod failures;
mod inherited;
mod keys;
mod lives;
mod log;
mod origins;
mod pause;
#[cfg(test)]
mod planted;
mod rare;
mod replay;
mod snapshot;
mod suspended;
mod timers;
mod trace;

pub(super) use active::ActiveTime;
pub(super) use batch::{
    Applied, Batch, CleanUpReopening, CleanUpStart, PauseStart, Reopening, Returned, ReturnedBatch, Stop,
};
pub(super) use children::RecordedChild;
pub(super) use effects::{Effect, EffectKind, Effects};
pub(super) use lives::Earlier;
pub(super) use log::{BranchRecord, Log, bound_input};
pub(super) use replay::{Contradiction, Replay, Replayed};
pub(super) use suspended::SuspendedState;
pub(super) use timers::{DueEvent, TimerQueue};
pub(super) use trace::{Trace, TraceEntry, TraceState};

use failures::Failures;
use lives::Lives;
pub(in crate::run) use lives::{BegunAs, BegunBefore};
use rare::RareState;

/// The state of a run at one position of its journal.
#[derive(Debug)]
pub(crate) struct RunState {
    /// Decides what follows from a batch. Knows positions and types, never values.
    pub(super) scheduler: Scheduler,
    /// The values at the positions that the scheduler gave.
    pub(super) log: Log,
    /// When each execution began and ended, for retries and reports.
    pub(super) trace: Trace,
    /// When the pending timers are due. The scheduler knows only which are pending.
    pub(super) timers: TimerQueue,
    /// Errors that no step has caught and no gather has taken.
    failures: Failures,
    /// What few runs have.
    rare: Option<Box<RareState>>,
    /// Which attempts earlier processes may have begun.
    pub(super) lives: Lives,
    /// How long the run has been active, for its timeout (S32).
    pub(super) active: ActiveTime,
    /// The effects that have not begun, oldest first.
    pub(super) effects: Effects,
    /// Executions that the scheduler dropped since the driver last took them. The list is empty if the
    /// scheduler withdrew only questions to preconditions.
    dropped: Option<Vec<ExecutionId>>,
    /// Gathers that `advance` logged and the driver has not journaled yet, oldest first.
    derived: VecDeque<Seq>,
    /// The end of the journal that leads to this state. Grows with each batch and gather by their records, and by
    /// [`skip`](Self::skip) for records without a batch. The same without a journal.
    position: Position,
    /// The time of the last batch, from the beginning of the run. It never goes back.
    now: Duration,
}

impl RunState {
    /// The state before the first event.
    #[inline]
    pub(super) fn new(table: &Arc<DependencyTable>, limits: SchedulerLimits) -> Self {
        let mut scheduler = Scheduler::with_limits(Arc::clone(table), limits);
        scheduler.set_redrivable(false);
        Self::of(scheduler)
    }

    #[inline]
    fn of(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            log: Log::default(),
            trace: Trace::default(),
            timers: TimerQueue::default(),
            failures: Failures::default(),
            rare: None,
            lives: Lives::default(),
            active: ActiveTime::default(),
            effects: Effects::default(),
            dropped: None,
            derived: VecDeque::new(),
            position: Position(0),
            now: Duration::ZERO,
        }
    }

    #[inline]
    pub(super) fn table(&self) -> &Arc<DependencyTable> {
        self.scheduler.table()
    }

    /// The end of the journal that leads to this state.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Counts records in the journal that change no state, such as `RunWaiting`.
    pub(super) fn skip(&mut self, records: usize) {
        self.position = self.position.after(records);
    }

    /// How the run ended, if it did.
    #[inline]
    pub(super) fn end(&self) -> Option<&End> {
        self.scheduler.end()
    }

    /// Applies a batch at a time from the beginning of the run. Completes first the consequences of earlier
    /// batches.
    ///
    /// A refused batch changes neither log nor position.
    ///
    /// The order is the same for every batch: the scheduler decides first, since it knows whether the batch is
    /// accepted and at which positions. Then the values enter the log at these positions, and the position of the
    /// journal moves on. The consequences come with the next [`advance`](Self::advance), so the caller can journal the
    /// batch before anything else.
    pub(super) fn apply(&mut self, batch: Batch, at: Duration) -> Applied {
        // Earlier batches take full effect first.
        if !self.scheduler.is_settled() {
            self.advance(&mut usize::MAX.clone());
        }
        // The record of a child has the time of the child's start, not the time of a batch. A child's start or end
        // gives a waiting run nothing to do, so the run stays inactive.
        let leaves_time = matches!(
            batch,
            Batch::ChildStarted { .. }
                | Batch::ChildrenEnded(_)
                | Batch::Redriven(_)
                | Batch::CleanUpRedriven(_)
        );
        if !leaves_time {
            self.now = self.now.max(at);
            self.active.resume(self.now);
            self.stir();
        }
        match batch {
            Batch::Succeeded { execution, returned } => self.succeed(execution, returned),
            Batch::Received { event, index, origin } => match self.scheduler.receive(index) {
                Some(entered) => self.enter_from_outside(Cause::Outside, entered, event, origin),
                None => Applied::Refused,
            },
            Batch::Replied { request, event, origin } => match self.scheduler.receive_reply(request) {
                Some(entered) => self.enter_from_outside(Cause::Reply(request), entered, event, origin),
                None => Applied::Refused,
            },
            Batch::Fired { timer, event } => match self.scheduler.fire(timer) {
                Some((cause, entered)) => {
                    // Only a timer that fired leaves here. A dropped one leaves when its turn comes.
                    self.timers.fired(timer);
                    self.enter_one(cause, entered, event)
                }
                None => Applied::Refused,
            },
            Batch::Failed { execution, error, not_retried } => self.fail(execution, error, not_retried),
            Batch::Answered { candidate, step, answer } => self.answer(candidate, step, answer),
            // The execution was dropped, or the run has ended: nothing is left to try again.
            Batch::Retried { execution, .. }
                if !self.scheduler.is_running(execution) || self.begins_nothing() =>
            {
                Applied::Refused
            }
            Batch::Retried { execution, failed } => {
                // First notes that the failed attempt had begun, and then that the next one has not.
                self.trace.attempted_again(execution);
                self.trace.failed_attempt(execution, self.now, failed);
                self.lives.next_attempt(execution);
                self.note(1)
            }
            Batch::AttemptBegan { execution }
                if !self.scheduler.is_running(execution) || self.begins_nothing() =>
            {
                Applied::Refused
            }
            Batch::AttemptBegan { execution } => {
                self.lives.attempt_began(execution);
                self.note(1)
            }
            // A child's own journal may name an execution that does not exist, or the wrong step. A child may
            // also join after the run's end is written.
            Batch::ChildStarted { child, .. } if !self.has_started(&child) || self.has_completed() => {
                Applied::Refused
            }
            Batch::ChildStarted { child, at } => {
                self.rare_mut().children.start(child, at);
                self.note(1)
            }
            Batch::ChildrenEnded(ended) => self.end_children(&ended),
            Batch::CleanUpStarted(start) => self.clean_up(&start),
            // A clean-up ends early, or never begins.
            Batch::Stopped(Stop::JournalFailed | Stop::CleanUpOver) if self.scheduler.stop_clean_up() => {
                self.note(0)
            }
            // The first end counts (S28).
            Batch::Stopped(_) | Batch::Cancelled(_) if self.end().is_some() => Applied::Refused,
            Batch::Cancelled(origin) => {
                self.rare_mut().origins.note_cancel(origin);
                self.scheduler.end_by(Stop::Cancelled.into());
                self.note(0)
            }
            Batch::Stopped(stop) => {
                if let Stop::DeadlinePassed(deadline) = stop {
                    self.rare_mut().passed_deadline = Some(deadline);
                }
                self.scheduler.end_by(stop.into());
                // `RunEnded` follows once the run has stopped, and is counted then.
                self.note(0)
            }
            Batch::DelaysEnded if self.begins_nothing() => Applied::Refused,
            Batch::DelaysEnded => {
                self.trace.end_delays(self.now);
                self.note(1)
            }
            Batch::Paused(start) => self.pause(*start),
            Batch::Unpaused { by_parent, origin } => self.unpause(by_parent, origin.as_ref()),
            // Handled above: it begins active time anew.
            Batch::Redriven(redriven) => self.redrive(redriven, at),
            Batch::CleanUpRedriven(redriven) => self.redrive_clean_up(&redriven, at),
        }
    }

    /// Begins the clean-up, and drops what still runs.
    fn clean_up(&mut self, start: &CleanUpStart) -> Applied {
        let begun = self.may_have_begun_until(self.now);
        if !self.scheduler.begin_clean_up(Some((&start.steps, start.first))) {
            return Applied::Refused;
        }
        if let Some(after) = start.after {
            self.rare_mut().timed_out_after = Some(after);
        }
        self.effects = Effects::default();
        self.trace.renumber_from(start.first);
        self.drop_running(self.now);
        // The end has ended the pause, and clean-up steps begin as ever.
        self.lives.forget_pause();
        self.lives.drop_begun(&begun);
        self.note(1)
    }

    /// Drops all executions that run, at this time. Returns them.
    pub(super) fn drop_running(&mut self, at: Duration) -> Vec<ExecutionId> {
        let running = self.trace.running();
        for execution in &running {
            self.drop_execution(*execution, at);
        }
        running
    }

    /// The run drops an execution. An attempt whose delay has passed counts as made: no journal says that it began.
    fn drop_execution(&mut self, execution: ExecutionId, at: Duration) {
        self.end_passed_delay(execution, at);
        self.trace.dropped(execution, at);
    }

    /// Notes that the next attempt of an execution has begun, if its delay had passed at this time.
    pub(super) fn end_passed_delay(&mut self, execution: ExecutionId, at: Duration) {
        if !self.is_delayed(execution, at) {
            self.trace.attempted_again(execution);
        }
    }

    /// The time of the last batch.
    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// An execution has returned after the end. Where clean-up begins next, its journal has the execution as one that
    /// the clean-up dropped.
    pub(super) fn note_late(&mut self, execution: ExecutionId) {
        if self.scheduler.is_to_clean_up() {
            self.lives.drop_begun(&[execution]);
        }
    }

    /// Whether no execution and no precondition begins any more: the run has ended, and does not clean up.
    #[inline]
    pub(super) fn begins_nothing(&self) -> bool {
        self.end().is_some() && !self.scheduler.cleans_up()
    }

    /// The run continues after its end (S39). The scheduler queues everything that is open, to begin anew. Active time
    /// starts at zero; the timers keep their due times.
    fn redrive(&mut self, Reopening { by, again, unbegun }: Reopening, at: Duration) -> Applied {
        let status = self.end().map_or(RunStatus::Failed, RunStatus::from);
        let mut begun = self.may_have_begun_until(self.now);
        begun.retain(|id| !unbegun.contains(id));
        self.lives.drop_begun(&begun);
        if !self.scheduler.redrive() {
            return Applied::Refused;
        }
        self.now = self.now.max(at);
        self.active = ActiveTime::default();
        if let Some(rare) = &mut self.rare {
            (rare.passed_deadline, rare.timed_out_after) = (None, None);
        }
        self.active.resume(self.now);
        let executions = self.scheduler.executions();
        let is_open = |id| executions.get(id).is_some_and(Execution::is_open);
        let anew = self.lives.redrive(
            self.trace.numbered().map(|(id, _)| id),
            is_open,
            |id| self.trace.class_of_failure(id),
            |id| executions.get(id).is_some_and(|execution| again.contains(&execution.step)),
        );
        self.trace.redrive(self.now, &anew);
        if let Some(rare) = &mut self.rare {
            rare.origins.redrive();
        }
        self.lives.note_redrive(RedriveReport { status, by, at: self.now, clean_up: false });
        self.failures.begin_anew(is_open);
        self.note(1)
    }

    /// Clean-up steps run again after the end of the run, which stays as it is (S86). Their executions begin anew.
    #[cold]
    #[inline(never)]
    fn redrive_clean_up(&mut self, reopening: &CleanUpReopening, at: Duration) -> Applied {
        let CleanUpReopening { by, steps, again } = reopening;
        let status = self.end().map_or(RunStatus::Failed, RunStatus::from);
        let planned = self.scheduler.clean_up().map_or(&[][..], CleanUp::steps);
        let executed = planned.iter().filter(|planned| steps.contains(&planned.step));
        let executed = executed.filter_map(|planned| match planned.state {
            CleanUpState::Executed(execution) => Some((execution, planned.step)),
            _ => None,
        });
        let executed: FxHashMap<ExecutionId, StepIndex> = executed.collect();
        if !self.scheduler.redrive_clean_up(steps) {
            return Applied::Refused;
        }
        self.now = self.now.max(at);
        // An attempt that was dropped, at the end of its time or of the run, may have had its effect.
        let dropped = executed.keys().copied().filter(|id| self.trace.was_dropped(*id));
        self.lives.drop_begun(&dropped.collect::<Vec<_>>());
        let anew = self.lives.redrive_clean_up(
            &executed,
            |id| self.trace.class_of_failure(id).filter(|_| !self.trace.was_dropped(id)),
            |id| executed.get(&id).is_some_and(|step| again.contains(step)),
        );
        self.trace.redrive(self.now, &anew);
        let by = by.clone();
        self.lives.note_redrive(RedriveReport { status, by, at: self.now, clean_up: true });
        self.failures.begin_anew_of_clean_up(|id| executed.contains_key(&id));
        self.note(1)
    }

    /// Whether the child's execution exists and belongs to the step that the child names.
    fn has_started(&self, child: &ChildRun) -> bool {
        let step = self.step_of(child.execution);
        step.is_some_and(|step| self.table().step(step).name == child.step)
    }

    /// Counts records that are in the journal and leave no event.
    #[inline]
    fn note(&mut self, records: usize) -> Applied {
        self.position = self.position.after(records);
        Applied::WithoutEvent
    }

    /// Appends one event to the log. If an execution emitted or failed with it, that record stands before the
    /// event's.
    #[inline(always)]
    fn enter_one(&mut self, cause: Cause, entered: LoggedBatch, event: AnyEvent) -> Applied {
        if let LoggedBatch::One(entry, _) = entered {
            self.log.append(self.scheduler.table(), entry, event, cause, self.now);
        }
        // The lead is `ExecutionSucceeded` or `ExecutionFailed`; the other causes have no record but the
        // event's.
        let caused = usize::from(matches!(cause, Cause::Failure(_) | Cause::Execution(_)));
        self.advance_position(entered, caused)
    }

    /// The same for an event from outside, whose origin is stored too.
    #[inline(always)]
    fn enter_from_outside(
        &mut self,
        cause: Cause,
        entered: LoggedBatch,
        event: AnyEvent,
        origin: Option<Arc<Origin>>,
    ) -> Applied {
        if let (Some(origin), Some(entry)) = (origin, entered.events().first()) {
            self.rare_mut().origins.note_event(entry.seq, origin);
        }
        self.enter_one(cause, entered, event)
    }

    /// Counts the records of a batch whose events are in the log: `before` other records, events, timers and
    /// the end.
    #[inline(always)]
    fn advance_position(&mut self, entered: LoggedBatch, before: usize) -> Applied {
        // A batch with a stop event has `RunEnded` as its last record.
        let ended = usize::from(self.has_completed());
        let records = before + entered.events().len() + entered.timers().len() + ended;
        self.position = self.position.after(records);
        if let LoggedBatch::One(_, Some(next)) = &entered {
            // The only successor, which the scheduler started without its action queue.
            self.trace.schedule(next.execution, self.now);
        }
        Applied::Logged(entered)
    }

    #[inline]
    fn has_completed(&self) -> bool {
        matches!(self.scheduler.end(), Some(End::Completed(_)))
    }

    /// An execution succeeded: its emissions enter the log as one batch (S23).
    #[inline(always)]
    fn succeed(&mut self, execution: ExecutionId, returned: Returned) -> Applied {
        let one;
        let emissions = match &returned {
            Returned::Event(event, _) => {
                one = Emission::Event(*event);
                std::slice::from_ref(&one)
            }
            Returned::Nothing => &[],
            Returned::Many(many) => &many.emissions,
        };
        let CommitOutcome::Logged(entered) = self.scheduler.succeed(execution, emissions) else {
            return Applied::Refused;
        };
        // Before the events: `entered` moves into the answer, and the trace needs its positions.
        self.trace.committed(execution, self.now, entered.events());
        match returned {
            // The event belongs to the scope of its execution.
            Returned::Event(_, event) => self.enter_one(Cause::Execution(execution), entered, event),
            Returned::Nothing => self.advance_position(entered, 1),
            Returned::Many(many) => self.enter_many(execution, entered, *many),
        }
    }

    /// The general case of a success: several events, timers, or the items of fan-outs.
    fn enter_many(&mut self, execution: ExecutionId, entered: LoggedBatch, many: ReturnedBatch) -> Applied {
        let ReturnedBatch { events, timers, .. } = many;
        debug_assert_eq!(events.len(), entered.events().len(), "a batch is logged as it was committed");
        let cause = Cause::Execution(execution);
        // The items of a fan-out are consecutive, so their branches extend one range of the log.
        let scope = self.scheduler.executions().get(execution).map(|execution| execution.scope);
        for (entry, event) in entered.events().iter().zip(events) {
            // An entry in another scope than its execution's is the item of a new branch.
            if let Some(parent) = scope.filter(|scope| *scope != entry.scope) {
                let Entry { seq, scope, .. } = *entry;
                self.log.branch(BranchRecord { scope, parent, item: seq, opener: execution });
            }
            self.log.append(self.scheduler.table(), *entry, event, cause, self.now);
        }
        for (entry, timer) in entered.timers().iter().zip(timers) {
            // A timer that is not pending was dropped with its branch, or with the run.
            if self.scheduler.board().awaited.timer(entry.timer).is_some() {
                self.timers.insert(entry.timer, timer, &self.scheduler);
            }
        }
        self.advance_position(entered, 1)
    }

    /// An execution failed for good. If a step catches the failure, it becomes an event. Otherwise the state
    /// stores the error for the run's end or for a gather, unless the step's policy lets the run continue.
    ///
    /// The trace comes before the event, which says how many attempts there were. The error is stored before the
    /// scheduler learns of the failure, since the end of the run and a gather look it up.
    fn fail(&mut self, execution: ExecutionId, error: StepError, not_retried: NotRetried) -> Applied {
        let Some(step) = self.step_of(execution) else { return Applied::Refused };
        if !self.scheduler.is_running(execution) {
            return Applied::Refused;
        }
        // A failure after the end is in no journal: the execution is dropped with the run.
        if self.begins_nothing() {
            self.note_late(execution);
            self.drop_execution(execution, self.now);
            return Applied::Refused;
        }
        // The failed attempt had begun, unless the clock failed while the execution waited for its retry.
        if not_retried != NotRetried::Clock {
            self.trace.attempted_again(execution);
        }
        self.trace.failed(execution, self.now, &error, not_retried);
        let row = self.table().step(step);
        // The failure of a clean-up step changes no outcome.
        let (is_caught, is_stored) =
            (row.failed.is_some(), !row.policy.continue_on_error && !row.cleans_up());
        // A caught failure is an event (S29).
        let failure = is_caught.then(|| {
            let (step, attempts) = (Arc::clone(&row.name), self.trace.attempts_made(execution));
            AnyEvent::new(StepFailed::new(step, execution, attempts, &error))
        });
        if is_stored && !is_caught {
            self.failures.insert(execution, error);
        }
        match (self.scheduler.fail(execution), failure) {
            (Some(entered), Some(failure)) => {
                if let Some(entry) = entered.events().first() {
                    self.trace.caught(execution, entry.seq);
                }
                self.enter_one(Cause::Failure(execution), entered, failure)
            }
            // Not caught, or the log is full: `ExecutionFailed` is the only record.
            _ => self.note(1),
        }
    }

    /// A precondition answered. `Ok(true)` makes the execution due; `Ok(false)` leaves the step to its next
    /// trigger (S18); an error ends the run. The error is stored first, since the end names the candidate only.
    fn answer(
        &mut self,
        candidate: CandidateId,
        step: StepIndex,
        answer: Result<bool, StepError>,
    ) -> Applied {
        if self.scheduler.asked(candidate).is_none() || self.begins_nothing() {
            return Applied::Refused;
        }
        let (answer, records) = match answer {
            Ok(true) => (Answer::Yes, 1),
            Ok(false) => (Answer::No, 1),
            // The journal has this error in the record of the run's end, or of the answer if the run cleans up.
            Err(error) => {
                self.failures.insert_precondition(candidate, step, error);
                (Answer::Failed, usize::from(self.scheduler.cleans_up()))
            }
        };
        self.scheduler.answered(candidate, answer);
        self.note(records)
    }

    /// Completes the consequences of the batches so far, in at most `work` units, and subtracts the units
    /// used. Returns whether all of it is complete; `false` also if the last unit completed it.
    ///
    /// Nothing here looks at a clock: executions are scheduled, and the run waits, at the time of the last batch.
    /// So a replay gets the same times.
    pub(super) fn advance(&mut self, work: &mut usize) -> bool {
        while let Some(queued) = self.scheduler.next_within(work) {
            match queued {
                QueuedAction::Start(start) => {
                    let is_first = self.trace.schedule(start.execution, self.now);
                    let begins = EffectKind::Execution(start);
                    self.queue_effect(if is_first { begins } else { begins.again() });
                }
                QueuedAction::Ask(candidate) => self.queue_effect(EffectKind::Precondition(candidate)),
                QueuedAction::Gathered(gathered) => self.gather(gathered.0, &gathered.1),
                QueuedAction::FanOutFailed(failed) => self.fan_out_failed(&failed),
                QueuedAction::Free(scope) => self.log.free(scope),
                QueuedAction::Drop(execution) => {
                    if self.scheduler.is_redrivable() {
                        self.note_gone(execution, true);
                    }
                    self.drop_execution(execution, self.now);
                    self.dropped.get_or_insert_default().push(execution);
                }
                QueuedAction::DropWaiting(execution) => self.note_gone(execution, false),
                // The driver compares its questions with the scheduler's when it takes the list.
                QueuedAction::QuestionsDropped => drop(self.dropped.get_or_insert_default()),
                QueuedAction::Wait => {
                    // The wait begins with the batch that left nothing to do, not when the driver learns of
                    // it (S32).
                    self.active.pause(self.now);
                    self.queue_effect(EffectKind::Wait);
                }
                // The driver reads the end from the state, and knows which batches it applied.
                QueuedAction::Report(_) => {}
            }
        }
        *work > 0
    }

    /// Queues an effect. It begins once the store has the journal up to the present end.
    #[inline]
    pub(super) fn queue_effect(&mut self, begins: EffectKind) {
        let has_run = matches!(&begins, EffectKind::Execution(start)
            if self.lives.are_known() && self.has_run_before(start));
        let begins = if has_run { begins.again() } else { begins };
        self.effects.push_back(Effect { after: self.position, begins });
    }

    /// Takes the oldest effect that is still wanted, if the store has the journal up to its position.
    /// Discards unwanted effects on the way. `written` is `None` without a store.
    pub(super) fn next_effect(&mut self, written: Option<Position>) -> Option<EffectKind> {
        if self.begins_nothing() { None } else { self.effects.next(written, &self.scheduler) }
    }

    /// Whether effects are queued, whether or not the store has what they follow from.
    #[inline]
    pub(super) fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Whether there is still a reason to begin the effect.
    pub(super) fn is_wanted(&self, begins: &EffectKind) -> bool {
        begins.is_wanted(&self.scheduler)
    }

    /// Takes the executions that the scheduler dropped since the last call; `Some` also if it withdrew
    /// questions only.
    pub(super) fn take_dropped(&mut self) -> Option<Vec<ExecutionId>> {
        self.dropped.take()
    }

    /// Takes the oldest gather that `advance` logged and the driver has not journaled: a batch of its own.
    pub(super) fn take_derived(&mut self) -> Option<Seq> {
        self.derived.pop_front()
    }

    /// Logs the gather of a settled fan-out: each branch with its item, its events and its failure (S48).
    fn gather(&mut self, entry: Entry, group: &GroupSummary) {
        let mut branches = Vec::with_capacity(group.branches.len());
        for branch in &group.branches {
            let failure = branch.failures.first().and_then(|execution| self.branch_failure(*execution));
            // A gather has one failure of a branch, the first; the others are in the report only.
            self.failures.forget(&branch.failures);
            branches.extend(self.log.gathered(branch, failure));
        }
        let event = AnyEvent::from_erased(Arc::new(Gathered::new(branches)));
        self.log.append(self.scheduler.table(), entry, event, Cause::Outside, self.now);
        self.derived.push_back(entry.seq);
        self.position = self.position.after(1);
    }

    /// Logs the failure of the execution that opened a failed fan-out, with every error in its text (S60).
    fn fan_out_failed(&mut self, failed: &FanOutFailure) {
        let FanOutFailure { entry, by, ref failures } = *failed;
        let first = failures.first().and_then(|execution| self.failure_of(*execution));
        let class = first.map_or(ErrorClass::Permanent, StepError::class);
        let each = failures.iter().filter_map(|execution| self.branch_failure(*execution));
        let each: Vec<String> = each.map(|failure| failure.to_string()).collect();
        let branches = failures.iter().filter_map(|execution| self.failed_branch(by, *execution)).collect();
        self.failures.forget(failures);
        let (Some(entry), Some(step)) = (entry, self.step_of(by)) else { return };
        let error = StepError::new(class, each.join("; "));
        let (name, attempts) = (Arc::clone(&self.table().step(step).name), self.trace.attempts_made(by));
        let event = AnyEvent::new(StepFailed::new(name, by, attempts, &error).in_branches(branches));
        self.trace.caught(by, entry.seq);
        self.log.append(self.scheduler.table(), entry, event, Cause::Failure(by), self.now);
        self.derived.push_back(entry.seq);
        self.position = self.position.after(1);
    }

    /// The error of an execution, unless a step caught it or a gather took it.
    pub(super) fn failure_of(&self, execution: ExecutionId) -> Option<&StepError> {
        self.failures.of(execution)
    }

    /// The step and the error of a precondition that failed.
    pub(super) fn precondition_failure(&self, candidate: CandidateId) -> Option<&(StepIndex, StepError)> {
        self.failures.of_precondition(candidate)
    }

    /// Removes the log from this sequence number on, and the commits of these executions, because the store
    /// did not take them. The run ends before them. The caller stops the run afterwards; until then the scheduler still
    /// counts the removed events, so no batch may come between.
    pub(super) fn retract(&mut self, from: Option<Seq>, executions: impl Iterator<Item = ExecutionId>) {
        executions.for_each(|execution| self.trace.retract(execution));
        if let Some(from) = from {
            self.log.retract(from);
            self.scheduler.retract(from);
            if let Some(rare) = &mut self.rare {
                rare.origins.retract(from);
            }
            // Executions that the removed events triggered have never begun, since effects wait for the
            // store.
            let scheduler = &self.scheduler;
            self.trace.unschedule(|id| scheduler.executions().get(id).is_some_and(|it| it.trigger >= from));
        }
    }

    /// The run resumes at this time, with its journal ending at `end`, which counts `RunResumed`. Effects begin once
    /// the store has that much, so that `RunResumed` fences off an earlier process before anything begins (S40).
    pub(super) fn restart(&mut self, end: Position, now: Duration) {
        self.position = end;
        let first = |effect: &Effect| {
            if let EffectKind::Execution(start) = &effect.begins { Some(start.execution) } else { None }
        };
        let unbegun = self.effects.iter().filter_map(first).collect();
        self.begin_life(now, &unbegun);
        self.mark_begun();
        // From here on the journal has the present table.
        self.lives.written_under(FxHashMap::default());
        self.effects.postpone(end);
    }

    /// The limits of the log and of the executions.
    pub(super) fn limits(&self) -> SchedulerLimits {
        self.scheduler.board().progress.limits
    }

    /// Replaces the limits.
    pub(super) fn limit(&mut self, limits: SchedulerLimits) {
        self.scheduler.limit(limits);
    }

    /// The step of an execution that the scheduler has started.
    pub(super) fn step_of(&self, execution: ExecutionId) -> Option<StepIndex> {
        self.scheduler.executions().get(execution).map(|execution| execution.step)
    }

    /// The start of an execution, as the scheduler decided it.
    pub(super) fn start_of(&self, execution: ExecutionId) -> Option<ExecutionStart> {
        self.scheduler.executions().get(execution).map(|entry| entry.start(execution))
    }

    /// Frees memory that the run needs only while there is something to do.
    pub(super) fn shrink(&mut self) {
        self.scheduler.shrink();
        self.effects.shrink();
    }
}
