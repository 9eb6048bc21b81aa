//! Why a run stalled: the part of its explanation that a person needs to act (S30).

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{Explanation, MissingInput, Reason, StepExplanation};

/// Why a run stalled: for each step that did not run, what was missing and why, or what said no.
///
/// Its `Display` is for people: it names every missing event, who could have emitted it, and why they did
/// not.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StallReport {
    /// The workflow.
    pub workflow: Arc<str>,
    /// The steps that did not run.
    pub idle: Vec<IdleStep>,
    /// The stop events, and why none of them is in the log.
    pub unmet_stops: Vec<MissingInput>,
}

/// A step that did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IdleStep {
    /// The step.
    pub step: Arc<str>,
    /// The required inputs that are missing.
    pub missing: Vec<MissingInput>,
    /// The precondition that said no, and how often it did.
    pub refused: Option<(Arc<str>, u64)>,
}

impl Explanation {
    pub(crate) fn stall(&self) -> StallReport {
        let idle = self.steps.iter().filter(|step| step.ran.is_empty());
        StallReport {
            workflow: Arc::clone(&self.workflow),
            idle: idle.map(IdleStep::of).collect(),
            unmet_stops: self.unmet_stops.clone(),
        }
    }
}

impl IdleStep {
    fn of(step: &StepExplanation) -> Self {
        let refusals = step.did_not_run.iter().filter_map(|why| match &why.reason {
            Reason::Refused { precondition } => Some(Arc::clone(precondition)),
            _ => None,
        });
        let refused = refusals.fold(None, |refused: Option<(Arc<str>, u64)>, precondition| {
            Some((precondition, refused.map_or(0, |(_, times)| times) + 1))
        });
        Self { step: Arc::clone(&step.step), missing: step.missing.clone(), refused }
    }
}

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the run of `{}` stalled: nothing runs and nothing can arrive", self.workflow)?;
        for stop in &self.unmet_stops {
            write!(f, "\n- no `{}` ended it", stop.events.join("` or `"))?;
            stop.producers.iter().try_for_each(|producer| write!(f, "\n    {producer}"))?;
        }
        self.idle.iter().try_for_each(|step| write!(f, "\n- {step}"))
    }
}

impl fmt::Display for IdleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step `{}` did not run", self.step)?;
        if let Some((precondition, times)) = &self.refused {
            write!(f, "\n    its precondition `{precondition}` said no {}", super::text::times(*times))?;
        }
        for missing in &self.missing {
            write!(f, "\n    it waits for {missing}")?;
            missing.producers.iter().try_for_each(|producer| write!(f, "\n      {producer}"))?;
        }
        Ok(())
    }
}
