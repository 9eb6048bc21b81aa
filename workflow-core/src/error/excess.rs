//! What an execution returned beyond a limit of its run.

use std::sync::Arc;

use crate::id::ExecutionId;

/// The events or items that an execution returned at once, and for which a limit of its run leaves no room.
///
/// [`RunError::TooManyExecutions`](crate::RunError::TooManyExecutions) and
/// [`RunError::LogFull`](crate::RunError::LogFull) have it. Nothing of what was returned has happened.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Excess {
    /// The step that returned them.
    pub step: Arc<str>,
    /// Its execution.
    pub execution: ExecutionId,
    /// How many items need an execution, or how many events were to enter the log.
    pub amount: u64,
    /// How many executions the run might still have, or how many events its log might.
    pub left: u64,
}
