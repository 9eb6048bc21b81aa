//! Why a run stalled: the part of its explanation that a person needs to act (S30).

use std::sync::Arc;

use serde::Serialize;

use super::{
    Arrival, Cited, Explanation, FailedStep, Reason, StepExplanation, Unmet, Untaken, WhyNotProduced,
};
use crate::id::ScopeId;

/// Why a run stalled: for each step that did not run, what was missing and why, or what said no.
///
/// Its `Display` is for people: it names every missing event, who could have emitted it, and why they did
/// not. Steps stand in the order in which one asks: from the stop events back to what is at fault, and after
/// that whatever else did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StallReport {
    /// The workflow.
    pub workflow: Arc<str>,
    /// The stop events, and why none of them is in the log.
    pub unmet_stops: Vec<Unmet>,
    /// The steps that did not run.
    pub idle: Vec<IdleStep>,
    /// The steps whose failure the run survived: another step caught it, or
    /// `on_error = "continue"` or the policy of a fan-out let it pass.
    pub failed: Vec<FailedStep>,
    /// The steps that ran, but not for the last event that could have made them.
    pub turned_down: Vec<TurnedDown>,
    /// What entered the log and is taken by no step.
    pub untaken: Vec<Untaken>,
    /// What could still have arrived from outside: none of it would have made a step run.
    pub can_arrive: Vec<Arrival>,
}

/// A step that did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IdleStep {
    /// The step.
    pub step: Arc<str>,
    /// What is missing.
    pub missing: Vec<Unmet>,
    /// What said no.
    pub refused: Option<Refusals>,
}

/// A precondition that said no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refusals {
    /// Which.
    pub precondition: Arc<str>,
    /// How often.
    pub times: u64,
    /// What triggered the step the last time.
    pub last: Cited,
}

/// A step that ran, but not for the last event that triggered it: its precondition said no, or it was at its
/// limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TurnedDown {
    /// The step.
    pub step: Arc<str>,
    /// How often it ran, in all scopes.
    pub executions: u64,
    /// The scope in which it did not: its limit holds for each.
    pub scope: ScopeId,
    /// The last event that triggered it.
    pub trigger: Cited,
    /// Why it did not run for that.
    pub reason: Reason,
}

impl Explanation {
    pub(crate) fn stall(&self) -> StallReport {
        StallReport {
            workflow: Arc::clone(&self.workflow),
            unmet_stops: self.unmet_stops.clone(),
            idle: self.idle_in_order().into_iter().map(IdleStep::of).collect(),
            failed: self.failed.clone(),
            turned_down: self.steps.iter().filter_map(TurnedDown::of).collect(),
            untaken: self.untaken.clone(),
            can_arrive: self.can_arrive.clone(),
        }
    }

    /// The steps that did not run, breadth first from the stop events to what they waited for.
    fn idle_in_order(&self) -> Vec<&StepExplanation> {
        let mut left: Vec<&StepExplanation> = self.steps.iter().filter(|step| step.ran.is_empty()).collect();
        let mut ordered = Vec::with_capacity(left.len());
        take_producers(&self.unmet_stops, &mut left, &mut ordered);
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

/// Moves the steps that could have supplied what is unmet.
fn take_producers<'a>(
    unmet: &[Unmet],
    left: &mut Vec<&'a StepExplanation>,
    ordered: &mut Vec<&'a StepExplanation>,
) {
    for producer in unmet.iter().flat_map(|unmet| &unmet.producers) {
        let (WhyNotProduced::DidNotRun { step } | WhyNotProduced::Refused { step, .. }) = producer else {
            continue;
        };
        if let Some(at) = left.iter().position(|idle| idle.step == *step) {
            ordered.push(left.remove(at));
        }
    }
}

impl StallReport {
    /// Whether the report says elsewhere that the step failed.
    pub(super) fn blames(&self, failed: &FailedStep) -> bool {
        let missing = self.idle.iter().flat_map(|idle| &idle.missing);
        let mut producers = self.unmet_stops.iter().chain(missing).flat_map(|unmet| &unmet.producers);
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
        let refused = refusals.next_back().map(|(precondition, last)| Refusals {
            precondition: Arc::clone(precondition),
            times,
            last: last.clone(),
        });
        Self { step: Arc::clone(&step.step), missing: step.missing.clone(), refused }
    }
}

impl TurnedDown {
    fn of(step: &StepExplanation) -> Option<Self> {
        let (ran, not) = (step.ran.last()?, step.did_not_run.last()?);
        let was_last = not.trigger.seq > ran.trigger.seq;
        let reason = match &not.reason {
            reason @ (Reason::LimitReached { .. } | Reason::Refused { .. }) if was_last => reason.clone(),
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
