//! The record of every evaluation: what explanations are made of.

use crate::id::{ExecutionId, ScopeId, Seq};
use crate::table::StepIndex;

/// One evaluation of one step at one trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The event that triggered it.
    pub trigger: Seq,
    /// The step.
    pub step: StepIndex,
    /// The scope it was evaluated in.
    pub scope: ScopeId,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It was executed.
    Executed(ExecutionId),
    /// A required input was missing.
    NotReady,
    /// No event bound was the branch's own: the evaluation further out covers it.
    Covered,
    /// This very combination was executed before.
    Duplicate,
    /// The step had its `max_executions`.
    LimitReached,
    /// The run had as many executions as it may: it ended here.
    RunLimitReached,
    /// The precondition is being asked.
    Asking,
    /// The precondition said no.
    Refused,
    /// The precondition failed.
    PreconditionFailed,
}
