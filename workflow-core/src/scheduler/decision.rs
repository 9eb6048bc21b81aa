//! The record of every evaluation, from which explanations are made.
//!
//! Invariant: an evaluation has one decision. Its verdict changes at most once, from `Asking` to the result of
//! the precondition. Data only: [`Evaluation`](super::evaluate::Evaluation) records decisions in the scope of the
//! trigger, and [`Sweeps`](super::sweep::Sweeps) those in the branches below.

use crate::id::{ExecutionId, ScopeId, Seq};
use crate::table::StepIndex;

/// One evaluation of one step at one trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The position of the event that triggered the evaluation.
    pub trigger: Seq,
    /// The index of the step in the table.
    pub step: StepIndex,
    /// The scope in which the step was evaluated.
    pub scope: ScopeId,
    /// The result of the evaluation.
    pub verdict: Verdict,
}

/// The result of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The step was executed.
    Executed(ExecutionId),
    /// A required input was missing.
    NotReady,
    /// No bound event belongs to this branch: the evaluation in an outer scope covers the combination.
    Covered,
    /// The step was executed with this combination of events before.
    Duplicate,
    /// This execution of the step took the latest gather, and a step takes each gather once per scope.
    GatherTaken(ExecutionId),
    /// The step has reached its `max_executions`.
    LimitReached,
    /// The run has reached its limit of executions and ended here.
    RunLimitReached,
    /// The precondition has not answered yet.
    Asking,
    /// The precondition said no.
    Refused,
    /// The precondition failed.
    PreconditionFailed,
}
