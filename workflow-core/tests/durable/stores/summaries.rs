//! Summaries of runs: their fields after each kind of write, those of earlier releases, and the bound on labels.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::store::{
    EventStore, MemoryStore, Position, Record, RunQuery, RunSummary, StoredRun, WaitingFor, Write,
};
use workflow_core::{RunId, RunOptions, RunStatus, StartError};
use workflow_testkit::conformance::event_store::Subject;
use workflow_testkit::conformance::event_store::population::{Population, queries_of_a_population};

use crate::fixtures::{Begin, Done, Item};
use crate::shapes::{Asks, Branches, Catches, Fails, Joins, Loops, Parents};

struct World {
    store: Arc<MemoryStore>,
    engine: Engine,
}

fn world() -> World {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(Joins).workflow(Loops).workflow(Parents).workflow(Catches);
    let engine = engine.workflow(Fails).workflow(Branches).workflow(Asks).store(Arc::clone(&store));
    World { store, engine: engine.build().unwrap() }
}

impl World {
    /// Runs a workflow to its end, and returns its summary with the records.
    async fn ended<W: Workflow>(&self, begin: u32, options: RunOptions) -> (StoredRun, Vec<Record>) {
        let run = self.engine.start_with::<W>(Begin(begin), options).await.unwrap();
        let _ = run.outcome().await;
        (self.listed(run.id()).await, self.records(run.id()).await)
    }

    async fn listed(&self, run: &RunId) -> StoredRun {
        self.store.runs(&RunQuery::new().run(run.clone())).await.unwrap().remove(0)
    }

    async fn records(&self, run: &RunId) -> Vec<Record> {
        self.store.read(run, Position(0), usize::MAX).await.unwrap()
    }
}

/// The time in the last record, which ends the run.
fn end_of(records: &[Record]) -> SystemTime {
    let Some(Record::RunEnded { at, .. }) = records.last() else { panic!("{:?}", records.last()) };
    *at
}

/// The record of the stop event.
fn stop_of(stored: &StoredRun, records: &[Record]) -> serde_json::Value {
    let stop = usize::try_from(stored.run.stop.unwrap().0).unwrap();
    let Record::EventLogged { event, .. } = &records[stop] else { panic!("{:?}", records[stop]) };
    event.to_json().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_completed_run_is_summed_up_with_its_start_and_its_end() {
    let world = world();
    let options = RunOptions::new().id("r").thread("ada").metadata("tenant", "acme").metadata("", "ä");
    let (stored, records) = world.ended::<Joins>(3, options).await;
    let run = &stored.run;
    assert_eq!((run.status, run.quality), (RunStatus::Completed, Some(Quality::Clean)));
    assert_eq!(run.thread, Some("ada".into()));
    let labels = [("tenant", "acme"), ("", "ä")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(*run.metadata, BTreeMap::from(labels));
    assert_eq!((&run.parent, run.ended), (&None, Some(end_of(&records))));
    let output = world.engine.attach::<Joins>("r").await.unwrap().outcome().await.unwrap();
    assert_eq!(stop_of(&stored, &records), serde_json::to_value(output).unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_summed_up_without_a_stop_event() {
    let world = world();
    let (StoredRun { run, .. }, records) = world.ended::<Fails>(1, RunOptions::new()).await;
    assert_eq!((run.status, run.quality, run.stop), (RunStatus::Failed, Some(Quality::Failed), None));
    assert_eq!(run.ended, Some(end_of(&records)));
    assert!(run.thread.is_some(), "a thread of its own is a thread");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_handled_a_failure_is_degraded_and_so_is_its_report() {
    let world = world();
    for degraded in [
        world.ended::<Catches>(1, RunOptions::new().id("caught")).await,
        world.ended::<Branches>(4, RunOptions::new().id("branches")).await,
    ] {
        let (stored, records) = degraded;
        assert_eq!((stored.run.status, stored.run.quality), (RunStatus::Completed, Some(Quality::Degraded)));
        assert!(!stop_of(&stored, &records).is_null());
        let report = world.engine.attach_any(stored.id).await.unwrap().report().await.unwrap();
        assert_eq!(report.quality, Quality::Degraded);
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_is_summed_up_with_its_parent() {
    let world = world();
    world.ended::<Parents>(2, RunOptions::new().id("p")).await;
    let children = world.store.runs(&RunQuery::new().after("p")).await.unwrap();
    assert_eq!(children.len(), 2);
    for child in children {
        let parent = child.run.parent.unwrap();
        assert_eq!((parent.run.as_str(), &*parent.step, parent.attempt), ("p", "first", 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_redriven_run_has_not_ended() {
    let world = world();
    let (before, _) = world.ended::<Fails>(1, RunOptions::new().id("r").thread("ada")).await;
    assert!(before.run.ended.is_some());
    let records = world.records(&"r".into()).await;
    let (redrive, now) = (workflow_core::Redrive::new(), SystemTime::now());
    let write = workflow_core::RecordedRun::redrive(&"r".into(), &records, &redrive, now).unwrap();
    let run = &write.run;
    assert_eq!((run.status, run.ended, run.quality, run.stop), (RunStatus::Running, None, None, None));
    assert_eq!((&run.thread, run.started), (&before.run.thread, before.run.started));
    let run = before.run.running_again();
    assert_eq!((run.ended, run.quality, run.stop), (None, None, None));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_run_keeps_its_facts_through_a_restart() {
    let world = world();
    let options = RunOptions::new().id("r").thread("ada").metadata("tenant", "acme");
    let run = world.engine.start_with::<Asks>(Begin(1), options).await.unwrap();
    run.settled().await;
    let id = run.id().clone();
    crate::fixtures::until(async || world.listed(&id).await.run.status == RunStatus::Waiting).await;
    let waiting = world.listed(&id).await.run;
    assert_eq!((waiting.ended, waiting.quality, waiting.stop), (None, None, None));
    world.engine.shut_down(Duration::ZERO).await;

    let engine = Engine::builder().workflow(Asks).store(Arc::clone(&world.store)).build().unwrap();
    let run = engine.attach::<Asks>("r").await.unwrap();
    run.settled().await;
    let request = run.requests().await.unwrap().remove(0);
    run.reply_json(request.seq(), serde_json::json!(7)).await.unwrap();
    run.outcome().await.unwrap();
    let (stored, records) = (world.listed(&id).await, world.records(&id).await);
    assert_eq!((&stored.run.thread, &stored.run.metadata), (&waiting.thread, &waiting.metadata));
    assert_eq!(stored.run.started, waiting.started);
    assert!(stop_of(&stored, &records).is_number());
}

/// No engine writes a stop event without the end of the run, and a tool may cut a journal there.
#[tokio::test(start_paused = true)]
async fn a_journal_that_lacks_only_its_end_is_summed_up_with_its_stop_event() {
    let world = world();
    let (before, mut records) = world.ended::<Joins>(3, RunOptions::new().id("r")).await;
    records.pop();
    let run = RunSummary::begun_by(&records[0]).unwrap();
    let store = Arc::new(MemoryStore::default());
    store.append(&"r".into(), Position(0), Write { records, run }).await.unwrap();
    let engine = Engine::builder().workflow(Joins).store(Arc::clone(&store)).build().unwrap();
    engine.attach::<Joins>("r").await.unwrap().outcome().await.unwrap();
    let after = store.runs(&RunQuery::new()).await.unwrap().remove(0).run;
    assert_eq!((after.status, after.stop), (RunStatus::Completed, before.run.stop));
    assert!(after.stop.is_some() && after.ended.is_some());
}

#[test]
fn a_summary_of_an_earlier_release_is_read_with_empty_fields() {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let json = r#"{"workflow":"Orders","status":"completed","started":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}"#;
    let run: RunSummary = serde_json::from_str(json).unwrap();
    assert_eq!(run, RunSummary::running("Orders", started).ended(RunStatus::Completed));
    assert!(run.thread.is_none() && run.metadata.is_empty() && run.parent.is_none());
    let text = r#"{"workflow":"Orders","status":"completed","started":"2023-11-14T22:13:20.000000000Z"}"#;
    assert_eq!(serde_json::to_string(&run).unwrap(), text, "empty fields are left out");
    assert_eq!(serde_json::from_str::<RunSummary>(text).unwrap(), run);
}

// S78
#[test]
fn the_record_of_a_wait_has_its_time_as_every_release_wrote_it() {
    let json = r#"{"run_waiting":{"waits_for":{"requests":["Approve"],"open_requests":1,"events":["Paid"],"until":{"secs_since_epoch":1700000009,"nanos_since_epoch":8}},"at":{"secs_since_epoch":1700000000,"nanos_since_epoch":0}}}"#;
    let record: Record = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&record).unwrap(), json);
    let Record::RunWaiting { waits_for, .. } = record else { unreachable!() };
    let shown = serde_json::to_value(&waits_for).unwrap();
    assert_eq!(shown["until"], "2023-11-14T22:13:29.000000008Z");
    assert_eq!(serde_json::from_value::<WaitingFor>(shown).unwrap(), waits_for);
}

/// Labels whose JSON has this many bytes.
fn labels(bytes: usize) -> RunOptions {
    RunOptions::new().metadata("k", "v".repeat(bytes - r#"{"k":""}"#.len()))
}

/// Starts a child with labels of 8 KiB and one byte.
struct Labels;

#[workflow]
impl Labels {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Item {
        let options = labels(RunSummary::MAX_METADATA_BYTES + 1);
        let child = children.run_with::<Joins>(Begin(begin.0), options).await;
        assert!(child.unwrap_err().to_string().contains("8193 bytes"));
        Item(1)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_with_more_than_8_kib_of_labels_is_refused() {
    let world = world();
    let most = RunSummary::MAX_METADATA_BYTES;
    let (stored, _) = world.ended::<Joins>(1, labels(most).id("most")).await;
    assert_eq!(serde_json::to_vec(&stored.run.metadata).unwrap().len(), most);
    let refused = world.engine.start_with::<Joins>(Begin(1), labels(most + 1).id("more")).await;
    let Err(StartError::TooMuchMetadata { bytes, limit }) = refused else { panic!("{refused:?}") };
    assert_eq!((bytes, limit), (most + 1, most));
    assert_eq!(world.store.runs(&RunQuery::new().run("more")).await.unwrap(), []);
    let store = MemoryStore::default();
    let engine = Engine::builder().workflow(Joins).workflow(Labels).store(store).build().unwrap();
    assert_eq!(engine.start::<Labels>(Begin(1)).await.unwrap().outcome().await.unwrap(), Done(1));
}

#[tokio::test(start_paused = true)]
async fn larger_labels_of_an_earlier_release_are_left_out_of_the_summary() {
    let world = world();
    let (_, records) = world.ended::<Joins>(1, RunOptions::new()).await;
    let mut first = records[0].clone();
    let Record::RunStarted { metadata, .. } = &mut first else { panic!("{first:?}") };
    metadata.insert("k".to_owned(), "v".repeat(RunSummary::MAX_METADATA_BYTES));
    assert!(RunSummary::begun_by(&first).unwrap().metadata.is_empty());
    assert_eq!(RunSummary::begun_by(&records[1]), None);
}

#[test]
fn queries_of_10_000_runs_in_memory_equal_a_scan() {
    let size = Population { runs: 10_000, queries: 300, alone: true };
    queries_of_a_population(Subject::new(MemoryStore::default), size);
}
