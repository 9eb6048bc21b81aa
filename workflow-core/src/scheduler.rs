//! The scheduler: a pure state machine that turns facts into actions.
//!
//! The module owns the rules: which step runs at which event, with which inputs, in which branch, and how a
//! run ends. The scheduler knows positions and types of events, never their values. The scheduler has no
//! clock, no runtime, no locks and no I/O. The same facts in the same order always give the same actions. The
//! run performs the actions and stores the events.
//!
//! ```text
//!          fact ──▶ Scheduler::apply ──▶ batch in the log
//!                                           │
//!    ┌──────────────────────────────────────┘
//!    ▼
//!  Evaluation   one event, one step at a time: ready? which inputs? executed before?
//!    ▼
//!  Groups       settle branches in which nothing is left, gather fan-outs
//!    ▼
//!  quiescence   nothing runs and nothing is left: wait or end
//!    │
//!    └──▶ actions ──▶ Scheduler::next_action
//! ```
//!
//! The three parts share their state. Their work has an order: all
//! events are evaluated before a branch is settled, and all branches are settled before the run can wait or
//! stall. `apply` completes this work for the facts before it takes a new one. So the result does not depend
//! on when the caller asks for actions.
//!
//! An example, of a step `join` that takes the start event `A` and the external event `B`:
//!
//! | fact | effect on the log | actions |
//! | --- | --- | --- |
//! | `EventReceived(A)` | 1: `A` | `Append`, then `Wait`: `join` lacks `B` |
//! | `EventReceived(B)` | 2: `B` | `Append`, `StartExecution` of `join` with 1 and 2 |
//! | `ExecutionSucceeded`, emits a stop event | 3: the stop event | `Append`, `Finish` |

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::error::Excess;
use crate::id::{ExecutionId, ScopeId, Seq, TimerId};
use crate::table::{DependencyTable, EventIndex, FanOutIndex, StepIndex};

mod actions;
mod arrivals;
mod awaited;
mod batch;
mod bind;
mod board;
mod by_scope;
mod candidates;
mod clean_up;
mod commit;
mod counts;
mod decision;
mod decisions;
mod evaluate;
mod excess;
mod executions;
mod group;
#[cfg(test)]
mod cost_tests;
mod joins;
mod pause;
mod prefixes;
mod progress;
mod recorded_numbers;
mod redrive;
#[cfg(test)]
mod fixtures;
mod scope;
mod row_states;
mod snapshot;
mod start;
mod suspended;
mod sweep;

pub(crate) use awaited::RequestChange;
pub use awaited::TimerEntry;
pub use decision::{Decision, Verdict};
pub use group::{BranchSummary, FanOutTerms, GroupSummary};
pub use prefixes::Prefixes;

pub(crate) use actions::{FanOutFailure, QueuedAction};
pub(crate) use board::Board;
pub(crate) use candidates::Candidate;
pub(crate) use clean_up::{CleanUp, CleanUpState, CleanUpStep as PlannedStep, OpenStep};
pub(crate) use commit::{BatchEntries, CommitOutcome, DirectStart, LoggedBatch};
pub(crate) use executions::{Execution, Executions, QueuedExecution};
pub(crate) use start::{ExecutionStart, Inputs};
pub(crate) use suspended::SuspendedScheduler;

use arrivals::Arrivals;
use decisions::Decisions;
use evaluate::Evaluation;
use group::{GroupId, Groups};

/// Something that happened: the input of [`Scheduler::apply`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fact {
    /// An event came from outside: the start event or an external one.
    EventReceived {
        /// The type of the event.
        event: EventIndex,
    },
    /// A reply to an open request came from outside.
    ReplyReceived {
        /// The position of the request.
        request: Seq,
    },
    /// A timer is due.
    TimerFired {
        /// The number of the timer, from [`TimerEntry`].
        timer: TimerId,
    },
    /// The store refused a batch that is in the log: the run ends.
    AppendFailed,
    /// A precondition answered.
    PreconditionAnswered {
        /// The candidate of [`Action::AskPrecondition`].
        candidate: CandidateId,
        /// The answer of the precondition.
        answer: Answer,
    },
    /// An execution returned successfully.
    ExecutionSucceeded {
        /// The execution of [`Action::StartExecution`].
        execution: ExecutionId,
        /// The emissions of the execution, in order.
        emissions: SmallVec<[Emission; 1]>,
    },
    /// An execution failed and is not retried any more.
    ExecutionFailed {
        /// The execution of [`Action::StartExecution`].
        execution: ExecutionId,
    },
    /// A caller cancelled the run.
    CancelRequested,
    /// The active time of the run reached its limit.
    TimeRanOut,
    /// After [`Action::CleanUp`]: what ran is dropped and the run's children have ended, so clean-up steps can run.
    CleanUpStarted,
    /// The time for clean-up is over: what runs is dropped, and the rest does not run.
    CleanUpStopped,
    /// A caller paused the run: nothing begins until [`Unpaused`](Self::Unpaused). Changes nothing if the run is paused
    /// already, or has ended.
    Paused,
    /// A caller unpaused the run: deferred questions are asked, and then deferred executions start. Changes nothing if the run is
    /// not paused.
    Unpaused,
    /// The run continues although it had ended. Its open executions and preconditions begin anew, with those
    /// that failed. Ignored if the run completed, reached one of its limits, or could not be stored.
    Redriven,
}

/// Something that the run has to do: the output of [`Scheduler::next_action`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Ask the precondition of a step, then apply [`Fact::PreconditionAnswered`].
    AskPrecondition {
        /// The candidate, to be repeated in the fact.
        candidate: CandidateId,
        /// The step that has the precondition.
        step: StepIndex,
        /// The scope in which the step was evaluated.
        scope: ScopeId,
        /// The position of the event that triggered the step.
        trigger: Seq,
        /// The binding of the step's parameters.
        binding: Binding,
    },
    /// Start the execution, then apply [`Fact::ExecutionSucceeded`] or [`Fact::ExecutionFailed`].
    StartExecution {
        /// The execution, to be repeated in the fact.
        execution: ExecutionId,
        /// The step to call.
        step: StepIndex,
        /// The scope in which the step was evaluated.
        scope: ScopeId,
        /// The position of the event that triggered the step.
        trigger: Seq,
        /// The binding of the step's parameters.
        binding: Binding,
    },
    /// A batch entered the log. With a store, actions that follow wait until the store has it.
    Append {
        /// The cause of the batch.
        cause: Cause,
        /// The events, in order of position.
        entries: SmallVec<[Entry; 1]>,
        /// The timers that the batch sets, in order. Those that are still [pending](Scheduler::timers) when
        /// they are due have to be applied as [`Fact::TimerFired`].
        timers: Vec<TimerEntry>,
    },
    /// The internal event that completes a fan-out entered the log.
    AppendGathered {
        /// The event with its position and scope.
        entry: Entry,
        /// The results of the branches, for the `Gather` input.
        group: GroupSummary,
    },
    /// Drop the execution: its branch was dropped.
    DropExecution {
        /// The id of the execution.
        execution: ExecutionId,
    },
    /// Free the state of a branch that is settled or dropped.
    FreeScope {
        /// The scope of the branch.
        scope: ScopeId,
    },
    /// Refuse the batch of the execution: the run has ended.
    RefuseCommit {
        /// The id of the execution.
        execution: ExecutionId,
    },
    /// Refuse an event, a reply or a timer: the run has ended, the request is not open, or the timer is not
    /// pending.
    RefuseReceived,
    /// Wait: the run continues with an event from outside or with a timer.
    Wait,
    /// The run has ended this way, and clean-up steps are to run. Drop all executions and questions, end the run's
    /// children, then apply [`Fact::CleanUpStarted`]. Nothing enters the log any more.
    CleanUp {
        /// How the run ends.
        end: End,
        /// The steps, in the order in which they run.
        steps: Vec<StepIndex>,
    },
    /// End the run. No step starts after this action.
    Finish {
        /// How the run ends.
        end: End,
    },
}

/// The number of one question to a precondition, unique in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CandidateId(pub u64);

/// The answer of a precondition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The step may run.
    Yes,
    /// The step does not run now. The precondition is asked again at the next trigger of the step.
    No,
    /// The precondition failed. The run ends.
    Failed,
}

/// The binding of a step: one entry per parameter, in the order of the parameters.
pub type Binding = SmallVec<[Bound; 2]>;

/// The binding of one parameter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Bound {
    /// No event: the parameter is injected, or optional and without an event.
    Nothing,
    /// The event at this position.
    One(Seq),
    /// The first events of the parameter's types, a number of them for each scope.
    List(Prefixes),
}

/// One item of the batch that an execution commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Emission {
    /// An event of this type.
    Event(EventIndex),
    /// A timer that logs an event of this type when it is due.
    Timer(EventIndex),
    /// A request of this type that expires. Its event type must declare the event that reports the expiry.
    Expiring(EventIndex),
    /// A fan-out: one branch per item.
    FanOut {
        /// The output that opens the fan-out.
        fan_out: FanOutIndex,
        /// The number of items, which may be 0.
        items: u32,
        /// The bound, the policy, how many branches are enough, and how many may fail.
        terms: FanOutTerms,
    },
}

/// One event of a batch, with its place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The position of the event.
    pub seq: Seq,
    /// The scope that the event belongs to.
    pub scope: ScopeId,
    /// The type of the event.
    pub event: EventIndex,
}

/// The cause of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A client sent the event.
    Outside,
    /// A client replied to the request at this position.
    Reply(Seq),
    /// The request at this position expired without a reply.
    Expired(Seq),
    /// A timer fired.
    Timer {
        /// The number of the timer.
        timer: TimerId,
        /// The execution that set the timer.
        execution: ExecutionId,
    },
    /// The execution committed the batch.
    Execution(ExecutionId),
    /// The execution failed, and a step catches that: the batch is the failure event.
    Failure(ExecutionId),
}

/// How a run ended, which only [`Fact::Redriven`] changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The stop event at this position entered the log.
    Completed(Seq),
    /// These executions failed, and no step catches their failure.
    Failed(Vec<ExecutionId>),
    /// The precondition of this candidate failed.
    PreconditionFailed(CandidateId),
    /// Nothing runs, and no event that can arrive would make a step run.
    Stalled,
    /// A caller cancelled the run.
    Cancelled,
    /// The active time of the run reached its limit.
    TimedOut,
    /// The log reached [`SchedulerLimits::events`].
    LogFull,
    /// The run reached [`SchedulerLimits::executions`], and another execution was due.
    TooManyExecutions,
    /// A batch has more events than [`SchedulerLimits::events`] leaves room for. None of it is in the log.
    TooManyEvents(Box<Excess>),
    /// The fan-outs of a batch have more items than [`SchedulerLimits::executions`] leaves executions. None of the
    /// batch is in the log.
    TooManyItems(Box<Excess>),
    /// The store refused a batch that was in the log.
    AppendFailed,
}

/// The bounds of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulerLimits {
    /// The most events in the log. The run ends where another one would enter. Default: 10,000,000.
    pub events: u64,
    /// The most executions of all steps together. The run ends where another one is due. Default: 100,000.
    pub executions: u64,
}

impl SchedulerLimits {
    /// Those of a replay: no journal has the limits of an engine.
    pub(crate) const NONE: Self = Self { events: u64::MAX, executions: u64::MAX };
}

impl Default for SchedulerLimits {
    fn default() -> Self {
        Self { events: 10_000_000, executions: 100_000 }
    }
}

/// Identifies one evaluation: the step, the scope in which it was evaluated, and the trigger. One evaluation
/// leads to at most one execution.
pub(crate) type EvaluationKey = (StepIndex, ScopeId, Seq);

/// The scheduling state of one run: a function of the applied facts and their order.
///
/// [`apply`](Self::apply) takes a fact, and [`next_action`](Self::next_action) returns what to do about it.
/// Evaluation is lazy. Nevertheless the results do not depend on when actions are taken: `apply` first
/// evaluates all events, settles all branches and gathers all fan-outs that follow from the facts before.
///
/// ```
/// use workflow_core::scheduler::{Action, Fact, Scheduler};
/// use workflow_core::signature::Roles;
/// use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, StepDef};
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
/// # Ok::<(), workflow_core::table::TableError>(())
/// ```
#[derive(Debug)]
pub struct Scheduler {
    /// The contents of the run. The two other parts read and change them.
    board: Board,
    /// Decides which steps run at the events that the board has.
    evaluation: Evaluation,
    /// The open fan-outs. They settle a branch only once the evaluation has nothing left.
    groups: Groups,
}

impl Scheduler {
    /// Creates a scheduler with an empty log and the default limits.
    pub fn new(table: Arc<DependencyTable>) -> Self {
        Self::with_limits(table, SchedulerLimits::default())
    }

    /// Creates a scheduler with an empty log.
    #[inline]
    pub fn with_limits(table: Arc<DependencyTable>, limits: SchedulerLimits) -> Self {
        let board = Board::new(table, limits);
        Self { board, evaluation: Evaluation::default(), groups: Groups::default() }
    }

    /// Whether to keep what only a redrive of this state needs. Forgets what is kept.
    #[inline]
    pub(crate) fn set_redrivable(&mut self, redrivable: bool) {
        self.board.progress.redrivable = redrivable;
        self.evaluation.forget_all_refused();
        self.groups.forget_kept(&mut self.board);
    }

    /// Whether everything is kept that a redrive of this state needs.
    #[inline]
    pub(crate) fn is_redrivable(&self) -> bool {
        self.board.progress.redrivable
    }

    /// Applies one fact, after completing everything that follows from the facts before.
    ///
    /// The scheduler ignores facts about executions and candidates that are unknown or over. After the run
    /// has ended, it answers commits, events, replies and timers with a refusing action.
    pub fn apply(&mut self, fact: Fact) {
        // Completes what follows from the facts before this one.
        while self.advance() {}
        // The actions behind this place follow from the fact. `report` puts the batch in front of them.
        let before = self.board.actions.len();
        // Each source of an event gets an answer. A late result has a refusal of its own, and a late failure
        // has none, since a failure has no events to refuse.
        let unreceived = Some(Action::RefuseReceived);
        let (entered, refusal) = match fact {
            Fact::EventReceived { event } => (self.receive(event).map(|it| (Cause::Outside, it)), unreceived),
            Fact::ReplyReceived { request } => {
                (self.receive_reply(request).map(|it| (Cause::Reply(request), it)), unreceived)
            }
            Fact::TimerFired { timer } => (self.fire(timer), unreceived),
            Fact::ExecutionSucceeded { execution, emissions } => match self.succeed(execution, &emissions) {
                CommitOutcome::Logged(entered) => (Some((Cause::Execution(execution), entered)), None),
                CommitOutcome::Refused => (None, Some(Action::RefuseCommit { execution })),
                CommitOutcome::Nothing => (None, None),
            },
            Fact::ExecutionFailed { execution } => {
                (self.fail(execution).map(|it| (Cause::Failure(execution), it)), None)
            }
            Fact::PreconditionAnswered { candidate, answer } => return self.answered(candidate, answer),
            Fact::AppendFailed => return self.finish(End::AppendFailed),
            Fact::CancelRequested => return self.finish(End::Cancelled),
            Fact::TimeRanOut => return self.finish(End::TimedOut),
            Fact::CleanUpStarted => {
                self.begin_clean_up(None);
                return;
            }
            Fact::CleanUpStopped => {
                self.stop_clean_up();
                return;
            }
            Fact::Paused => {
                self.pause(&[]);
                return;
            }
            Fact::Unpaused => return self.unpause(),
            Fact::Redriven => {
                let _ = self.redrive();
                return;
            }
        };
        let Board { actions, progress, .. } = &mut self.board;
        match entered {
            Some((cause, entered)) => actions.report(before, cause, entered, progress.end()),
            None => refusal.into_iter().for_each(|refusal| actions.say(refusal)),
        }
    }

    /// Returns the next action; `None` if all are taken until another fact is applied. Amortised O(1) per
    /// evaluated step.
    pub fn next_action(&mut self) -> Option<Action> {
        loop {
            // An entry without a public action is left out: its question was dropped, or it concerns the run
            // alone.
            let queued = self.next_within(&mut usize::MAX.clone())?;
            let action = queued.into_action(&self.board.table, &self.evaluation.candidates);
            if action.is_some() {
                return action;
            }
        }
    }

    /// Returns the next action within a bound: subtracts every unit of work from `work`, and returns `None`
    /// when nothing of it remains. More work may be left then, since many events can be evaluated without an
    /// action.
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

    /// Does one unit of work, which may queue actions. Returns `false` if there is none.
    /// The order of the three parts is a rule. A branch is settled only when no event is left to evaluate,
    /// since an evaluation may still give the branch work (S47). The run waits or stalls only when no branch
    /// is left to settle, since a gather may still make a step run (S30).
    fn advance(&mut self) -> bool {
        let Self { board, evaluation, groups } = self;
        if board.progress.has_ended() {
            return self.advance_clean_up();
        }
        evaluation.evaluate_next(board) || groups.settle_next(evaluation, board) || self.detect_quiescence()
    }

    /// Detects that nothing is left to do (S30). Events that can still arrive are examined only here, so they
    /// cost nothing while steps run.
    fn detect_quiescence(&mut self) -> bool {
        // A run that waits already gets no second `Wait`; only an arrival resets the flag. A paused one does not
        // wait: its deferred work is still to come, and whether it stalls is decided once it is unpaused (S61).
        let Board { progress, .. } = &self.board;
        if progress.waits || progress.paused || self.evaluation.is_busy(&self.board) {
            return false;
        }
        // A pending timer fires without help from outside, so the run waits for it.
        if self.board.awaited.timers().len() > 0 || Arrivals::of(self).can_progress() {
            self.board.wait();
        } else {
            self.board.finish(End::Stalled);
        }
        true
    }

    /// Ends the run, after completing what follows from the facts before.
    pub(crate) fn end_by(&mut self, end: End) {
        while self.advance() {}
        self.finish(end);
    }

    /// Ends the run, unless it has ended before.
    /// `accept` also ends the wait, so that no snapshot shows an ended run as a waiting one.
    fn finish(&mut self, end: End) {
        if self.accept() {
            self.board.finish(end);
        }
    }

    /// Whether all actions that follow from the facts so far were taken.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        // Without work the run is settled only after `detect_quiescence` has decided: an execution or a
        // question is open elsewhere, the run waits or is paused, or the run has ended.
        let Self { board, evaluation, .. } = self;
        let is_done = evaluation.is_done(board) && board.is_quiet();
        is_done
            && !board.progress.has_ended()
            && (evaluation.is_busy(board) || board.progress.waits || board.progress.paused)
            // The end leaves actions: drops, and the positions of gathers.
            || board.progress.has_ended() && board.actions.is_empty() && self.clean_up_is_settled()
    }

    /// How the run ended; `None` while it is open. Clean-up may still run.
    #[inline]
    pub fn end(&self) -> Option<&End> {
        self.board.progress.end()
    }

    /// Whether a failure was handled on the way: a step caught it, or its policy let the run continue.
    pub fn is_degraded(&self) -> bool {
        self.board.progress.degraded
    }

    /// The position of the newest event in the log; 0 before the first.
    pub fn last_seq(&self) -> Seq {
        self.board.progress.last_seq()
    }

    /// Every evaluation of a step so far, in order, with its verdict.
    ///
    /// For an event of an outer scope, only evaluations that differ from the previous one in the same branch
    /// are stored. The iterator derives the others, in O(1) to O(log branches) each.
    pub fn decisions(&self) -> impl Iterator<Item = Decision> {
        Decisions::of(self)
    }

    /// The number of executions of the step so far, in all scopes.
    pub fn executions_of(&self, step: StepIndex) -> u64 {
        self.board.executions.count_of(step)
    }

    /// The number of events that came after a fixed list of the step was full.
    pub fn surplus_of(&self, step: StepIndex) -> u64 {
        self.board.executions.surplus_of(step)
    }

    /// The open requests, oldest first: position and type.
    pub fn open_requests(&self) -> impl ExactSizeIterator<Item = (Seq, EventIndex)> + '_ {
        self.board.awaited.requests().map(|(seq, request)| (seq, request.event))
    }

    /// Notes each change to a request from here on.
    pub(crate) fn note_request_changes(&mut self) {
        self.board.awaited.note_changes();
    }

    /// The changes to requests since the last call; `None` if they are not noted.
    pub(crate) fn take_request_changes(&mut self) -> Option<Vec<RequestChange>> {
        self.board.awaited.take_changes()
    }

    /// The pending timers, in the order in which they were set.
    pub fn timers(&self) -> impl ExactSizeIterator<Item = &TimerEntry> {
        self.board.awaited.timers()
    }

    /// The table of the workflow.
    #[inline]
    pub fn table(&self) -> &Arc<DependencyTable> {
        &self.board.table
    }

    /// The state that the parts of the scheduler share.
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

    /// The candidate, as long as its precondition may still answer.
    pub(crate) fn asked(&self, candidate: CandidateId) -> Option<&Candidate> {
        self.evaluation.candidates.get(candidate)
    }

    /// Whether the last action was [`Action::Wait`] and nothing has arrived since.
    pub(crate) fn waits(&self) -> bool {
        self.board.progress.waits
    }

    /// The external events that would make a step run or end the run. With open branches, all external events
    /// that any step takes. O(external events · steps that take them).
    pub(crate) fn awaited_events(&self) -> Vec<EventIndex> {
        Arrivals::of(self).awaited_events()
    }

    /// Replaces the limits from here on: a replay reads a journal without the limits of the engine.
    pub(crate) fn limit(&mut self, limits: SchedulerLimits) {
        self.board.progress.limits = limits;
    }

    /// Gives executions the numbers that the journal has for them, up to `most`. The numbers apply when the scheduler
    /// creates these executions again.
    pub(crate) fn reserve_numbers(
        &mut self,
        numbers: impl Iterator<Item = (EvaluationKey, ExecutionId)>,
        most: u64,
    ) {
        self.board.executions.reserve_numbers(numbers, most);
    }

    /// Removes the decisions about events from this position on: a batch that the store refused is not in the
    /// log.
    pub(crate) fn retract(&mut self, from: Seq) {
        self.evaluation.retract(from);
    }

    /// Resets the surplus of a step: a defect on purpose, which the replay check has to find.
    #[cfg(test)]
    pub(crate) fn forget_surplus(&mut self, step: StepIndex) {
        self.board.executions.forget_surplus(step);
    }
}
