//! The scheduler: a pure state machine from facts to actions. It knows positions and types, never values;
//! it has no clock, no runtime, no locks and no I/O, and the same facts in the same order always give the
//! same actions. Who performs the actions, and where events are kept, is the run's business.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::id::{ExecutionId, ScopeId, Seq, TimerId};
use crate::output::FanOutPolicy;
use crate::table::{DependencyTable, EventIndex, FanOutIndex, StepIndex};

mod actions;
mod arrivals;
mod awaited;
mod batch;
mod bind;
mod board;
mod candidates;
mod commit;
mod counts;
mod decision;
mod decisions;
mod evaluate;
mod executions;
mod group;
#[cfg(test)]
mod growth;
mod joins;
mod prefixes;
mod progress;
mod recalled;
#[cfg(test)]
mod sample;
mod scope;
mod seen;
mod snapshot;
mod start;
mod suspended;
mod sweep;

pub use awaited::TimerEntry;
pub use decision::{Decision, Verdict};
pub use group::{BranchSummary, GroupSummary};
pub use prefixes::Prefixes;

pub(crate) use actions::QueuedAction;
pub(crate) use board::Board;
pub(crate) use candidates::Candidate;
pub(crate) use commit::{Committed, Entered, Entries, Follower};
pub(crate) use executions::{Execution, Executions, Unbegun};
pub(crate) use start::{ExecutionStart, Inputs};
pub(crate) use suspended::SuspendedScheduler;

use arrivals::Arrivals;
use decisions::Decisions;
use evaluate::Evaluation;
use group::{GroupId, Groups};

/// Something that happened, told to the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fact {
    /// An event came from outside: the start event, or an external one.
    EventReceived {
        /// Its type.
        event: EventIndex,
    },
    /// The outside replied to the request at this position.
    ReplyReceived {
        /// The request.
        request: Seq,
    },
    /// The time has come that a timer was set for.
    TimerFired {
        /// The timer.
        timer: TimerId,
    },
    /// What is in the log cannot be kept: the run ends here.
    AppendFailed,
    /// A precondition answered.
    PreconditionAnswered {
        /// Whom it was asked for.
        candidate: CandidateId,
        /// What it said.
        answer: Answer,
    },
    /// An execution returned its events.
    ExecutionSucceeded {
        /// Which.
        execution: ExecutionId,
        /// What it wants to leave in the log, in order.
        emissions: SmallVec<[Emission; 1]>,
    },
    /// An execution failed for good.
    ExecutionFailed {
        /// Which.
        execution: ExecutionId,
    },
    /// The run was cancelled.
    CancelRequested,
    /// The run was active for as long as it may.
    TimeRanOut,
}

/// Something to be done, asked of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Ask the precondition of the candidate's step, then tell [`Fact::PreconditionAnswered`].
    AskPrecondition {
        /// For whom.
        candidate: CandidateId,
        /// The step.
        step: StepIndex,
        /// Where it was evaluated.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
        /// What each parameter of the step is bound to.
        binding: Binding,
    },
    /// Start the execution, then tell [`Fact::ExecutionSucceeded`] or [`Fact::ExecutionFailed`].
    StartExecution {
        /// Which.
        execution: ExecutionId,
        /// The step.
        step: StepIndex,
        /// Where it was evaluated.
        scope: ScopeId,
        /// The event that triggered it.
        trigger: Seq,
        /// What each parameter is bound to.
        binding: Binding,
    },
    /// This batch is in the log. What follows from it may be performed once it is kept.
    Append {
        /// Who caused it.
        cause: Cause,
        /// The events in order.
        entries: SmallVec<[Entry; 1]>,
        /// The timers that it sets, in order: those that are still [pending](Scheduler::timers) are told as
        /// [`Fact::TimerFired`] when they are due.
        timers: Vec<TimerEntry>,
    },
    /// The event that says that a fan-out is gathered is in the log.
    AppendGathered {
        /// The event.
        entry: Entry,
        /// What its branches left behind.
        group: GroupSummary,
    },
    /// Drop the execution: its branch was dropped.
    DropExecution {
        /// Which.
        execution: ExecutionId,
    },
    /// Free what is kept for a settled scope.
    FreeScope {
        /// Which.
        scope: ScopeId,
    },
    /// Refuse what the execution wants to commit: the run has ended.
    RefuseCommit {
        /// Which.
        execution: ExecutionId,
    },
    /// Refuse what came from outside, or from a timer: the run has ended, or the request is not open, or the
    /// timer not pending.
    RefuseReceived,
    /// Nothing can happen before something arrives from outside or a timer fires.
    Wait,
    /// End the run.
    Finish {
        /// How.
        end: End,
    },
}

/// A step that is ready and whose precondition is being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CandidateId(pub u64);

/// A precondition's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The step may run.
    Yes,
    /// Not this time; it is asked again at the step's next trigger.
    No,
    /// It failed, and with it the run.
    Failed,
}

/// What a parameter is bound to, per slot.
pub type Binding = SmallVec<[Bound; 2]>;

/// What one parameter is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Bound {
    /// No event: an injectable, or an optional input without one.
    Nothing,
    /// The event at this position.
    One(Seq),
    /// A prefix of each of these scopes' events of the input's types.
    List(Prefixes),
}

/// One entry of a batch that an execution wants to commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Emission {
    /// One event.
    Event(EventIndex),
    /// One event, when its time has come.
    Timer(EventIndex),
    /// One request, which closes by itself when its time has run out. Its event type has to have one that
    /// says so.
    Expiring(EventIndex),
    /// A branch per item.
    FanOut {
        /// Which output opens it.
        fan_out: FanOutIndex,
        /// How many items.
        items: u32,
        /// How many branches are open at a time, at most.
        concurrency: Option<NonZeroU32>,
        /// What a branch's failure means.
        policy: FanOutPolicy,
    },
}

/// One event of a batch, with its place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its position.
    pub seq: Seq,
    /// Its scope.
    pub scope: ScopeId,
    /// Its type.
    pub event: EventIndex,
}

/// What caused a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It came from outside.
    Outside,
    /// It is the reply to the request at this position.
    Reply(Seq),
    /// The request at this position expired.
    Expired(Seq),
    /// A timer fired that the execution has set.
    Timer {
        /// Which.
        timer: TimerId,
        /// Who has set it.
        execution: ExecutionId,
    },
    /// The execution committed it.
    Execution(ExecutionId),
    /// It says that the execution failed: a step catches that.
    Failure(ExecutionId),
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The stop event at this position is in the log.
    Completed(Seq),
    /// These executions failed, and nothing takes their failure.
    Failed(Vec<ExecutionId>),
    /// A precondition failed.
    PreconditionFailed(CandidateId),
    /// Nothing runs, nothing is scheduled, and nothing that can arrive would make a step run.
    Stalled,
    /// It was cancelled.
    Cancelled,
    /// It was active for as long as it may.
    TimedOut,
    /// The log holds as many events as it may.
    LogFull,
    /// The run had as many executions as it may, and another was due.
    TooManyExecutions,
    /// What was in the log could not be kept.
    AppendFailed,
}

/// What bounds one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulerLimits {
    /// The most events in the log; the run then ends. Default 10,000,000.
    pub events: u64,
    /// The most executions of all steps together; the run ends when another is due. Default 100,000.
    pub executions: u64,
}

impl Default for SchedulerLimits {
    fn default() -> Self {
        Self { events: 10_000_000, executions: 100_000 }
    }
}

/// What an execution comes of: the step that was evaluated, where, and by which event. There is one of each at most.
pub(crate) type Evaluated = (StepIndex, ScopeId, Seq);

/// The state of one run's scheduling: a function of the facts that it was told, in their order.
///
/// Tell it facts with [`apply`](Self::apply), then perform every [`next_action`](Self::next_action). Evaluation is lazy,
/// but what it comes to does not depend on when actions are asked for: a fact takes effect once the facts before it are
/// evaluated, branches are settled, and fan-outs gathered.
///
/// ```
/// use workflow_core::scheduler::{Action, Fact, Scheduler};
/// use workflow_core::{DependencyTable, EventDef, InputDef, OutputDef, Roles, StepDef};
///
/// let table = DependencyTable::builder("greeter")
///     .event(EventDef::new("Greet", Roles::NONE.start()))
///     .event(EventDef::new("Greeting", Roles::NONE.stop()))
///     .step(StepDef::new("greet").input(InputDef::one("Greet")).output(OutputDef::event("Greeting")))
///     .build()?;
/// let greet = table.event_named("Greet").unwrap();
/// let mut scheduler = Scheduler::new(table.into());
///
/// scheduler.apply(Fact::EventReceived { event: greet });
/// assert!(matches!(scheduler.next_action(), Some(Action::Append { .. })));
/// assert!(matches!(scheduler.next_action(), Some(Action::StartExecution { .. })));
/// assert_eq!(scheduler.next_action(), None);
/// # Ok::<(), workflow_core::TableError>(())
/// ```
#[derive(Debug)]
pub struct Scheduler {
    board: Board,
    evaluation: Evaluation,
    groups: Groups,
}

impl Scheduler {
    /// A scheduler with an empty log and the default limits.
    pub fn new(table: Arc<DependencyTable>) -> Self {
        Self::with_limits(table, SchedulerLimits::default())
    }

    /// A scheduler with an empty log.
    #[inline]
    pub fn with_limits(table: Arc<DependencyTable>, limits: SchedulerLimits) -> Self {
        let board = Board::new(table, limits);
        Self { board, evaluation: Evaluation::default(), groups: Groups::default() }
    }

    /// Tells the scheduler what happened. Facts about executions or candidates that it does not know, or that
    /// are over, are ignored; once the run has ended, commits and arrivals are answered with a refusal.
    pub fn apply(&mut self, fact: Fact) {
        // Comes to where nothing is left to do before this fact.
        while self.advance() {}
        let before = self.board.actions.len();
        let unreceived = Some(Action::RefuseReceived);
        let (entered, refusal) = match fact {
            Fact::EventReceived { event } => (self.receive(event).map(|it| (Cause::Outside, it)), unreceived),
            Fact::ReplyReceived { request } => {
                (self.receive_reply(request).map(|it| (Cause::Reply(request), it)), unreceived)
            }
            Fact::TimerFired { timer } => (self.fire(timer), unreceived),
            Fact::ExecutionSucceeded { execution, emissions } => match self.succeed(execution, &emissions) {
                Committed::Entered(entered) => (Some((Cause::Execution(execution), entered)), None),
                Committed::Refused => (None, Some(Action::RefuseCommit { execution })),
                Committed::Nothing => (None, None),
            },
            Fact::ExecutionFailed { execution } => {
                (self.fail(execution).map(|it| (Cause::Failure(execution), it)), None)
            }
            Fact::PreconditionAnswered { candidate, answer } => return self.answered(candidate, answer),
            Fact::AppendFailed => return self.finish(End::AppendFailed),
            Fact::CancelRequested => return self.finish(End::Cancelled),
            Fact::TimeRanOut => return self.finish(End::TimedOut),
        };
        let Board { actions, progress, .. } = &mut self.board;
        match entered {
            Some((cause, entered)) => actions.report(before, cause, entered, progress.end()),
            None => refusal.into_iter().for_each(|refusal| actions.say(refusal)),
        }
    }

    /// What to do next; `None` until another fact is told. Amortised O(1) per evaluated step.
    pub fn next_action(&mut self) -> Option<Action> {
        loop {
            let queued = self.next_within(&mut usize::MAX.clone())?;
            let action = queued.into_action(&self.board.table, &self.evaluation.candidates);
            if action.is_some() {
                return action;
            }
        }
    }

    /// The same within so many units of work, each of which is subtracted. `None` with nothing left of them says only
    /// that more work may be left: many events can be evaluated without an action.
    pub(crate) fn next_within(&mut self, work: &mut usize) -> Option<QueuedAction> {
        loop {
            if let Some(action) = self.board.actions.pop() {
                return Some(action);
            }
            if *work == 0 || !self.advance() {
                return None;
            }
            *work -= 1;
        }
    }

    /// One unit of work that may bring forth actions; `false` if there is none.
    fn advance(&mut self) -> bool {
        let Self { board, evaluation, groups } = self;
        !board.progress.has_ended()
            && (evaluation.evaluate_next(board)
                || groups.settle_next(evaluation, board)
                || self.notice_quiescence())
    }

    /// S30. What can still arrive is looked at only here, where nothing is left to do.
    fn notice_quiescence(&mut self) -> bool {
        if self.evaluation.is_busy(&self.board) || self.board.progress.waits {
            return false;
        }
        if self.board.awaited.timers().len() > 0 || Arrivals::of(self).can_go_on() {
            self.board.wait();
        } else {
            self.board.finish(End::Stalled);
        }
        true
    }

    /// The run ends, unless it has ended before.
    fn finish(&mut self, end: End) {
        if self.accept() {
            self.board.finish(end);
        }
    }

    /// Whether everything that follows from the facts so far was handed out.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        let Self { board, evaluation, .. } = self;
        let is_done = evaluation.is_done(board) && board.is_quiet();
        is_done && (evaluation.is_busy(board) || board.progress.waits) || board.progress.has_ended()
    }

    /// How the run ended, if it did.
    #[inline]
    pub fn end(&self) -> Option<&End> {
        self.board.progress.end()
    }

    /// Whether a failure was handled on the way.
    pub fn is_degraded(&self) -> bool {
        self.board.progress.degraded
    }

    /// The position of the newest event in the log.
    pub fn last_seq(&self) -> Seq {
        self.board.progress.last_seq()
    }

    /// Every evaluation of a step so far, in order, with its verdict.
    ///
    /// Evaluations that follow from others are not stored: those of an outer event in open branches where it makes
    /// no step run. The iterator derives them, in O(1) to O(log branches) each.
    pub fn decisions(&self) -> impl Iterator<Item = Decision> {
        Decisions::of(self)
    }

    /// How many executions of the step were created, in all scopes.
    pub fn executions_of(&self, step: StepIndex) -> u64 {
        self.board.executions.count_of(step)
    }

    /// How many events came after a fixed list of the step was full.
    pub fn surplus_of(&self, step: StepIndex) -> u64 {
        self.board.executions.surplus_of(step)
    }

    /// The requests that are still open, oldest first: position and type.
    pub fn open_requests(&self) -> impl ExactSizeIterator<Item = (Seq, EventIndex)> + '_ {
        self.board.awaited.requests().map(|(seq, request)| (seq, request.event))
    }

    /// The timers that are pending, in the order in which they were set.
    pub fn timers(&self) -> impl ExactSizeIterator<Item = &TimerEntry> {
        self.board.awaited.timers()
    }

    /// The table it was made with.
    #[inline]
    pub fn table(&self) -> &Arc<DependencyTable> {
        &self.board.table
    }

    /// What is in the run, and what is left to do in it.
    pub(crate) fn board(&self) -> &Board {
        &self.board
    }

    /// The executions so far.
    #[inline]
    pub(crate) fn executions(&self) -> &Executions {
        &self.board.executions
    }

    /// Whether the execution was started and has neither ended nor been dropped.
    #[inline]
    pub(crate) fn is_running(&self, execution: ExecutionId) -> bool {
        self.board.executions.get(execution).is_some_and(Execution::is_running)
    }

    /// The candidate, as long as its precondition's answer is wanted.
    pub(crate) fn asked(&self, candidate: CandidateId) -> Option<&Candidate> {
        self.evaluation.candidates.get(candidate)
    }

    /// Whether it has said that nothing can happen before something arrives, and nothing has.
    pub(crate) fn waits(&self) -> bool {
        self.board.progress.waits
    }

    /// The external events that would make a step run or end the run; with open branches, those that any step takes.
    /// O(external events) for the steps that take them.
    pub(crate) fn awaited_events(&self) -> Vec<EventIndex> {
        Arrivals::of(self).awaited_events()
    }

    /// From here on these hold.
    pub(crate) fn limit(&mut self, limits: SchedulerLimits) {
        self.board.progress.limits = limits;
    }

    /// Gives executions the numbers that a journal has, when it comes to them.
    pub(crate) fn recall(&mut self, numbers: impl Iterator<Item = (Evaluated, ExecutionId)>) {
        // No run has more, whatever a journal says.
        self.board.executions.recall(numbers, self.board.progress.limits.executions);
    }

    /// What is in the log from this position on is in no log after all: nothing came of it.
    pub(crate) fn retract(&mut self, from: Seq) {
        self.evaluation.retract(from);
    }

    /// Loses count of the surplus: a mistake that the replay check has to find.
    #[cfg(test)]
    pub(crate) fn forget_surplus(&mut self, step: StepIndex) {
        self.board.executions.forget_surplus(step);
    }
}
