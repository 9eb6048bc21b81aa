//! Agents.
pub mod model;
pub mod tool;
pub mod approval;
pub use approval::{Approval, ApproveTool, AskUser, Decision, OnRejection};
pub mod memory;
