//! The failure of one branch of a fan-out (S49).

use std::fmt;
use std::sync::Arc;

use super::StepError;

/// The failure of a branch.
#[derive(Debug, Clone)]
pub struct BranchFailure {
    pub(crate) step: Arc<str>,
    pub(crate) error: StepError,
}

impl BranchFailure {
    /// The name of the step that failed.
    pub fn step(&self) -> &str {
        &self.step
    }

    /// The error of the step.
    pub fn error(&self) -> &StepError {
        &self.error
    }
}

impl fmt::Display for BranchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step `{}` failed: {}", self.step, self.error)
    }
}
