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
use crate::store::StoreError;

/// The error behind one that is no source of it, since its text has that of the error: for those who look for an error
/// by its type. Who prints an error with its sources would print it twice.
pub(crate) fn behind<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    if let Some(error) = error.downcast_ref::<RunError>() {
        return error.cause();
    }
    if let Some(error) = error.downcast_ref::<StartError>() {
        return error.cause();
    }
    if let Some(SendError::Refused { source, .. } | SendError::NotLoaded { source, .. }) =
        error.downcast_ref()
    {
        return Some(source);
    }
    if let Some(StoreError::Unserialisable { source }) = error.downcast_ref() {
        return Some(&**source);
    }
    match error.downcast_ref()? {
        ConfigError::Unavailable { source } => Some(&**source),
        _ => None,
    }
}
