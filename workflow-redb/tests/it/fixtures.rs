//! Sample records, and files for them.

use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use workflow_core::prelude::*;
use workflow_core::scheduler::Cause;
use workflow_core::signature::Roles;
use workflow_core::store::{
    EventStore, JOURNAL_FORMAT, Position, Record, RecordedEvent, RunSummary, StoreError, StoredRun, Write,
};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, RecordedTable, StepDef};
use workflow_core::{AnyEvent, RunStatus, ScopeId, Seq};
use workflow_redb::RedbStore;

/// An event that contains its position.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Note(pub(crate) u64);

/// A folder that is deleted with the test, and a file in it.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) file: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("runs.redb");
        Self { folder, file }
    }

    pub(crate) fn open(&self) -> RedbStore {
        RedbStore::open(&self.file).unwrap()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.file).unwrap()
    }
}

pub(crate) fn moment() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

/// The table of the runs' workflow.
fn table() -> RecordedTable {
    let table = DependencyTable::builder("Orders")
        .event(EventDef::new("Order", Roles::NONE.start()))
        .event(EventDef::new("Shipped", Roles::NONE.stop()))
        .step(StepDef::new("ship").input(InputDef::one("Order")).output(OutputDef::event("Shipped")));
    RecordedTable::new(&table.build().unwrap().shape())
}

/// The record at a position of a run as an engine writes it: its start, then notes.
pub(crate) fn record(position: u64) -> Record {
    if position == 0 {
        return Record::RunStarted {
            format: JOURNAL_FORMAT,
            workflow: "Orders".into(),
            table: table(),
            thread: "user-4".into(),
            metadata: std::collections::BTreeMap::new(),
            parent: None,
            awaited: false,
            private_thread: false,
            timeout: None,
            deadline: None,
            configs: std::collections::BTreeMap::new(),
            trace_parent: None,
            queued: false,
            at: moment(),
        };
    }
    Record::EventLogged {
        seq: Seq(position),
        scope: ScopeId::ROOT,
        cause: Cause::Outside,
        event: RecordedEvent::new(AnyEvent::new(Note(position))),
        origin: None,
        at: moment(),
    }
}

pub(crate) fn summary() -> RunSummary {
    RunSummary::running("Orders", moment())
}

/// The records of these positions, of an open run.
pub(crate) fn batch(positions: Range<u64>) -> Write {
    Write { records: positions.map(record).collect(), run: summary() }
}

/// The end of a run.
pub(crate) fn last_batch(status: RunStatus) -> Write {
    Write {
        records: vec![Record::RunEnded {
            status,
            step: None,
            error: None,
            deadline: None,
            origin: None,
            at: moment(),
        }],
        run: summary().ended(status),
    }
}

/// Appends the records of these positions.
pub(crate) async fn put(store: &RedbStore, run: &str, positions: Range<u64>) -> Result<(), StoreError> {
    store.append(&run.into(), Position(positions.start), batch(positions)).await
}

/// A run of three records that has ended.
pub(crate) async fn put_ended(store: &RedbStore, run: &str, status: RunStatus) {
    put(store, run, 0..2).await.unwrap();
    store.append(&run.into(), Position(2), last_batch(status)).await.unwrap();
}

pub(crate) async fn ids(store: &RedbStore) -> Vec<String> {
    listed(store).await.into_iter().map(|stored| stored.id.to_string()).collect()
}

pub(crate) async fn listed(store: &RedbStore) -> Vec<StoredRun> {
    store.runs(&workflow_core::store::RunQuery::new()).await.unwrap()
}

/// The text by which records are compared.
pub(crate) fn text(records: &[Record]) -> String {
    serde_json::to_string(records).unwrap()
}
