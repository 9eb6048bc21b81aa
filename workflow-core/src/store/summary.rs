//! Runs as a store lists them. `query` says which of them, and in which order.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{Position, Record, WaitingFor};
use crate::id::{EngineId, ParentRun, RunId, RunStatus, ThreadId};
use crate::report::Quality;

/// The labels of a run, shared by all clones of its summary.
type Labels = Arc<BTreeMap<String, String>>;

/// The state of a run after its latest write.
///
/// A store keeps it as JSON and interprets none of it, except what a [query](crate::store::RunQuery) asks for. Fields that are
/// newer than a stored summary are empty: `table`, `thread`, `metadata`, `parent`, `ended`, `quality`, `stop` and
/// `incomplete_clean_up` of a run that an earlier release wrote last.
///
/// ```
/// use workflow_core::prelude::*;
/// use workflow_core::RunOptions;
/// use workflow_core::report::Quality;
/// use workflow_core::store::{MemoryStore, RunQuery};
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeted;
/// # struct Greeter;
/// # #[workflow]
/// # impl Greeter {
/// #     #[step]
/// #     async fn greet(&self, _greet: &Greet) -> Greeted { Greeted }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().workflow(Greeter).store(MemoryStore::default()).build()?;
/// let options = RunOptions::new().id("r-1").thread("ada").metadata("tenant", "acme");
/// engine.start_with::<Greeter>(Greet, options).await?.outcome().await?;
///
/// let stored = engine.runs(&RunQuery::new().thread("ada")).await?.remove(0);
/// assert_eq!(stored.run.metadata["tenant"], "acme");
/// assert_eq!(stored.run.quality, Some(Quality::Clean));
/// assert!(stored.run.ended.unwrap() >= stored.run.started);
/// // The record of the stop event, without the rest of the journal:
/// let stop = stored.run.stop.unwrap();
/// assert!(engine.history(&stored.id).await?.len() as u64 > stop.0);
/// # Ok(())
/// # }
/// ```
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
    /// The [fingerprint](crate::table::TableShape::fingerprint) of the table with which a waiting run began to wait; `None` for other
    /// runs. An engine with the same table takes the run up without its journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Arc<str>>,
    /// The start time, by the clock of the run's engine.
    #[serde(with = "crate::json::rfc3339")]
    pub started: SystemTime,
    /// The engine of the latest write, if it takes [leases](crate::EngineBuilder::lease).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<EngineId>,
    /// The thread, also where it is the run's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The labels of the start: at most [`MAX_METADATA_BYTES`](Self::MAX_METADATA_BYTES) as JSON. Empty for a run that
    /// an earlier release started with more.
    #[serde(default = "no_labels", skip_serializing_if = "has_none")]
    pub metadata: Arc<BTreeMap<String, String>>,
    /// The parent, of a child run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// When the run ends at the latest; `None` without a [deadline](crate::RunOptions::deadline).
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::json::rfc3339::optional")]
    pub deadline: Option<SystemTime>,
    /// When the run ended, by the clock of its engine; `None` for an open run, and for one that an earlier release ended.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::json::rfc3339::optional")]
    pub ended: Option<SystemTime>,
    /// How well the run went, as in its report; `None` for an open run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// The position of the stop event's record; `None` unless the run completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Position>,
    /// The unfinished clean-up steps of the run, in their order: those of
    /// [`CleanUpReport::incomplete`](crate::report::CleanUpReport::incomplete). Empty for an open run, unless its clean-up is
    /// redriven: then the steps that run again, until they are over.
    #[serde(default = "no_steps", skip_serializing_if = "are_none")]
    pub incomplete_clean_up: Arc<Vec<Arc<str>>>,
}

impl RunSummary {
    /// The most bytes of a run's [`metadata`](Self::metadata) as JSON: 8 KiB. An engine refuses a start with more.
    pub const MAX_METADATA_BYTES: usize = 8 << 10;

    /// An open run of the workflow, of which nothing else is known.
    pub fn running(workflow: impl Into<Arc<str>>, started: SystemTime) -> Self {
        Self {
            workflow: workflow.into(),
            status: RunStatus::Running,
            waits_for: None,
            table: None,
            started,
            owner: None,
            thread: None,
            metadata: no_labels(),
            parent: None,
            deadline: None,
            ended: None,
            quality: None,
            stop: None,
            incomplete_clean_up: no_steps(),
        }
    }

    /// The open run that a journal's first record begins; `None` if it is no [`RunStarted`](Record::RunStarted).
    ///
    /// For tools that write to journals, and for stores that cannot read a summary.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use workflow_core::store::{Record, RunSummary};
    ///
    /// assert_eq!(RunSummary::begun_by(&Record::RunKept { at: SystemTime::UNIX_EPOCH }), None);
    /// ```
    pub fn begun_by(first: &Record) -> Option<Self> {
        let Record::RunStarted { workflow, thread, metadata, parent, deadline, at, .. } = first else {
            return None;
        };
        let fits = metadata_bytes(metadata) <= Self::MAX_METADATA_BYTES;
        Some(Self {
            thread: Some(thread.clone()),
            metadata: if fits && !metadata.is_empty() { Arc::new(metadata.clone()) } else { no_labels() },
            parent: parent.clone(),
            deadline: *deadline,
            ..Self::running(Arc::clone(workflow), *at)
        })
    }

    /// The same run with this owner.
    pub fn owned_by(self, owner: Option<EngineId>) -> Self {
        Self { owner, ..self }
    }

    /// The same run, waiting. Set the field `table` too, if it is known.
    pub fn waiting(self, waits_for: WaitingFor) -> Self {
        Self { status: RunStatus::Waiting, waits_for: Some(waits_for), table: None, ..self }
    }

    /// The same run, paused, with nothing that runs.
    pub fn paused(self) -> Self {
        Self { status: RunStatus::Paused, waits_for: None, table: None, ..self }
    }

    /// The same run, running again, after a wait or an end.
    pub fn running_again(self) -> Self {
        let (ended, quality, stop, incomplete_clean_up) = (None, None, None, no_steps());
        Self {
            status: RunStatus::Running,
            waits_for: None,
            table: None,
            ended,
            quality,
            stop,
            incomplete_clean_up,
            ..self
        }
    }

    /// The same run, cleaning up, for the first time or again.
    pub fn cleaning_up(self) -> Self {
        Self { status: RunStatus::CleaningUp, ..self.running_again() }
    }

    /// The same run with the status of its end. Set the fields `ended`, `quality`, `stop` and `incomplete_clean_up` too.
    pub fn ended(self, status: RunStatus) -> Self {
        Self { status, waits_for: None, table: None, ..self }
    }
}

/// The bytes of a run's labels as JSON.
pub(crate) fn metadata_bytes(labels: &BTreeMap<String, String>) -> usize {
    // Text always has JSON.
    if labels.is_empty() { 2 } else { serde_json::to_vec(labels).map_or(usize::MAX, |json| json.len()) }
}

/// The labels of a run without any: one map for all runs, so that it costs no allocation.
fn no_labels() -> Labels {
    static NONE: LazyLock<Labels> = LazyLock::new(Labels::default);
    Arc::clone(&NONE)
}

/// No steps: one list for all runs, so that it costs no allocation.
fn no_steps() -> Arc<Vec<Arc<str>>> {
    static NONE: LazyLock<Arc<Vec<Arc<str>>>> = LazyLock::new(Arc::default);
    Arc::clone(&NONE)
}

fn are_none(steps: &Arc<Vec<Arc<str>>>) -> bool {
    steps.is_empty()
}

fn has_none(labels: &Labels) -> bool {
    labels.is_empty()
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
