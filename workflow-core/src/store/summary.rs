//! Runs as a store lists them.

use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{Position, WaitingFor};
use crate::id::{EngineId, RunId, RunStatus};

/// The state of a run after its latest write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// The workflow.
    pub workflow: Arc<str>,
    /// The status.
    pub status: RunStatus,
    /// The events, replies or timers that a waiting run waits for; `None` for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitingFor>,
    /// The start time, by the clock of the run's engine.
    pub started: SystemTime,
    /// The engine of the latest write, if it takes [leases](crate::EngineBuilder::lease).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<EngineId>,
}

impl RunSummary {
    /// An open run of the workflow.
    pub fn running(workflow: impl Into<Arc<str>>, started: SystemTime) -> Self {
        Self { workflow: workflow.into(), status: RunStatus::Running, waits_for: None, started, owner: None }
    }

    /// The same run with this owner.
    pub fn owned_by(self, owner: Option<EngineId>) -> Self {
        Self { owner, ..self }
    }

    /// The same run, waiting.
    pub fn waiting(self, waits_for: WaitingFor) -> Self {
        Self { status: RunStatus::Waiting, waits_for: Some(waits_for), ..self }
    }

    /// The same run, running again.
    pub fn running_again(self) -> Self {
        Self { status: RunStatus::Running, waits_for: None, ..self }
    }

    /// The same run, cleaning up.
    pub fn cleaning_up(self) -> Self {
        Self { status: RunStatus::CleaningUp, waits_for: None, ..self }
    }

    /// The same run, ended.
    pub fn ended(self, status: RunStatus) -> Self {
        Self { status, waits_for: None, ..self }
    }
}

/// A run in a store's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRun {
    /// Its id.
    pub id: RunId,
    /// The end of its journal.
    pub end: Position,
    /// Its summary.
    pub run: RunSummary,
}

/// A query for a list of runs.
///
/// ```
/// use workflow_core::store::{EventStore, MemoryStore, RunQuery};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::store::StoreError> {
/// # let store = MemoryStore::default();
/// let mut query = RunQuery::new().workflow("Orders").open();
/// loop {
///     let page = store.runs(&query).await?;
///     for run in &page {
///         assert!(!run.run.status.is_ended());
///     }
///     match page.last() {
///         Some(last) if page.len() == query.page() => query = query.after(last.id.clone()),
///         _ => break,
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    workflow: Option<Arc<str>>,
    open: bool,
    statuses: Vec<RunStatus>,
    after: Option<RunId>,
    at_most: Option<usize>,
}

impl RunQuery {
    /// The default size of a page.
    const PAGE: usize = 1_000;

    /// Every run, in pages of 1,000, from the first one on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only runs of this workflow.
    pub fn workflow(self, workflow: impl Into<Arc<str>>) -> Self {
        Self { workflow: Some(workflow.into()), ..self }
    }

    /// Only runs that have not ended.
    pub fn open(self) -> Self {
        Self { open: true, ..self }
    }

    /// Only runs with this status. Several calls admit runs with any of theirs.
    ///
    /// ```
    /// use workflow_core::RunStatus;
    /// use workflow_core::store::RunQuery;
    ///
    /// let query = RunQuery::new().status(RunStatus::Failed).status(RunStatus::TimedOut);
    /// assert_eq!(query.statuses(), [RunStatus::Failed, RunStatus::TimedOut]);
    /// ```
    pub fn status(mut self, status: RunStatus) -> Self {
        self.statuses.push(status);
        self
    }

    /// Only runs with greater ids: the page after the one that ends with `run`.
    pub fn after(self, run: impl Into<RunId>) -> Self {
        Self { after: Some(run.into()), ..self }
    }

    /// The size of a page. 0 counts as 1.
    pub fn at_most(self, runs: usize) -> Self {
        Self { at_most: Some(runs.max(1)), ..self }
    }

    /// The workflow of the query; `None` for all.
    pub fn of_workflow(&self) -> Option<&str> {
        self.workflow.as_deref()
    }

    /// Whether the query is for open runs only.
    pub fn only_open(&self) -> bool {
        self.open
    }

    /// The statuses that the query admits; empty for all.
    pub fn statuses(&self) -> &[RunStatus] {
        &self.statuses
    }

    /// The most runs of a page. Default: 1,000.
    pub fn page(&self) -> usize {
        self.at_most.unwrap_or(Self::PAGE)
    }

    /// The id before the page; `None` for the first page.
    pub fn begins_after(&self) -> Option<&RunId> {
        self.after.as_ref()
    }

    /// Whether the run matches the query. A store may use an index first, and has to check its result here.
    pub fn admits(&self, id: &RunId, run: &RunSummary) -> bool {
        // Ids are compared last: they may be long.
        !(self.open && run.status.is_ended())
            && (self.statuses.is_empty() || self.statuses.contains(&run.status))
            && self.workflow.as_ref().is_none_or(|workflow| *workflow == run.workflow)
            && self.after.as_ref().is_none_or(|after| id > after)
    }
}
