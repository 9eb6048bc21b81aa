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
