//! The pause of a run, as data.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::id::Origin;

/// The pause of a run: nothing begins in it.
///
/// [`RunReport::waiting`](super::RunReport::waiting) has the executions that are deferred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PauseReport {
    /// The time from the beginning of the run to the pause.
    pub since: Duration,
    /// Whether the run is paused only because its parent is.
    pub with_parent: bool,
    /// The origin of the pause, if the caller gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl fmt::Display for PauseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the run is paused since {:.3?} after its beginning", self.since)?;
        if self.with_parent {
            f.write_str(", with its parent")?;
        }
        match self.origin.as_ref().and_then(|origin| origin.by.as_ref()) {
            Some(by) => write!(f, ", by {by}"),
            None => Ok(()),
        }
    }
}
