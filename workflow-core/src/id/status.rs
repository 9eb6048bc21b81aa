//! Where a run is in its life.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// Something runs, is scheduled or is left to evaluate.
    Running,
    /// Nothing can happen before a timer fires, or a reply or an external event arrives of which at least one would
    /// make a step run (S30).
    Waiting,
    /// A stop event is in the log (S28).
    Completed,
    /// An execution or a precondition failed, and nothing took the failure (S29), the log was full, or the
    /// store did not take what the run wrote.
    Failed,
    /// Nothing ran, nothing was scheduled, and nothing that could have arrived from outside would have made a
    /// step run (S30). It is noticed at once.
    Stalled,
    /// It was cancelled (S31).
    Cancelled,
    /// It was active for as long as it may (S32).
    TimedOut,
}

impl RunStatus {
    /// Whether the run has ended: nothing enters its log any more (S33).
    pub const fn is_ended(self) -> bool {
        !matches!(self, Self::Running | Self::Waiting)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stalled => "stalled",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed out",
        })
    }
}
