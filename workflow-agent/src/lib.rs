//! Agents.
pub mod model;
pub mod tool;
pub mod approval;
pub use approval::{Approval, ApproveTool, AskUser, Decision, OnRejection};
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp")]
pub use mcp::{Mcp, McpError, McpServer};
