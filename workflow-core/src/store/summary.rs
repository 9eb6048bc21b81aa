//! Runs as a store lists them.

use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{Position, WaitingFor};
use crate::id::{EngineId, RunId, RunStatus};

/// Where a run stands, as its latest batch left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// The workflow.
    pub workflow: Arc<str>,
    /// Where the run stands.
    pub status: RunStatus,
    /// What a waiting run waits for; of others nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitingFor>,
    /// When it was started, by the clock of its engine.
    pub started: SystemTime,
    /// The engine that wrote the batch, if it takes [leases](crate::EngineBuilder::lease).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<EngineId>,
}

impl RunSummary {
    /// A run of the workflow that has not ended.
    pub fn running(workflow: impl Into<Arc<str>>, started: SystemTime) -> Self {
        Self { workflow: workflow.into(), status: RunStatus::Running, waits_for: None, started, owner: None }
    }

    /// The same run, driven by this engine.
    pub fn owned_by(self, owner: Option<EngineId>) -> Self {
        Self { owner, ..self }
    }

    /// The same run, waiting for this.
    pub fn waiting(self, waits_for: WaitingFor) -> Self {
        Self { status: RunStatus::Waiting, waits_for: Some(waits_for), ..self }
    }

    /// The same run, going on.
    pub fn going_on(self) -> Self {
        Self { status: RunStatus::Running, waits_for: None, ..self }
    }

    /// The same run, ended.
    pub fn ended(self, status: RunStatus) -> Self {
        Self { status, waits_for: None, ..self }
    }
}

/// A run that a store has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRun {
    /// Its id.
    pub id: RunId,
    /// Where its journal ends.
    pub end: Position,
    /// Where it stands.
    pub run: RunSummary,
}

/// Which runs of a store to list.
///
/// ```
/// use workflow_core::{MemoryStore, RunQuery, EventStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::StoreError> {
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
    after: Option<RunId>,
    at_most: Option<usize>,
}

impl RunQuery {
    /// How many runs a page holds unless told otherwise.
    const PAGE: usize = 1_000;

    /// Every run, from the first one on, 1,000 at a time.
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

    /// Only runs whose ids come after this one: the next page after the one that ends with it.
    pub fn after(self, run: impl Into<RunId>) -> Self {
        Self { after: Some(run.into()), ..self }
    }

    /// At most so many. 0 is taken as 1.
    pub fn at_most(self, runs: usize) -> Self {
        Self { at_most: Some(runs.max(1)), ..self }
    }

    /// The workflow whose runs are asked for; none for those of all.
    pub fn of_workflow(&self) -> Option<&str> {
        self.workflow.as_deref()
    }

    /// Whether only runs that have not ended are asked for.
    pub fn only_open(&self) -> bool {
        self.open
    }

    /// How many runs a page holds at most. Default: 1,000.
    pub fn page(&self) -> usize {
        self.at_most.unwrap_or(Self::PAGE)
    }

    /// The id after which the page begins; none for the first page.
    pub fn begins_after(&self) -> Option<&RunId> {
        self.after.as_ref()
    }

    /// Whether the query asks for this run. A store may ask its own index first, and this in the end.
    pub fn admits(&self, id: &RunId, run: &RunSummary) -> bool {
        // Ids are compared last: they may be long.
        !(self.open && run.status.is_ended())
            && self.workflow.as_ref().is_none_or(|workflow| *workflow == run.workflow)
            && self.after.as_ref().is_none_or(|after| id > after)
    }
}
