//! The reasons for which a run waits, for lists of runs and for journals.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// The events, replies and timers that a [waiting](crate::RunStatus::Waiting) run waits for. Any of them resumes it.
///
/// ```
/// use workflow_core::{RunStatus, prelude::*};
/// use workflow_core::store::{MemoryStore, RunQuery};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Order;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(request, reply = bool)]
/// # struct Approve;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Done(bool);
/// # struct Orders;
/// #[workflow]
/// impl Orders {
///     #[step]
///     async fn ask(&self, order: &Order) -> Approve { Approve }
///     #[step]
///     async fn end(&self, approved: &Reply<Approve>) -> Done { Done(**approved) }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Orders).store(MemoryStore::default()).build()?;
/// let run = engine.start::<Orders>(Order).await?;
/// run.settled().await;
/// # while engine.runs(&RunQuery::new()).await?[0].run.status != RunStatus::Waiting {
/// #     tokio::task::yield_now().await;
/// # }
/// // Once the store has the record:
/// let listed = &engine.runs(&RunQuery::new()).await?[0].run;
/// assert_eq!(listed.status, RunStatus::Waiting);
/// assert_eq!(listed.waits_for.as_ref().unwrap().to_string(), "a reply to Approve");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitingFor {
    /// The wire names of the oldest open requests, oldest first; at most [`MOST_NAMED`](Self::MOST_NAMED).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Arc<str>>,
    /// How many requests are open.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub open_requests: u64,
    /// The wire names of the external events that would make a step run or end the run, in the table's order. With open
    /// branches, the names of those that any step takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Arc<str>>,
    /// When the first of its timers is due, by the engine's clock.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::json::rfc3339::optional")]
    pub until: Option<SystemTime>,
}

impl WaitingFor {
    /// The most names in [`requests`](Self::requests).
    pub const MOST_NAMED: usize = 16;
}

impl fmt::Display for WaitingFor {
    /// Without the date: a program formats it for its users.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.requests.is_empty() {
            let more = self.open_requests.saturating_sub(self.requests.len() as u64);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            parts.push(format!("a reply to {}{more}", self.requests.join(", ")));
        }
        if !self.events.is_empty() {
            parts.push(self.events.join(", "));
        }
        if self.until.is_some() {
            parts.push("a timer".to_owned());
        }
        f.write_str(&parts.join(", or "))
    }
}

/// The form that records of journals have: its time is written as serde does.
#[derive(Serialize)]
#[serde(remote = "WaitingFor")]
pub(super) struct Recorded {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "is_zero")]
    open_requests: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<SystemTime>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
