//! Why each clean-up step ran at the end of a run or did not (S31). Such a step has no decisions, since no event
//! triggers it: the scheduler's plan of the clean-up has its reasons.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::StepExplanation;
use super::source::Source;
use crate::id::{RunStatus, ScopeId};
use crate::report::{CleanUpResult, CleanUpStep};
use crate::spec::OnEnd;
use crate::table::StepIndex;

/// Why a clean-up step did not run at the end of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhyNoCleanUp {
    /// The run has not ended.
    NotEnded,
    /// The step does not run at this end.
    OtherEnd {
        /// How the run ended.
        status: RunStatus,
        /// The ends at which the step runs.
        runs_at: OnEnd,
    },
    /// The log lacks what the step requires: [`missing`](super::StepExplanation::missing) has it.
    Missing,
    /// The step is new: the clean-up began with an earlier table of the workflow, or the run ended before.
    New,
    /// The precondition is being asked.
    Asking {
        /// The name of the precondition.
        precondition: Arc<str>,
    },
    /// The precondition said no.
    Refused {
        /// The name of the precondition.
        precondition: Arc<str>,
    },
    /// The precondition failed.
    PreconditionFailed {
        /// The name of the precondition.
        precondition: Arc<str>,
        /// The error's text.
        error: String,
    },
    /// The children of the run, or the steps before it, are not over yet.
    NotYet,
    /// The time for clean-up was over before its turn.
    NotReached,
}

impl fmt::Display for WhyNoCleanUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnded => f.write_str("the run has not ended"),
            Self::OtherEnd { status, runs_at } => {
                write!(f, "the run {}, and it runs at {runs_at}", was(*status))
            }
            Self::Missing => f.write_str("the log lacks what it requires"),
            Self::New => f.write_str("the workflow had no such clean-up step when the run ended"),
            Self::Asking { precondition } => {
                write!(f, "its precondition `{precondition}` has not answered yet")
            }
            Self::Refused { precondition } => write!(f, "its precondition `{precondition}` said no"),
            Self::PreconditionFailed { precondition, error } => {
                write!(f, "its precondition `{precondition}` failed: {error}")
            }
            Self::NotYet => f.write_str("the children of the run and the steps before it end first"),
            Self::NotReached => f.write_str("the time for clean-up was over before its turn"),
        }
    }
}

fn was(status: RunStatus) -> String {
    match status {
        RunStatus::Cancelled => "was cancelled".into(),
        other => other.to_string(),
    }
}

impl Source<'_> {
    /// Explains a clean-up step: its execution, or why it has none.
    pub(super) fn explain_clean_up(&self, step: StepIndex, explained: &mut StepExplanation) {
        let row = self.table().step(step);
        let Some(runs_at) = row.on_end else { return };
        let clean_up = self.report.clean_up.as_ref();
        let planned = clean_up.and_then(|clean_up| clean_up.steps.iter().find(|it| it.step == row.name));
        // An execution without a trace has not begun.
        if let Some(CleanUpStep { result: CleanUpResult::Executed(execution), .. }) = planned
            && let Some(trace) = self.execution(*execution)
        {
            explained.ran.push(self.why_ran(trace, ScopeId::ROOT, self.cite(trace.trigger)));
            return;
        }
        let precondition =
            || row.precondition.as_ref().map_or_else(|| "".into(), |row| Arc::clone(&row.name));
        let status = self.scheduler.end().map(RunStatus::from);
        explained.clean_up = Some(match (planned.map(|planned| &planned.result), status) {
            (_, None) => WhyNoCleanUp::NotEnded,
            (_, Some(status)) if !runs_at.includes(status) => WhyNoCleanUp::OtherEnd { status, runs_at },
            (Some(CleanUpResult::Asked), _) => WhyNoCleanUp::Asking { precondition: precondition() },
            (Some(CleanUpResult::Refused), _) => WhyNoCleanUp::Refused { precondition: precondition() },
            (Some(CleanUpResult::PreconditionFailed { error }), _) => {
                WhyNoCleanUp::PreconditionFailed { precondition: precondition(), error: error.clone() }
            }
            (Some(_), _) if self.report.status.is_ended() => WhyNoCleanUp::NotReached,
            (None, _) if !self.is_bound_at_end(step) => WhyNoCleanUp::Missing,
            (None, _) if self.report.status.is_ended() => WhyNoCleanUp::New,
            (_, _) => WhyNoCleanUp::NotYet,
        });
    }

    /// Whether the log has what the step requires.
    fn is_bound_at_end(&self, step: StepIndex) -> bool {
        self.scheduler.is_ready_at_end(step)
    }
}
