//! The stall report: the part of an explanation that a person needs to repair a stalled run (S30).

use std::sync::Arc;

use serde::Serialize;

use super::{
    Arrival, Cited, Explanation, FailedStep, MissingProducer, Reason, StepExplanation, Unconsumed,
    WhyNotProduced,
};
use crate::id::ScopeId;

/// Why a run stalled: for each step that did not run, its missing inputs or its refusing precondition.
///
/// `Display` prints the report for people. The text names every missing event and each possible producer with
/// the reason why it did not emit the event. Steps stand in the order in which a reader asks: from the stop
/// events back to the causes, and then all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StallReport {
    /// The name of the workflow.
    pub workflow: Arc<str>,
    /// The stop events, with the reasons why the log has none of them.
    pub missing_stops: Vec<MissingProducer>,
    /// The steps that did not run.
    pub idle: Vec<IdleStep>,
    /// The steps whose failures the run survived: another step caught them, or `on_error = "continue"` or the
    /// policy of a fan-out let the run continue.
    pub failed: Vec<FailedStep>,
    /// The steps that ran, but not at their last trigger.
    pub rejected: Vec<Rejected>,
    /// Events in the log that no step takes.
    pub unconsumed: Vec<Unconsumed>,
    /// The types that could still arrive from outside. None of them would make a step run.
    pub can_arrive: Vec<Arrival>,
}

/// A step that did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IdleStep {
    /// The name of the step.
    pub step: Arc<str>,
    /// Its missing inputs.
    pub missing: Vec<MissingProducer>,
    /// Its precondition, if that said no.
    pub refused: Option<PreconditionRefusals>,
}

/// A precondition that said no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PreconditionRefusals {
    /// The name of the precondition.
    pub precondition: Arc<str>,
    /// The number of times it said no.
    pub times: u64,
    /// The last event at which it said no.
    pub last: Cited,
}

/// A step that ran, but not at its last trigger: its precondition said no, or the step had reached its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Rejected {
    /// The name of the step.
    pub step: Arc<str>,
    /// The number of its executions, in all scopes.
    pub executions: u64,
    /// The scope of the last evaluation. Limits count per scope.
    pub scope: ScopeId,
    /// The last event that triggered it.
    pub trigger: Cited,
    /// The reason why it did not run.
    pub reason: Reason,
}

impl Explanation {
    /// The stall report of this explanation.
    pub(crate) fn stall(&self) -> StallReport {
        StallReport {
            workflow: Arc::clone(&self.workflow),
            missing_stops: self.missing_stops.clone(),
            idle: self.idle_in_order().into_iter().map(IdleStep::of).collect(),
            failed: self.failed.clone(),
            rejected: self.steps.iter().filter_map(Rejected::of).collect(),
            unconsumed: self.unconsumed.clone(),
            can_arrive: self.can_arrive.clone(),
        }
    }

    /// The steps that did not run, breadth first from the stop events to the steps that they waited for.
    fn idle_in_order(&self) -> Vec<&StepExplanation> {
        let mut left: Vec<&StepExplanation> =
            self.steps.iter().filter(|step| step.ran.is_empty() && step.clean_up.is_none()).collect();
        let mut ordered = Vec::with_capacity(left.len());
        take_producers(&self.missing_stops, &mut left, &mut ordered);
        let mut next = 0;
        while !left.is_empty() {
            match ordered.get(next) {
                Some(step) => take_producers(&step.missing, &mut left, &mut ordered),
                None => ordered.push(left.remove(0)),
            }
            next += usize::from(next < ordered.len());
        }
        ordered
    }
}

/// Moves the producers of these inputs to `ordered`.
fn take_producers<'a>(
    missing: &[MissingProducer],
    left: &mut Vec<&'a StepExplanation>,
    ordered: &mut Vec<&'a StepExplanation>,
) {
    for producer in missing.iter().flat_map(|missing| &missing.producers) {
        let (WhyNotProduced::DidNotRun { step } | WhyNotProduced::Refused { step, .. }) = producer else {
            continue;
        };
        if let Some(at) = left.iter().position(|idle| idle.step == *step) {
            ordered.push(left.remove(at));
        }
    }
}

impl StallReport {
    /// Whether the report mentions the step's failure as a cause.
    pub(super) fn blames(&self, failed: &FailedStep) -> bool {
        let missing = self.idle.iter().flat_map(|idle| &idle.missing);
        let mut producers = self.missing_stops.iter().chain(missing).flat_map(|missing| &missing.producers);
        producers
            .any(|producer| matches!(producer, WhyNotProduced::Failed { step, .. } if *step == failed.step))
    }
}

impl IdleStep {
    fn of(step: &StepExplanation) -> Self {
        let mut refusals = step.did_not_run.iter().filter_map(|why| match &why.reason {
            Reason::Refused { precondition } => Some((precondition, &why.trigger)),
            _ => None,
        });
        let times = refusals.clone().count() as u64;
        let refused = refusals.next_back().map(|(precondition, last)| PreconditionRefusals {
            precondition: Arc::clone(precondition),
            times,
            last: last.clone(),
        });
        Self { step: Arc::clone(&step.step), missing: step.missing.clone(), refused }
    }
}

impl Rejected {
    fn of(step: &StepExplanation) -> Option<Self> {
        let (ran, not) = (step.ran.last()?, step.did_not_run.last()?);
        let was_last = not.trigger.seq > ran.trigger.seq;
        let reason = match &not.reason {
            reason @ (Reason::LimitReached { .. } | Reason::Refused { .. } | Reason::GatherTaken { .. })
                if was_last =>
            {
                reason.clone()
            }
            _ => return None,
        };
        Some(Self {
            step: Arc::clone(&step.step),
            executions: step.ran.len() as u64,
            scope: not.scope,
            trigger: not.trigger.clone(),
            reason,
        })
    }
}
