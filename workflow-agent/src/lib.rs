//! Agents.
pub mod model;
pub mod tool;
pub mod approval;
pub use approval::{Approval, ApproveTool, AskUser, Decision, OnRejection};
#[cfg(any(feature = "files", all(unix, feature = "bash"), feature = "fetch"))]
pub mod builtin;
