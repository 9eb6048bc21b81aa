//! The ways to pause a run (S61).

use serde::{Deserialize, Serialize};

/// How a run is paused, that is, the fate of its executions under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pause {
    /// Executions and preconditions under way continue, and commit their results.
    AfterRunning,
    /// Executions and preconditions under way are dropped, and begin again once the run is unpaused, as after a restart: an execution of an `at_most_once`
    /// step that had begun fails as in doubt then. An unpause waits until nothing of them runs any more. The engine unloads
    /// the run at once, unless it is a child or has independent children that have not ended. Without a store it is
    /// [`SendError::NoStore`](crate::SendError::NoStore).
    Now,
}
