//! A run's state: everything that follows from its journal, and nothing else. It has no runtime, no clock, no locks and
//! no I/O, so that a run that is driven, one that is read back from its journal, and one of which somebody asks for a
//! report come to the same state by the same function.
//!
//! ```text
//! batch ──apply──▶ scheduler ──▶ log, trace, timers
//!                      │
//!                   advance        evaluates events, settles branches, gathers fan-outs
//!                      ▼
//!                   effects        what to begin, each with the position of the journal that it follows from
//! ```
//!
//! [`RunState::apply`] lets a batch in, and [`RunState::advance`] logs the gathers that follow from it. Nothing else
//! appends to a log. What a batch leads to depends on the sequence of batches alone: each takes effect once everything
//! that follows from those before it is in the state. Whether a store has kept a batch is not known here. The driver
//! performs an effect once the store has the journal up to its position (S38).

#![expect(
    clippy::inline_always,
    reason = "every step goes through here: as one function its parts pass no values through memory"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::error::{BranchFailure, StepError};
use crate::event::{AnyEvent, Gathered};
use crate::failure::StepFailed;
use crate::id::{ChildRun, ExecutionId, Seq};
use crate::retry::NotRetried;
use crate::scheduler::{
    Answer, CandidateId, Cause, Committed, Emission, End, Entered, Entry, ExecutionStart, GroupSummary,
    QueuedAction, Scheduler, SchedulerLimits, SuspendedScheduler,
};
use crate::store::Position;
use crate::table::{DependencyTable, StepIndex};

mod active;
mod batch;
mod effects;
mod failures;
mod inherited;
mod log;
#[cfg(test)]
mod planted;
mod replay;
mod snapshot;
mod timers;
mod trace;

pub(super) use active::ActiveTime;
pub(super) use batch::{Applied, Batch, Returned, ReturnedBatch, Stop};
pub(super) use effects::{Begins, Effect, Effects};
pub(super) use log::{BranchRecord, Log, bound_input};
pub(super) use replay::{Contradiction, Replay, Replayed};
pub(super) use timers::{DueEvent, TimerQueue};
pub(super) use trace::{Trace, TraceEntry, TraceState};

use failures::Failures;
use log::SuspendedLog;
use trace::SuspendedTrace;

/// The state of a run where its journal has come to.
#[derive(Debug)]
pub(crate) struct RunState {
    pub(super) scheduler: Scheduler,
    pub(super) log: Log,
    pub(super) trace: Trace,
    pub(super) timers: TimerQueue,
    failures: Failures,
    /// The children that executions started, in order.
    pub(super) children: Vec<(ChildRun, SystemTime)>,
    pub(super) active: ActiveTime,
    pub(super) effects: Effects,
    /// The executions that were dropped since the driver asked, none of them where only questions were.
    dropped: Option<Vec<ExecutionId>>,
    /// Entries that followed from a batch by themselves and that nobody has journaled, oldest first.
    derived: VecDeque<Seq>,
    /// Where the journal ends that this is the state of.
    position: Position,
    /// The time of the last batch, from the beginning of the run.
    now: Duration,
}

/// The state of a run that waits for nothing but its handles, in little memory.
#[derive(Debug)]
pub(super) struct SuspendedState {
    scheduler: SuspendedScheduler,
    log: SuspendedLog,
    trace: SuspendedTrace,
    now: Duration,
    position: Position,
}

impl RunState {
    #[inline]
    pub(super) fn new(table: &Arc<DependencyTable>, limits: SchedulerLimits) -> Self {
        Self::of(Scheduler::with_limits(Arc::clone(table), limits))
    }

    #[inline]
    fn of(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            log: Log::default(),
            trace: Trace::default(),
            timers: TimerQueue::default(),
            failures: Failures::default(),
            children: Vec::new(),
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

    /// Where the journal ends that this is the state of.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// The journal has records that change no state.
    pub(super) fn skip(&mut self, records: usize) {
        self.position = self.position.after(records);
    }

    /// How the run ended, if it did.
    #[inline]
    pub(super) fn end(&self) -> Option<&End> {
        self.scheduler.end()
    }

    /// Takes a batch in, at this time from the beginning of the run. What follows from the batches before is completed
    /// first.
    pub(super) fn apply(&mut self, batch: Batch, at: Duration) -> Applied {
        if !self.scheduler.is_settled() {
            self.advance(&mut usize::MAX.clone());
        }
        // A child's record has the time at which it was started, and not that of a batch.
        // And a run that waits has nothing to do by it.
        if !matches!(batch, Batch::ChildStarted { .. }) {
            self.now = self.now.max(at);
            self.active.resume(self.now);
        }
        match batch {
            Batch::Succeeded { execution, returned } => self.succeed(execution, returned),
            Batch::Received { event, index } => match self.scheduler.receive(index) {
                Some(entered) => self.enter_one(Cause::Outside, entered, event),
                None => Applied::Refused,
            },
            Batch::Replied { request, event } => match self.scheduler.receive_reply(request) {
                Some(entered) => self.enter_one(Cause::Reply(request), entered, event),
                None => Applied::Refused,
            },
            Batch::Fired { timer, event } => match self.scheduler.fire(timer) {
                Some((cause, entered)) => {
                    self.timers.fired(timer);
                    self.enter_one(cause, entered, event)
                }
                None => Applied::Refused,
            },
            Batch::Failed { execution, error, not_retried } => self.fail(execution, error, not_retried),
            Batch::Answered { candidate, step, answer } => self.answer(candidate, step, answer),
            Batch::Retried { execution, .. }
                if !self.scheduler.is_running(execution) || self.end().is_some() =>
            {
                Applied::Refused
            }
            Batch::Retried { execution, failed } => {
                self.trace.attempted_again(execution);
                self.trace.failed_attempt(execution, self.now, failed);
                self.note(1)
            }
            // A child's own journal may name an execution that never was, or one of another step; and a child may join
            // once the run's end is written.
            Batch::ChildStarted { child, .. } if !self.has_started(&child) || self.has_completed() => {
                Applied::Refused
            }
            Batch::ChildStarted { child, at } => {
                self.children.push((child, at));
                self.note(1)
            }
            Batch::Stopped(_) if self.end().is_some() => Applied::Refused,
            Batch::Stopped(stop) => {
                self.scheduler.apply(stop.into());
                self.note(0)
            }
        }
    }

    /// Whether the child's execution is one of the step that it names.
    fn has_started(&self, child: &ChildRun) -> bool {
        let step = self.step_of(child.execution);
        step.is_some_and(|step| self.table().step(step).name == child.step)
    }

    /// So many records are in the journal and leave no event.
    #[inline]
    fn note(&mut self, records: usize) -> Applied {
        self.position = self.position.after(records);
        Applied::WithoutEvent
    }

    /// One event enters the log, by itself or behind a record of what it follows from.
    #[inline(always)]
    fn enter_one(&mut self, cause: Cause, entered: Entered, event: AnyEvent) -> Applied {
        if let Entered::One(entry, _) = entered {
            self.log.append(self.scheduler.table(), entry, event, cause, self.now);
        }
        let caused = usize::from(matches!(cause, Cause::Failure(_) | Cause::Execution(_)));
        self.enter(entered, caused)
    }

    /// A batch is in the log, behind so many other records.
    #[inline(always)]
    fn enter(&mut self, entered: Entered, before: usize) -> Applied {
        let ended = usize::from(self.has_completed());
        let records = before + entered.events().len() + entered.timers().len() + ended;
        self.position = self.position.after(records);
        if let Entered::One(_, Some(next)) = &entered {
            self.trace.schedule(next.execution, self.now);
        }
        Applied::Entered(entered)
    }

    #[inline]
    fn has_completed(&self) -> bool {
        matches!(self.scheduler.end(), Some(End::Completed(_)))
    }

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
        let Committed::Entered(entered) = self.scheduler.succeed(execution, emissions) else {
            return Applied::Refused;
        };
        self.trace.committed(execution, self.now, entered.events());
        match returned {
            // It is of the scope of its execution.
            Returned::Event(_, event) => self.enter_one(Cause::Execution(execution), entered, event),
            Returned::Nothing => self.enter(entered, 1),
            Returned::Many(many) => self.enter_many(execution, entered, *many),
        }
    }

    fn enter_many(&mut self, execution: ExecutionId, entered: Entered, many: ReturnedBatch) -> Applied {
        let ReturnedBatch { events, timers, .. } = many;
        debug_assert_eq!(events.len(), entered.events().len(), "a batch is logged as it was committed");
        let cause = Cause::Execution(execution);
        let scope = self.scheduler.executions().get(execution).map(|execution| execution.scope);
        for (entry, event) in entered.events().iter().zip(events) {
            // An entry outside of its execution's scope is the item of a branch.
            if let Some(parent) = scope.filter(|scope| *scope != entry.scope) {
                let Entry { seq, scope, .. } = *entry;
                self.log.branch(BranchRecord { scope, parent, item: seq, opener: execution });
            }
            self.log.append(self.scheduler.table(), *entry, event, cause, self.now);
        }
        for (entry, timer) in entered.timers().iter().zip(timers) {
            // One that is not pending was dropped with its branch, or with the run.
            if self.scheduler.board().awaited.timer(entry.timer).is_some() {
                self.timers.insert(entry.timer, timer, &self.scheduler);
            }
        }
        self.enter(entered, 1)
    }

    fn fail(&mut self, execution: ExecutionId, error: StepError, not_retried: NotRetried) -> Applied {
        let Some(step) = self.step_of(execution) else { return Applied::Refused };
        if !self.scheduler.is_running(execution) {
            return Applied::Refused;
        }
        // One that comes after the end is in the report and in no journal.
        if self.end().is_some() {
            self.trace.failed(execution, self.now, &error, not_retried);
            return Applied::Refused;
        }
        // The attempt that failed had begun, unless it was only waited for.
        if not_retried != NotRetried::Clock {
            self.trace.attempted_again(execution);
        }
        self.trace.failed(execution, self.now, &error, not_retried);
        let row = self.table().step(step);
        let (is_caught, is_kept) = (row.failed.is_some(), !row.policy.continue_on_error);
        // What a step catches is an event (S29).
        let failure = is_caught.then(|| {
            let (step, attempts) = (Arc::clone(&row.name), self.trace.attempts_made(execution));
            AnyEvent::new(StepFailed::new(step, execution, attempts, &error))
        });
        if is_kept && !is_caught {
            self.failures.insert(execution, error);
        }
        match (self.scheduler.fail(execution), failure) {
            (Some(entered), Some(failure)) => {
                if let Some(entry) = entered.events().first() {
                    self.trace.caught(execution, entry.seq);
                }
                self.enter_one(Cause::Failure(execution), entered, failure)
            }
            _ => self.note(1),
        }
    }

    fn answer(
        &mut self,
        candidate: CandidateId,
        step: StepIndex,
        answer: Result<bool, StepError>,
    ) -> Applied {
        if self.scheduler.asked(candidate).is_none() || self.end().is_some() {
            return Applied::Refused;
        }
        let (answer, records) = match answer {
            Ok(true) => (Answer::Yes, 1),
            Ok(false) => (Answer::No, 1),
            // Of it the journal has the end of the run.
            Err(error) => {
                self.failures.insert_precondition(candidate, step, error);
                (Answer::Failed, 0)
            }
        };
        self.scheduler.answered(candidate, answer);
        self.note(records)
    }

    /// Completes what follows from the batches so far, within so many units of work, each of which is subtracted. Says
    /// whether all of it is complete.
    pub(super) fn advance(&mut self, work: &mut usize) -> bool {
        while let Some(queued) = self.scheduler.next_within(work) {
            match queued {
                QueuedAction::Start(start) => {
                    self.trace.schedule(start.execution, self.now);
                    self.queue_effect(Begins::Execution(start));
                }
                QueuedAction::Ask(candidate) => self.queue_effect(Begins::Question(candidate)),
                QueuedAction::Gathered(gathered) => self.gather(gathered.0, &gathered.1),
                QueuedAction::Free(scope) => self.log.free(scope),
                QueuedAction::Drop(execution) => {
                    self.trace.dropped(execution, self.now);
                    self.dropped.get_or_insert_default().push(execution);
                }
                QueuedAction::Unask => drop(self.dropped.get_or_insert_default()),
                QueuedAction::Wait => {
                    self.active.rest(self.now);
                    self.queue_effect(Begins::Wait);
                }
                // The driver reads the end from the state, and has what it applied.
                QueuedAction::Said(_) => {}
            }
        }
        *work > 0
    }

    /// Queues an effect that begins once the store has the journal up to its present end.
    pub(super) fn queue_effect(&mut self, begins: Begins) {
        self.effects.push_back(Effect { after: self.position, begins });
    }

    /// What is to be begun next, if the store has the journal that far. What is not wanted any more is left out.
    pub(super) fn next_effect(&mut self, written: Option<Position>) -> Option<Begins> {
        if self.end().is_some() { None } else { self.effects.next(written, &self.scheduler) }
    }

    /// Whether something is to be begun, be it now or later.
    #[inline]
    pub(super) fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    pub(super) fn is_wanted(&self, begins: &Begins) -> bool {
        begins.is_wanted(&self.scheduler)
    }

    /// What was dropped since this was asked last: executions, and whether preconditions may be among it.
    pub(super) fn take_dropped(&mut self) -> Option<Vec<ExecutionId>> {
        self.dropped.take()
    }

    /// Entries that followed by themselves since this was asked last, in order: each is a batch of its own.
    pub(super) fn take_derived(&mut self) -> Option<Seq> {
        self.derived.pop_front()
    }

    fn gather(&mut self, entry: Entry, group: &GroupSummary) {
        let mut branches = Vec::with_capacity(group.branches.len());
        for branch in &group.branches {
            let failure = branch.failures.first().and_then(|execution| self.branch_failure(*execution));
            self.failures.forget(&branch.failures);
            branches.extend(self.log.gathered(branch, failure));
        }
        let event = AnyEvent::from_erased(Arc::new(Gathered { branches }));
        self.log.append(self.scheduler.table(), entry, event, Cause::Outside, self.now);
        self.derived.push_back(entry.seq);
        self.position = self.position.after(1);
    }

    pub(super) fn branch_failure(&self, execution: ExecutionId) -> Option<BranchFailure> {
        let step = self.step_of(execution)?;
        let error = self.failure_of(execution)?.clone();
        Some(BranchFailure { step: Arc::clone(&self.table().step(step).name), error })
    }

    /// What an execution failed with, unless the failure was caught or gathered.
    pub(super) fn failure_of(&self, execution: ExecutionId) -> Option<&StepError> {
        self.failures.of(execution)
    }

    /// What a precondition failed with.
    pub(super) fn precondition_failure(&self, candidate: CandidateId) -> Option<&(StepIndex, StepError)> {
        self.failures.of_precondition(candidate)
    }

    /// The store did not take what is in the log from this position on, and what these executions committed: the run
    /// ends before that.
    pub(super) fn retract(&mut self, from: Option<Seq>, executions: impl Iterator<Item = ExecutionId>) {
        executions.for_each(|execution| self.trace.retract(execution));
        if let Some(from) = from {
            self.log.retract(from);
            self.scheduler.retract(from);
            let scheduler = &self.scheduler;
            self.trace.unschedule(|id| scheduler.executions().get(id).is_some_and(|it| it.trigger >= from));
        }
    }

    /// The run goes on here at this time, with this much in its journal.
    pub(super) fn restart(&mut self, end: Position, now: Duration) {
        self.position = end;
        self.active.restart(self.now, now);
        self.now = self.now.max(now);
        self.effects.postpone(end);
    }

    /// What bounds the run.
    pub(super) fn limits(&self) -> SchedulerLimits {
        self.scheduler.board().progress.limits
    }

    /// From here on these bound the run.
    pub(super) fn limit(&mut self, limits: SchedulerLimits) {
        self.scheduler.limit(limits);
    }

    /// The execution's step, once it is due.
    pub(super) fn step_of(&self, execution: ExecutionId) -> Option<StepIndex> {
        self.scheduler.executions().get(execution).map(|execution| execution.step)
    }

    /// The execution as it was scheduled.
    pub(super) fn start_of(&self, execution: ExecutionId) -> Option<ExecutionStart> {
        self.scheduler.executions().get(execution).map(|entry| entry.start(execution))
    }

    /// Whether it can be suspended: it waits for its handles and for nothing else. O(1).
    pub(super) fn can_suspend(&self) -> bool {
        self.scheduler.can_suspend()
            && self.log.can_suspend()
            && self.trace.can_suspend()
            && self.timers.is_empty()
            && self.failures.is_empty()
            && self.children.is_empty()
            && self.effects.is_empty()
            && self.derived.is_empty()
    }

    pub(super) fn suspend(&mut self) -> SuspendedState {
        SuspendedState {
            scheduler: SuspendedScheduler::of(&mut self.scheduler),
            log: self.log.suspend(),
            trace: self.trace.suspend(),
            now: self.now,
            position: self.position,
        }
    }

    /// Gives back the memory that it needs only while there is something to do.
    pub(super) fn shrink(&mut self) {
        self.scheduler.shrink();
        self.effects.shrink();
    }
}

impl SuspendedState {
    /// The state as it was.
    pub(super) fn restore(self, table: Arc<DependencyTable>) -> RunState {
        let Self { scheduler, log, trace, now, position } = self;
        RunState {
            log: Log::restore(log),
            trace: Trace::restore(trace),
            now,
            position,
            ..RunState::of(scheduler.restore(table))
        }
    }
}
