//! Where a run is in its life.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of a run, as handles, listings and reports show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// An execution runs or is scheduled, or an event has not been evaluated yet.
    Running,
    /// The run waits for a timer, a reply or an external event.
    ///
    /// Nothing happens before one of them arrives, and at least one would make a step run.
    Waiting,
    /// The run is paused, and nothing runs in it.
    ///
    /// Events from outside still enter its log, and timers fire. It continues once it is
    /// [unpaused](crate::AnyRun::unpause). While executions that were under way continue, the run has the status
    /// [`Running`](Self::Running).
    Paused,
    /// The run ends without having completed, and its clean-up steps run. Its log takes no more events.
    ///
    /// Its final status follows, at the latest once the time of each of these steps is over
    /// ([`EngineBuilder::cleanup_within`](crate::EngineBuilder::cleanup_within)).
    CleaningUp,
    /// A stop event is in the log.
    Completed,
    /// A failure ended the run.
    ///
    /// An execution or a precondition failed and no step caught the failure, or the run reached its limit of events or
    /// executions. A handle alone also shows it after the engine detached the run, because its store failed or another
    /// engine drives the run: then the journal is open.
    Failed,
    /// The run has not completed, and nothing can make a step run any more.
    ///
    /// Nothing ran or was scheduled, and nothing from outside could have made a step run. The engine detects
    /// this at once.
    Stalled,
    /// A cancel request ended the run.
    ///
    /// A handle alone also shows it after [`Engine::shut_down`](crate::Engine::shut_down) detached the run, or the run's task
    /// is gone: then the journal of a run with a store is open.
    Cancelled,
    /// The run used up its active time, or its deadline passed.
    TimedOut,
}

impl RunStatus {
    /// Whether the run has ended. One that [cleans up](Self::CleaningUp) has not.
    pub const fn is_ended(self) -> bool {
        !matches!(self, Self::Running | Self::Waiting | Self::Paused | Self::CleaningUp)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::CleaningUp => "cleaning up",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stalled => "stalled",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed out",
        })
    }
}
