//! Agents.
pub mod model;
pub mod tool;
pub mod approval;
pub use approval::{Approval, ApproveTool, AskUser, Decision, OnRejection};
pub use workflow_macros::{tool, tools};

/// The names for generated code. Not for use by hand; all of it may change.
#[doc(hidden)]
pub mod __private;
