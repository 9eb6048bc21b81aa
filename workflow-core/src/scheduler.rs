//! The scheduler: a pure state machine from facts to actions. It knows positions and types, never values;
//! it has no clock, no runtime, no locks and no I/O, and the same facts in the same order always give the
//! same actions. Who performs the actions, and where events are kept, is the run's business.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::id::{ExecutionId, ScopeId, Seq, TimerId};
use crate::output::FanOutPolicy;
use crate::table::{DependencyTable, EventIndex, FanOutIndex, StepIndex};

mod append;
mod arrivals;
mod at_once;
mod bind;
mod decision;
mod evaluate;
mod execution;
mod group;
mod parked;
mod prefixes;
mod recalled;
mod scope;
mod seen;
mod start;
mod timers;

pub use decision::{Decision, Verdict};
pub use group::{BranchSummary, GroupSummary};
pub use prefixes::Prefixes;
pub use timers::TimerEntry;

pub(crate) use at_once::AtOnce;
use evaluate::{Candidate, Cursor, Unevaluated};
pub(crate) use execution::{Full, Unbegun};
pub(crate) use parked::ParkedScheduler;
pub(crate) use start::{Inputs, Start, Wanted};

use execution::{Execution, StepTotals};
use group::{Group, GroupId};
use recalled::Recalled;
use scope::Scopes;

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
    /// The batch of the oldest unconfirmed [`Action::Append`] is in the log.
    Appended,
    /// A batch cannot be appended: the run ends here.
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
    /// The run was active for as long as it may (S32).
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
    /// Append this batch to the log, atomically, then tell [`Fact::Appended`].
    Append {
        /// Who caused it.
        cause: Cause,
        /// The events in order.
        entries: SmallVec<[Entry; 1]>,
        /// The timers that it sets, in order: those that are still [pending](Scheduler::timers) once it is in the
        /// log are told as [`Fact::TimerFired`] when they are due.
        timers: Vec<TimerEntry>,
    },
    /// Append the event that says that a fan-out is gathered, then tell [`Fact::Appended`].
    AppendGathered {
        /// The event.
        entry: Entry,
        /// What its branches left behind.
        group: GroupSummary,
    },
    /// Drop the execution: its branch was dropped (S49).
    DropExecution {
        /// Which.
        execution: ExecutionId,
    },
    /// Free what is kept for a settled scope (S50).
    FreeScope {
        /// Which.
        scope: ScopeId,
    },
    /// Refuse what the execution wants to commit: the run has ended (S28).
    RefuseCommit {
        /// Which.
        execution: ExecutionId,
    },
    /// Refuse what came from outside, or from a timer: the run has ended, or the request is not open, or the
    /// timer not pending (S33).
    RefuseReceived,
    /// Nothing can happen before something arrives from outside or a timer fires (S30).
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
    /// Not this time; it is asked again at the step's next trigger (S18).
    No,
    /// It failed, and with it the run (S18).
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
    /// One request, which closes by itself when its time has run out (S32). Its event type has to have one that
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
    /// It says that the execution failed: a step catches that (S29).
    Failure(ExecutionId),
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The stop event at this position is in the log (S28).
    Completed(Seq),
    /// These executions failed, and nothing takes their failure (S29).
    Failed(Vec<ExecutionId>),
    /// A precondition failed (S18).
    PreconditionFailed(CandidateId),
    /// Nothing runs, nothing is scheduled, and nothing that can arrive would make a step run (S30).
    Stalled,
    /// It was cancelled (S31).
    Cancelled,
    /// It was active for as long as it may (S32).
    TimedOut,
    /// The log holds as many events as it may.
    LogFull,
    /// The run had as many executions as it may, and another was due.
    TooManyExecutions,
    /// A batch could not be appended.
    AppendFailed,
}

/// What bounds one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulerLimits {
    /// The most executions at a time; the surplus waits in order. Default 1,024.
    pub concurrent_executions: usize,
    /// The most events in the log; the run then ends. Default 10,000,000.
    pub events: u64,
    /// The most executions of all steps together; the run ends when another is due. Default 100,000.
    pub executions: u64,
}

impl Default for SchedulerLimits {
    fn default() -> Self {
        Self { concurrent_executions: 1_024, events: 10_000_000, executions: 100_000 }
    }
}

/// What an execution comes of: the step that was evaluated, where, and by which event. There is one of each at most.
pub(crate) type Evaluated = (StepIndex, ScopeId, Seq);

/// The state of one run's scheduling.
///
/// Tell it facts with [`apply`](Self::apply), then perform every [`next_action`](Self::next_action).
/// Evaluation is lazy: an event is evaluated when the actions before it have been handed out.
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
/// scheduler.apply(Fact::Appended);
/// assert!(matches!(scheduler.next_action(), Some(Action::StartExecution { .. })));
/// assert_eq!(scheduler.next_action(), None);
/// # Ok::<(), workflow_core::TableError>(())
/// ```
#[derive(Debug)]
pub struct Scheduler {
    table: Arc<DependencyTable>,
    limits: SchedulerLimits,
    scopes: Scopes,
    groups: FxHashMap<GroupId, Group>,
    actions: VecDeque<Wanted>,
    /// Events of the log that were not evaluated yet, in order (S11).
    unevaluated: VecDeque<Unevaluated>,
    /// The event being evaluated, and where.
    cursor: Option<Cursor>,
    /// Batches handed out to be appended, oldest first.
    appending: VecDeque<append::Batch>,
    candidates: FxHashMap<CandidateId, Candidate>,
    executions: Vec<Execution>,
    /// The numbers that a journal tells of; none in a run that begins.
    recalled: Option<Box<Recalled>>,
    running: usize,
    /// Those of the running executions that can be dropped with their branches, each at the place that it knows.
    running_in_branches: Vec<ExecutionId>,
    waiting: usize,
    totals: Vec<StepTotals>,
    requests: BTreeMap<Seq, Box<append::OpenRequest>>,
    timers: BTreeMap<TimerId, TimerEntry>,
    /// Branches in which nothing was left to do, to be settled in order once every event is evaluated (S47). One may be
    /// there twice.
    settling: BinaryHeap<Reverse<ScopeId>>,
    decisions: Vec<Decision>,
    last_seq: u64,
    next_candidate: u64,
    next_group: u32,
    last_timer: u64,
    /// A failure that ends the run once the current trigger's other steps are evaluated (S18).
    failing: Option<CandidateId>,
    /// Whether a batch with a stop event was handed out: nothing is accepted after it (S28).
    stopping: bool,
    waits: bool,
    degraded: bool,
    end: Option<End>,
}

impl Scheduler {
    /// A scheduler with an empty log and the default limits.
    pub fn new(table: Arc<DependencyTable>) -> Self {
        Self::with_limits(table, SchedulerLimits::default())
    }

    /// A scheduler with an empty log.
    pub fn with_limits(table: Arc<DependencyTable>, limits: SchedulerLimits) -> Self {
        let totals = table.steps.iter().map(|_| StepTotals::default()).collect();
        Self::of(Scopes::new(&table), totals, table, limits)
    }

    /// What it has come to; one that knows no step and no event is left in its place.
    pub(crate) fn take(&mut self) -> Self {
        let hollow = Self::of(Scopes::default(), Vec::new(), Arc::clone(&self.table), self.limits);
        std::mem::replace(self, hollow)
    }

    fn of(
        scopes: Scopes,
        totals: Vec<StepTotals>,
        table: Arc<DependencyTable>,
        limits: SchedulerLimits,
    ) -> Self {
        Self {
            scopes,
            totals,
            table,
            limits,
            groups: FxHashMap::default(),
            actions: VecDeque::new(),
            unevaluated: VecDeque::new(),
            cursor: None,
            appending: VecDeque::new(),
            candidates: FxHashMap::default(),
            executions: Vec::new(),
            recalled: None,
            running: 0,
            running_in_branches: Vec::new(),
            waiting: 0,
            requests: BTreeMap::new(),
            timers: BTreeMap::new(),
            settling: BinaryHeap::new(),
            decisions: Vec::new(),
            last_seq: 0,
            next_candidate: 0,
            next_group: 0,
            last_timer: 0,
            failing: None,
            stopping: false,
            waits: false,
            degraded: false,
            end: None,
        }
    }

    /// Tells the scheduler what happened. Facts about executions or candidates that it does not know, or that
    /// are over, are ignored; once a stop event was handed out, commits and arrivals are answered with a
    /// refusal.
    pub fn apply(&mut self, fact: Fact) {
        self.waits = false;
        match fact {
            Fact::EventReceived { event } => self.receive(event),
            Fact::ReplyReceived { request } => self.receive_reply(request),
            Fact::TimerFired { timer } => self.fire(timer),
            Fact::Appended => self.confirm_append(),
            Fact::PreconditionAnswered { candidate, answer } => self.answer(candidate, answer),
            Fact::ExecutionSucceeded { execution, emissions } => self.succeed(execution, &emissions),
            Fact::ExecutionFailed { execution } => self.fail(execution),
            Fact::AppendFailed => self.finish(End::AppendFailed),
            // Once a stop event is on its way to the log, the run ends by it.
            Fact::CancelRequested | Fact::TimeRanOut if self.stopping => {}
            Fact::CancelRequested => self.finish(End::Cancelled),
            Fact::TimeRanOut => self.finish(End::TimedOut),
        }
    }

    /// What to do next; `None` until another fact is told. Amortised O(1) per evaluated step.
    pub fn next_action(&mut self) -> Option<Action> {
        let mut work = usize::MAX;
        Some(match self.next_within(&mut work)? {
            Wanted::Act(action) => action,
            Wanted::Start(start) => {
                let row = self.table.step(start.step);
                start.into_action(row)
            }
        })
    }

    /// The same within so many units of work, each of which is subtracted. `None` with nothing left of them says only
    /// that more work may be left: many events can be evaluated without an action.
    pub(crate) fn next_within(&mut self, work: &mut usize) -> Option<Wanted> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            if *work == 0 || self.refuses() || !self.advance() {
                return None;
            }
            *work -= 1;
        }
    }

    fn want(&mut self, action: Action) {
        self.actions.push_back(Wanted::Act(action));
    }

    /// One unit of work that may bring forth actions; `false` if there is none.
    fn advance(&mut self) -> bool {
        self.evaluate_next() || self.settle_next() || self.notice_quiescence()
    }

    /// S30. What can still arrive is looked at only here, where nothing is left to do.
    fn notice_quiescence(&mut self) -> bool {
        let busy = self.running + self.waiting + self.candidates.len() + self.appending.len() > 0;
        if busy || self.waits || self.last_seq == 0 {
            return false;
        }
        if !self.timers.is_empty() || self.can_go_on() {
            self.waits = true;
            self.want(Action::Wait);
        } else {
            self.finish(End::Stalled);
        }
        true
    }

    fn finish(&mut self, end: End) {
        if self.end.is_none() {
            self.close(end.clone());
            self.want(Action::Finish { end });
        }
    }

    /// From here on nothing is left to do but to refuse.
    fn close(&mut self, end: End) {
        self.end = Some(end);
        self.cursor = None;
        self.unevaluated.clear();
        self.actions.retain(|wanted| {
            matches!(wanted, Wanted::Act(Action::RefuseCommit { .. } | Action::RefuseReceived))
        });
    }

    /// How the run ended, if it did.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Whether a failure was handled on the way (S34).
    pub fn is_degraded(&self) -> bool {
        self.degraded
    }

    /// The position of the newest event handed out to be appended.
    pub fn last_seq(&self) -> Seq {
        Seq(self.last_seq)
    }

    /// Every evaluation of a step so far, in order, with what came of it.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// How many executions of the step were created, in all scopes.
    pub fn executions_of(&self, step: StepIndex) -> u64 {
        self.totals[step.get()].executions
    }

    /// How many events came after a fixed list of the step was full (S17).
    pub fn surplus_of(&self, step: StepIndex) -> u64 {
        self.totals[step.get()].surplus
    }

    /// Keeps no room for more: for one that waits.
    pub(crate) fn shrink(&mut self) {
        self.actions.shrink_to_fit();
        self.unevaluated.shrink_to_fit();
        self.appending.shrink_to_fit();
        self.executions.shrink_to_fit();
        self.decisions.shrink_to_fit();
    }

    /// Whether it has said that nothing can happen before something arrives, and nothing has.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// How many executions wait for their turn (S21).
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether there is nothing to be done before another fact is told, but for what follows from there being nothing.
    pub(crate) fn is_done(&self) -> bool {
        self.actions.is_empty()
            && self.cursor.is_none()
            && self.unevaluated.is_empty()
            && self.settling.is_empty()
            && !self.refuses()
    }

    /// Whether nothing runs, waits for its turn, or is asked.
    pub(crate) fn is_idle(&self) -> bool {
        self.running + self.waiting + self.candidates.len() == 0
    }

    /// Gives executions the numbers that a journal tells of, when it comes to them; others are given those between them
    /// and behind them.
    pub(crate) fn recall(&mut self, numbers: impl Iterator<Item = (Evaluated, ExecutionId)>) {
        // No run has more, whatever a journal says.
        let recalled = Recalled::new(numbers, self.limits.executions);
        self.executions.resize_with(recalled.last(), Execution::unknown);
        self.recalled = Some(Box::new(recalled));
    }

    /// Whether the execution was started and has neither ended nor been dropped.
    pub(crate) fn is_running(&self, execution: ExecutionId) -> bool {
        self.execution_at(execution).is_some_and(Execution::is_running)
    }

    /// The scope of a candidate whose precondition's answer is still wanted.
    pub(crate) fn scope_of(&self, candidate: CandidateId) -> Option<ScopeId> {
        self.candidates.get(&candidate).map(|candidate| candidate.scope)
    }

    /// Whether steps can still be evaluated in the scope.
    pub(crate) fn is_open(&self, scope: ScopeId) -> bool {
        self.scopes.get(scope).is_some()
    }

    /// The requests that are still open, oldest first: position and type.
    pub fn open_requests(&self) -> impl Iterator<Item = (Seq, EventIndex)> + '_ {
        self.requests.iter().map(|(seq, request)| (*seq, request.event))
    }

    /// How many requests are open.
    pub(crate) fn count_requests(&self) -> usize {
        self.requests.len()
    }

    /// The table it was made with.
    pub fn table(&self) -> &Arc<DependencyTable> {
        &self.table
    }
}
