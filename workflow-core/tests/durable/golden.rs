//! Journals of each released format, stored as files. Today's code reads all of them, and writes exactly the latest
//! format, so no change of it goes unnoticed (S39, S41).
//!
//! `journals/v1/NAME.jsonl` has a record per line, and `NAME.txt` the result of the run. `UPDATE_EXPECT=1` rewrites
//! them, which changes the format: after a release, the format needs a new number, and its files a new folder. Files of
//! earlier formats stay readable for ever, and are never written.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use expect_test::{ExpectFile, expect_file};
use futures::future::BoxFuture;
use workflow_core::prelude::*;
use workflow_core::scheduler::Cause;
use workflow_core::store::{
    EventStore, JOURNAL_FORMAT, MemoryStore, Position, Record, RunQuery, RunSummary, Write,
};
use workflow_core::{EngineBuilder, RunHandle, RunId, RunOptions, RunStatus};
use workflow_testkit::VirtualClock;

use crate::fixtures::Begin;
use crate::formats::recorded::same_by_its_records;

mod run_time;
pub(crate) mod workflows;

/// A file of this format, which may not exist yet.
fn file(name: &str) -> (ExpectFile, PathBuf) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/durable/journals/v1");
    let path = PathBuf::from(folder).join(name);
    (expect_file![path.clone()], path)
}

fn engine(store: &Arc<MemoryStore>, hosts: fn(EngineBuilder) -> EngineBuilder) -> Engine {
    let engine = hosts(Engine::builder()).store(Arc::clone(store)).clock(VirtualClock::new());
    engine.build().unwrap()
}

/// Every journal of the store as lines, by run id. A run's own thread has one name in all of them.
pub(crate) async fn journals(store: &MemoryStore) -> Vec<(RunId, String)> {
    let mut journals = Vec::new();
    for stored in store.runs(&RunQuery::new()).await.unwrap() {
        let mut records = store.read(&stored.id, Position(0), usize::MAX).await.unwrap();
        if let Some(Record::RunStarted { thread, private_thread: true, .. }) = records.first_mut() {
            *thread = "private".into();
        }
        let lines = records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n");
        journals.push((stored.id, lines.collect()));
    }
    journals
}

/// A store with what the files have.
async fn read(journals: &[(RunId, String)]) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::default());
    for (id, lines) in journals {
        let records: Vec<Record> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (Some(Record::RunStarted { workflow, at, .. }), Some(last)) = (records.first(), records.last())
        else {
            panic!("`{id}` does not begin");
        };
        let mut run = RunSummary::running(Arc::clone(workflow), *at);
        if let Record::RunEnded { status, .. } = last {
            run = run.ended(*status);
        }
        store.append(id, Position(0), Write { records, run }).await.unwrap();
    }
    store
}

/// The actions of a run, and its result.
async fn seen<W: Workflow<Output: std::fmt::Debug>>(run: &RunHandle<W>) -> String {
    let mut text = match run.outcome().await {
        Ok(output) => format!("{}: {output:?}\n", run.status()),
        Err(error) => format!("{}: {error}\n", run.status()),
    };
    let report = run.report().await.unwrap();
    for logged in &report.log {
        let value = logged.value.to_json().unwrap();
        writeln!(text, "{} {} in {}: {value}", logged.seq, logged.event, logged.scope).unwrap();
    }
    for execution in &report.trace {
        writeln!(text, "{} {} by {}", execution.execution, execution.step, execution.trigger).unwrap();
    }
    text
}

/// The start of a run, and its continuation to the end.
struct Golden<W: Workflow> {
    name: &'static str,
    hosts: fn(EngineBuilder) -> EngineBuilder,
    options: RunOptions,
    /// Actions before the journal is taken.
    before: Script<W>,
    /// Actions on the resumed run.
    after: Script<W>,
}

type Script<W> = fn(RunHandle<W>) -> BoxFuture<'static, ()>;

impl<W: Workflow<Output: std::fmt::Debug>> Golden<W> {
    /// A run of a single workflow, until it ends.
    fn new(name: &'static str, hosts: fn(EngineBuilder) -> EngineBuilder) -> Self {
        let options = RunOptions::new().id(name).thread("golden");
        let ends: Script<W> = |run| Box::pin(async move { drop(run.outcome().await) });
        Self { name, hosts, options, before: ends, after: ends }
    }

    /// Writes the journal, compares it with the file, reads the file, resumes the run, and compares the result.
    async fn check(self, begin: u32) {
        let Self { name, hosts, options, before, after } = self;
        let store = Arc::new(MemoryStore::default());
        let run = engine(&store, hosts).start_with::<W>(Begin(begin), options).await.unwrap();
        before(run.clone()).await;
        same_by_its_records(&run, &store).await;
        drop(run);
        same_as_files(name, journals(&store).await, after, hosts).await;
    }
}

/// Asserts that the written journals equal the files, and that reading them gives the stored result.
async fn same_as_files<W: Workflow<Output: std::fmt::Debug>>(
    name: &str,
    written: Vec<(RunId, String)>,
    after: Script<W>,
    hosts: fn(EngineBuilder) -> EngineBuilder,
) {
    let mut kept = Vec::new();
    for (id, lines) in written {
        let (expected, path) = file(&format!("{}.jsonl", id.as_str().replace('/', ".")));
        expected.assert_eq(&lines);
        kept.push((id, std::fs::read_to_string(path).unwrap()));
    }
    let store = read(&kept).await;
    // Reading and writing gives the same journal.
    assert_eq!(journals(&store).await, kept);
    let run = engine(&store, hosts).attach::<W>(name).await.unwrap();
    after(run.clone()).await;
    same_by_its_records(&run, &store).await;
    file(&format!("{name}.txt")).0.assert_eq(&seen(&run).await);
}

#[test]
fn the_files_have_the_latest_format() {
    assert_eq!(
        JOURNAL_FORMAT, 1,
        "each format has a folder: write the next one's in a new folder, and read all"
    );
}

/// Every kind of record and every optional field occurs in some file.
#[test]
fn the_files_have_every_kind_of_record() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/durable/journals/v1");
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            text += &std::fs::read_to_string(path).unwrap();
        }
    }
    let records: Vec<Record> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_there = |is: fn(&Record) -> bool| records.iter().any(is);
    let causes: [fn(&Cause) -> bool; 6] = [
        |cause| matches!(cause, Cause::Outside),
        |cause| matches!(cause, Cause::Reply(_)),
        |cause| matches!(cause, Cause::Expired(_)),
        |cause| matches!(cause, Cause::Timer { .. }),
        |cause| matches!(cause, Cause::Execution(_)),
        |cause| matches!(cause, Cause::Failure(_)),
    ];
    for (place, is) in causes.into_iter().enumerate() {
        let logged = |record: &Record| matches!(record, Record::EventLogged { cause, .. } if is(cause));
        assert!(records.iter().any(logged), "cause {place} is missing");
    }
    let kinds: [fn(&Record) -> bool; 24] = [
        |record| matches!(record, Record::RunStarted { parent: None, timeout: None, .. }),
        |record| matches!(record, Record::RunStarted { parent: Some(_), awaited: true, .. }),
        |record| matches!(record, Record::RunStarted { private_thread: true, .. }),
        |record| matches!(record, Record::RunStarted { timeout: Some(_), .. }),
        |record| matches!(record, Record::RunStarted { configs, .. } if !configs.is_empty()),
        |record| matches!(record, Record::RunStarted { metadata, .. } if !metadata.is_empty()),
        |record| matches!(record, Record::EventLogged { event, .. } if event.version() > 1),
        |record| matches!(record, Record::TimerSet { request: None, .. }),
        |record| matches!(record, Record::TimerSet { request: Some(_), .. }),
        |record| matches!(record, Record::FanOutGathered { .. }),
        |record| matches!(record, Record::PreconditionAnswered { .. }),
        |record| matches!(record, Record::ExecutionSucceeded { fan_outs, .. } if fan_outs.is_empty()),
        |record| matches!(record, Record::ExecutionSucceeded { fan_outs, .. } if fan_outs.iter().any(|opened| opened.concurrency.is_some())),
        |record| matches!(record, Record::ExecutionSucceeded { fan_outs, .. } if fan_outs.iter().any(|opened| opened.only_busy && opened.until.is_some())),
        |record| matches!(record, Record::RetryScheduled { compacts: false, .. }),
        |record| matches!(record, Record::RetryScheduled { compacts: true, .. }),
        |record| matches!(record, Record::ExecutionFailed { .. }),
        |record| matches!(record, Record::ChildStarted { .. }),
        |record| matches!(record, Record::ChildrenEnded { children, .. } if children[0].status == RunStatus::Failed),
        |record| matches!(record, Record::ChildrenEnded { children, .. } if children[0].status == RunStatus::Cancelled),
        |record| matches!(record, Record::RunResumed { table: None, .. }),
        |record| matches!(record, Record::RunResumed { table: Some(_), .. }),
        |record| matches!(record, Record::RunEnded { error: Some(_), step: Some(_), .. }),
        |record| matches!(record, Record::RunEnded { error: None, step: None, .. }),
    ];
    for (place, is) in kinds.into_iter().enumerate() {
        assert!(is_there(is), "kind {place} is missing");
    }
}
