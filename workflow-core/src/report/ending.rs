//! How a run ends, for its clean-up steps and for its report (S31).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::error::ErrorClass;
use crate::id::{ExecutionId, RunStatus};
use crate::text::utc;

/// Why a run ends, as its clean-up steps see it ([`RunInfo::ending`](crate::RunInfo::ending)).
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_core::report::Ending;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # struct Booked { seat: u32 }
/// # struct Trip;
/// # impl Trip {
/// async fn unbook(&self, booked: &Booked, info: &RunInfo) {
///     let why = match info.ending() {
///         Some(Ending::Cancelled { reason }) => reason.to_string(),
///         Some(Ending::Failed { error, .. }) => format!("technical problem: {error}"),
///         _ => "no answer in time".to_owned(),
///     };
///     println!("seat {} is free again: {why}", booked.seat);
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// A failure ended the run.
    Failed {
        /// The error, as the run's outcome has it.
        error: Arc<str>,
        /// The executions that failed and were not caught, in the order of their ids. Empty where no execution is to
        /// blame: a precondition failed, or the run reached a limit.
        executions: Vec<FailedExecution>,
    },
    /// Nothing could make a step run any more.
    Stalled,
    /// A cancel request ended the run.
    Cancelled {
        /// The reason that the caller gave.
        reason: Arc<str>,
    },
    /// The run used up its active time.
    TimedOut {
        /// The limit on its active time.
        after: Duration,
    },
    /// The deadline of the run passed.
    DeadlinePassed {
        /// The deadline.
        #[serde(serialize_with = "crate::json::rfc3339::serialize")]
        deadline: SystemTime,
    },
}

/// An execution whose failure ended the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedExecution {
    /// The name of the step.
    pub step: Arc<str>,
    /// The execution.
    pub execution: ExecutionId,
    /// The class of the error.
    pub class: ErrorClass,
    /// The error's text.
    pub error: String,
}

impl Ending {
    /// The status that the run will have once its clean-up is over.
    pub fn status(&self) -> RunStatus {
        match self {
            Self::Failed { .. } => RunStatus::Failed,
            Self::Stalled => RunStatus::Stalled,
            Self::Cancelled { .. } => RunStatus::Cancelled,
            Self::TimedOut { .. } | Self::DeadlinePassed { .. } => RunStatus::TimedOut,
        }
    }

    /// The executions that failed and ended the run; none unless it failed.
    pub fn failed(&self) -> &[FailedExecution] {
        if let Self::Failed { executions, .. } = self { executions } else { &[] }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { error, .. } => write!(f, "failed: {error}"),
            Self::Stalled => f.write_str("stalled"),
            Self::Cancelled { reason } => write!(f, "cancelled: {reason}"),
            Self::TimedOut { after } => write!(f, "timed out after {after:?}"),
            Self::DeadlinePassed { deadline } => write!(f, "timed out at its deadline, {}", utc(*deadline)),
        }
    }
}

/// The clean-up of a run, in its report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CleanUpReport {
    /// Why the run ended.
    pub ending: Ending,
    /// The clean-up steps whose required inputs the log had, in the order in which they run.
    pub steps: Vec<CleanUpStep>,
    /// The unfinished steps, once the clean-up is over: those that failed, also because their time was over, and
    /// those whose precondition failed. [`Redrive::clean_up`](crate::Redrive::clean_up) runs these again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<Arc<str>>,
}

/// One step of a clean-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CleanUpStep {
    /// The name of the step.
    pub step: Arc<str>,
    /// What became of it.
    pub result: CleanUpResult,
}

/// What became of a clean-up step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CleanUpResult {
    /// The step was executed; the report's trace says how the execution ended.
    Executed(ExecutionId),
    /// The precondition of the step is being asked.
    Asked,
    /// The precondition of the step said no.
    Refused,
    /// The precondition of the step failed.
    PreconditionFailed {
        /// The error's text.
        error: String,
    },
    /// The turn of the step has not come. In a run that an earlier release ended, the time for clean-up was over before.
    NotReached,
}

impl fmt::Display for CleanUpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clean-up ({}): ", self.ending)?;
        let steps: Vec<String> = self.steps.iter().map(CleanUpStep::to_string).collect();
        f.write_str(&steps.join(", "))?;
        if !self.incomplete.is_empty() {
            write!(f, "; incomplete: {}", self.incomplete.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for CleanUpStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = &self.step;
        match &self.result {
            CleanUpResult::Executed(execution) => write!(f, "{step} {execution}"),
            CleanUpResult::Asked => write!(f, "{step} is asked"),
            CleanUpResult::Refused => write!(f, "{step} was not wanted"),
            CleanUpResult::PreconditionFailed { error } => write!(f, "{step} could not be asked: {error}"),
            CleanUpResult::NotReached => write!(f, "{step} did not run"),
        }
    }
}
