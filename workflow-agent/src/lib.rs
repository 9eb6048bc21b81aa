//! Agents.
pub mod model;
pub mod tool;
pub mod approval;
pub use approval::{Approval, ApproveTool, AskUser, Decision, OnRejection};
#[cfg(feature = "providers")]
mod provider;
#[cfg(feature = "providers")]
pub use provider::{Provider, ProviderError, ProviderModel};
