//! Why each step of a run ran, and why it did not: made from the table, the log and the scheduler's
//! decisions, at any time. As a type, as text for people, and, through serde, as JSON.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::id::{ExecutionId, RunId, ScopeId, Seq};
use crate::input::InputKind;
use crate::retry::FailedAttempt;
use crate::run::{ExecutionOutcome, PendingTimer, RunStatus, WaitsFor};

mod failures;
mod missing;
mod past;
mod runaway;
mod source;
mod stall;
mod text;

pub(crate) use runaway::Runaway;

pub use stall::{IdleStep, Refusals, StallReport, TurnedDown};

pub(crate) use text::{enumerated, times};

/// Why each step of a run ran, or why it did not.
///
/// It prints for people and serialises for machines.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The run.
    pub run: RunId,
    /// The workflow.
    pub workflow: Arc<str>,
    /// Where the run stands.
    pub status: RunStatus,
    /// A row per step, in declaration order.
    pub steps: Vec<StepExplanation>,
    /// The stop events, and why none of them is in the log; empty for a run that completed.
    pub unmet_stops: Vec<Unmet>,
    /// What entered the log, or can be replied, and is taken by no step; a row per type.
    pub untaken: Vec<Untaken>,
    /// The steps that failed, in declaration order.
    pub failed: Vec<FailedStep>,
    /// The timers that are pending, in the order in which they will fire.
    pub timers: Vec<PendingTimer>,
    /// What can still arrive from outside, or could when the run stalled; a row per type.
    pub can_arrive: Vec<Arrival>,
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedStep {
    /// The step.
    pub step: Arc<str>,
    /// How often it ran.
    pub executions: u64,
    /// How often it failed.
    pub failures: u64,
    /// What it failed with, the last time.
    pub error: Arc<str>,
    /// The items of the branches in which it failed.
    pub branches: Vec<Cited>,
}

/// What can arrive from outside: an external event that a step takes, or the reply to an open request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Arrival {
    /// [`InputKind::Reply`] for the reply to a request.
    pub kind: InputKind,
    /// The wire name of the event, or of the request.
    pub event: Arc<str>,
}

/// An event that entered the log and is taken by no step, or whose reply is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Untaken {
    /// [`InputKind::Reply`] for a request whose reply is not taken.
    pub kind: InputKind,
    /// The last of its type.
    pub last: Cited,
}

/// Why one step ran, and why it did not.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StepExplanation {
    /// The step.
    pub step: Arc<str>,
    /// A row per execution that has begun.
    pub ran: Vec<WhyRan>,
    /// A row per trigger that led to no execution, or to one that has not begun.
    pub did_not_run: Vec<WhyNot>,
    /// What is missing now; only for a step that never ran. For a step with only optional inputs that is any
    /// one of them.
    pub missing: Vec<Unmet>,
}

/// An event as explanations name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cited {
    /// Its position.
    pub seq: Seq,
    /// Its wire name; for a gathered fan-out, or a failure, the name it has in a report's log.
    pub event: Arc<str>,
    /// For a gathered fan-out its item, which is what people know it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gathered: Option<Arc<str>>,
    /// The step that emitted it, or that fanned out; none for what came from outside, and for failures.
    pub producer: Option<Arc<str>>,
}

/// Why a step ran: what triggered it and what it was bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WhyRan {
    /// The execution.
    pub execution: ExecutionId,
    /// The scope it was evaluated in.
    pub scope: ScopeId,
    /// What triggered it.
    pub trigger: Cited,
    /// What each parameter was bound to.
    pub inputs: Vec<CitedInput>,
    /// The attempts that failed and were followed by another, or were to be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<FailedAttempt>,
    /// Of an execution that waits for another attempt, or ended while it did: when that attempt is, or was, due, from
    /// when the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Duration>,
    /// What came of it.
    pub outcome: ExecutionOutcome,
}

/// What one parameter was bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CitedInput {
    /// An injectable, or an optional input without an event.
    Nothing,
    /// One event.
    One(Cited),
    /// A list of so many events.
    List(u32),
}

/// Why a trigger led to no execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WhyNot {
    /// The event that triggered the evaluation.
    pub trigger: Cited,
    /// The scope it was evaluated in.
    pub scope: ScopeId,
    /// Why.
    pub reason: Reason,
}

/// Why a trigger led to no execution, or why that has not begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Required inputs were missing then.
    Missing(Vec<MissingInput>),
    /// None of the bound events was the branch's own: the evaluation further out covers it.
    Covered,
    /// This very combination was executed before.
    Duplicate,
    /// The step had had all its executions.
    LimitReached {
        /// How many it may have.
        limit: u32,
    },
    /// The run had had all its executions, and ended here.
    RunLimitReached,
    /// The precondition said no.
    Refused {
        /// Which.
        precondition: Arc<str>,
    },
    /// The precondition failed.
    PreconditionFailed {
        /// Which.
        precondition: Arc<str>,
    },
    /// The precondition had not answered.
    Asking {
        /// Which.
        precondition: Arc<str>,
    },
    /// The execution is due, and waits for its turn.
    Waiting {
        /// Which it will be.
        execution: ExecutionId,
        /// What it waits for.
        waits_for: WaitsFor,
    },
    /// The execution was due, and was dropped before its turn came: with its run or its branch.
    NeverBegan {
        /// Which it would have been.
        execution: ExecutionId,
    },
}

/// An input that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MissingInput {
    /// The wire names of the events that would do: for a reply its request, for a gather what it collects.
    pub events: Vec<Arc<str>>,
    /// How they are taken.
    pub kind: InputKind,
    /// How many there were.
    pub have: u32,
    /// How many it takes.
    pub need: u32,
    /// What would do as well, taken in other ways: a step with only optional inputs needs any one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<MissingInput>,
}

/// What is missing, and who could have supplied it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unmet {
    /// What.
    #[serde(flatten)]
    pub input: MissingInput,
    /// Who could have supplied it, and why they did not.
    pub producers: Vec<WhyNotProduced>,
}

/// Who could have produced an event, and why it did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhyNotProduced {
    /// The step never ran.
    DidNotRun {
        /// Which.
        step: Arc<str>,
    },
    /// The step had all it needs, but its precondition said no every time.
    Refused {
        /// The step.
        step: Arc<str>,
        /// The precondition.
        precondition: Arc<str>,
    },
    /// The step is still running.
    Running {
        /// Which.
        step: Arc<str>,
        /// When its next attempt is due, from when the run began, if that is all that it waits for.
        next_attempt: Option<Duration>,
    },
    /// The step is due, waits for its turn, and does not run meanwhile.
    Waiting {
        /// Which.
        step: Arc<str>,
        /// What the first of its executions that wait waits for.
        waits_for: WaitsFor,
    },
    /// The step ran, and emitted none of it.
    EmittedNone {
        /// Which.
        step: Arc<str>,
        /// How often it ran.
        executions: u64,
        /// How often it may run in a scope, if it came to that limit.
        limit: Option<u32>,
        /// What it emitted.
        only: Vec<Arc<str>>,
    },
    /// The step ran and fanned out, but there were no items.
    OpenedNone {
        /// Which.
        step: Arc<str>,
        /// How often it ran.
        executions: u64,
    },
    /// The step ran and emitted it, but too few.
    EmittedSome {
        /// Which.
        step: Arc<str>,
        /// How often it ran.
        executions: u64,
        /// How many it emitted.
        events: u64,
    },
    /// The step emitted it in branches of a fan-out, where they are not seen from here: only a gather joins
    /// them.
    EmittedInBranches {
        /// Which.
        step: Arc<str>,
        /// How many it emitted in other branches.
        events: u64,
        /// How many it emitted where they are seen.
        seen: u64,
    },
    /// It came when the branch had ended in which the rest was there: only a gather brings the two together.
    CameLate {
        /// What came.
        event: Cited,
        /// The item of the branch.
        branch: Cited,
        /// What the step took from the branch: the events that a gather would have to collect.
        gather: Vec<Arc<str>>,
    },
    /// It is in the log, but was not evaluated: the run has not got that far, or ended before.
    NotEvaluated {
        /// What came.
        event: Cited,
    },
    /// The step ran and failed, at least the last time it did not succeed.
    Failed {
        /// Which.
        step: Arc<str>,
        /// How often it ran.
        executions: u64,
        /// How often it failed.
        failures: u64,
        /// What it failed with, the last time.
        error: Arc<str>,
        /// How many it emitted all the same.
        events: u64,
        /// What it emitted.
        only: Vec<Arc<str>>,
    },
    /// None of these steps failed, whose failure would be taken.
    NotFailed {
        /// Which.
        steps: Vec<Arc<str>>,
    },
    /// The step failed, but too few times, or where it is not seen: the failures of a branch stay in it.
    FailedSome {
        /// Which.
        step: Arc<str>,
        /// How often it failed in branches of a fan-out, where it is not seen from here.
        elsewhere: u64,
        /// How often it failed where it is seen.
        seen: u64,
    },
    /// It comes from outside.
    NotSent {
        /// The event.
        event: Arc<str>,
        /// How often it was sent.
        sent: u64,
    },
    /// It starts runs, and this run began with another event.
    NotBegunWith {
        /// The event.
        event: Arc<str>,
        /// What the run began with.
        began_with: Arc<str>,
    },
    /// The request was made, and nobody replied.
    NotReplied {
        /// The request.
        request: Arc<str>,
    },
    /// The request was made, and its time ran out before anybody replied.
    Expired {
        /// The request.
        request: Arc<str>,
    },
    /// The step has set a timer for it, which has not fired.
    TimerPending {
        /// The step.
        step: Arc<str>,
        /// When it will fire, from when the first event entered the log.
        after: Duration,
    },
    /// The fan-out was opened, and is not gathered.
    NotGathered {
        /// The step that fanned out.
        step: Arc<str>,
        /// How many branches it opened.
        branches: u64,
        /// In how many of them something failed.
        failed: u64,
    },
    /// No step emits it.
    Nobody {
        /// The event.
        event: Arc<str>,
    },
}
