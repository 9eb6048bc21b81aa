//! Why each step of a run ran, and why it did not: made from the table, the log and the scheduler's
//! decisions, at any time. As a type, as text for people, and, through serde, as JSON.

use std::sync::Arc;

use serde::Serialize;

use crate::id::{ExecutionId, RunId, ScopeId, Seq};
use crate::run::RunStatus;

mod past;
mod source;
mod stall;
mod text;

pub use stall::{IdleStep, StallReport};

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
    pub unmet_stops: Vec<MissingInput>,
}

/// Why one step ran, and why it did not.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StepExplanation {
    /// The step.
    pub step: Arc<str>,
    /// A row per execution.
    pub ran: Vec<WhyRan>,
    /// A row per trigger that led to no execution.
    pub did_not_run: Vec<WhyNot>,
    /// The required inputs that are missing now; only for a step that never ran.
    pub missing: Vec<MissingInput>,
}

/// An event as explanations name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cited {
    /// Its position.
    pub seq: Seq,
    /// Its wire name.
    pub event: Arc<str>,
    /// The step that emitted it; none for what came from outside.
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

/// Why a trigger led to no execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Required inputs were missing then (S13).
    Missing(Vec<MissingInput>),
    /// None of the bound events was the branch's own: the evaluation further out covers it (S46).
    Covered,
    /// This very combination was executed before (S20).
    Duplicate,
    /// The step had had all its executions (S19).
    LimitReached {
        /// How many it may have.
        limit: u32,
    },
    /// The precondition said no (S18).
    Refused {
        /// Which.
        precondition: Arc<str>,
    },
    /// The precondition failed (S18).
    PreconditionFailed {
        /// Which.
        precondition: Arc<str>,
    },
    /// The precondition had not answered.
    Asking {
        /// Which.
        precondition: Arc<str>,
    },
}

/// An input that is missing, and who could have supplied it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MissingInput {
    /// The event types that would do.
    pub events: Vec<Arc<str>>,
    /// How many there were.
    pub have: u32,
    /// How many it takes.
    pub need: u32,
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
    /// The step's precondition said no every time.
    Refused {
        /// The step.
        step: Arc<str>,
        /// The precondition.
        precondition: Arc<str>,
    },
    /// The step ran, and returned none of it.
    EmittedNone {
        /// Which.
        step: Arc<str>,
        /// How often it ran.
        executions: u64,
    },
    /// The step ran and emitted it, but too few.
    EmittedSome {
        /// Which.
        step: Arc<str>,
        /// How many.
        events: u64,
    },
    /// The step emitted it, but in branches of a fan-out, where only a gather joins it.
    EmittedInBranches {
        /// Which.
        step: Arc<str>,
        /// How many.
        events: u64,
    },
    /// The step failed.
    Failed {
        /// Which.
        step: Arc<str>,
        /// What it failed with, the last time.
        error: String,
    },
    /// The step had had all its executions.
    LimitReached {
        /// Which.
        step: Arc<str>,
        /// How many it may have.
        limit: u32,
    },
    /// The step is still running.
    Running {
        /// Which.
        step: Arc<str>,
    },
    /// It comes from outside, and was not sent.
    NotSent {
        /// The event.
        event: Arc<str>,
    },
    /// It is the reply to a request that nobody made or nobody answered.
    NotReplied {
        /// The request.
        request: Arc<str>,
        /// Whether it was made.
        asked: bool,
    },
    /// It says that a fan-out is gathered, and the fan-out was not opened or is not settled.
    NotGathered {
        /// The step that fans out.
        step: Arc<str>,
        /// Whether it was opened.
        opened: bool,
    },
    /// No step emits it.
    Nobody {
        /// The event.
        event: Arc<str>,
    },
}
