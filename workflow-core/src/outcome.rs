//! How building an engine, starting, resuming and sending into a run fail, and how a run ends without an output: one type
//! per boundary. The error of a step is [`StepError`](crate::StepError).

mod build;
mod debug;
mod incompatible;
mod recorded;
mod redrive;
mod resume;
mod run_error;
mod runaway;
mod send;
mod start;

pub use build::{BuildError, BuildProblem};
pub use incompatible::Incompatibility;
pub use recorded::RecordedRunError;
pub use redrive::RedriveError;
pub use resume::ResumeError;
pub use run_error::RunError;
pub use send::SendError;
pub use start::StartError;

use std::error::Error;

use crate::config::ConfigError;
use crate::context::ContextError;
use crate::error::{UnfitEvent, UnfitValue};
use crate::store::StoreError;

/// The error behind one that is no source of it, since its text has that of the error: for those who look for an error
/// by its type. Who prints an error with its sources would print it twice.
pub(crate) fn behind<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    if let Some(error) = error.downcast_ref() {
        return match error {
            RunError::Build(error) => behind(error),
            RunError::Start(error) => behind(error),
            error => error.cause(),
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            StartError::Unfit { problem, .. } => Some(problem),
            error => error.cause(),
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            SendError::Refused { source, .. }
            | SendError::NotLoaded { source, .. }
            | SendError::Stopped { source, .. } => Some(source),
            SendError::Unfit { problem, .. } => Some(problem),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            ResumeError::Store(error) => Some(error),
            ResumeError::Config(error) => Some(error),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref() {
        return match error {
            RedriveError::Store(error) => Some(error),
            RedriveError::Resume(error) => Some(error),
            RedriveError::Start { source, .. } => Some(source),
            _ => None,
        };
    }
    if let Some(BuildError { problems, .. }) = error.downcast_ref() {
        return problems.first().map(|problem| problem as _);
    }
    if let Some(BuildProblem::Config { source, .. }) = error.downcast_ref() {
        return Some(source);
    }
    behind_value(error)
}

/// The same for errors of values, configurations and stores.
fn behind_value<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    if let Some(UnfitEvent { problem, .. }) = error.downcast_ref() {
        return Some(problem);
    }
    if let Some(ContextError::Unfit { problem, .. }) = error.downcast_ref() {
        return Some(problem);
    }
    if let Some(UnfitValue::Serialize { source }) = error.downcast_ref() {
        return Some(&**source);
    }
    if let Some(StoreError::Unserialisable { source }) = error.downcast_ref() {
        return Some(&**source);
    }
    match error.downcast_ref()? {
        ConfigError::Unavailable { source } => Some(&**source),
        ConfigError::Invalid { source, .. } => Some(&**source),
        ConfigError::Unfit { problem, .. } => Some(problem),
        _ => None,
    }
}
