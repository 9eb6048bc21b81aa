//! Cutting journals, and going on from what is left.

use std::future::Future;
use std::sync::{Arc, Mutex};

use workflow_core::prelude::*;
use workflow_core::{
    Batch, EngineBuilder, EventStore, MemoryStore, Position, Record, RunError, RunHandle, RunId, RunOptions,
    RunQuery, RunReport, RunStatus, StartEvent, StoreFuture, StoredRun,
};
use workflow_testkit::VirtualClock;

/// A store that knows the batches that it was given. Clones are one store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batches {
    kept: Arc<MemoryStore>,
    given: Arc<Mutex<Vec<(RunId, Position, Batch)>>>,
}

impl Batches {
    pub(crate) fn len(&self) -> usize {
        self.given.lock().unwrap().len()
    }

    /// What is there after so many batches, as bytes have it.
    pub(crate) async fn first(&self, batches: usize) -> Self {
        let given: Vec<_> = self.given.lock().unwrap().iter().take(batches).cloned().collect();
        let store = Self::default();
        for (run, position, Batch { records, run: summary, .. }) in given {
            let records = records.iter().map(reread).collect();
            store.kept.append(&run, position, Batch { records, run: summary }).await.unwrap();
        }
        store
    }

    pub(crate) async fn journal(&self, run: &RunId) -> Vec<Record> {
        self.kept.read(run, Position(0), usize::MAX).await.unwrap()
    }
}

/// The record as it comes back from a store that keeps bytes.
fn reread(record: &Record) -> Record {
    serde_json::from_slice(&serde_json::to_vec(record).unwrap()).unwrap()
}

impl EventStore for Batches {
    fn append(&self, run: &RunId, expected: Position, batch: Batch) -> StoreFuture<()> {
        self.given.lock().unwrap().push((run.clone(), expected, batch.clone()));
        self.kept.append(run, expected, batch)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.kept.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.kept.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.kept.remove(run)
    }
}

/// How a run ended, in a form in which two can be compared.
#[derive(Debug, PartialEq)]
pub(crate) struct Ending {
    status: RunStatus,
    outcome: Result<serde_json::Value, String>,
    /// The events of the log, without their order.
    log: Vec<String>,
    executions: Vec<(String, u64)>,
}

impl Ending {
    fn of<W: Workflow<Output: serde::Serialize>>(
        outcome: &Result<W::Output, RunError>,
        report: &RunReport,
    ) -> Self {
        let mut log: Vec<String> = report
            .log
            .iter()
            .map(|logged| {
                format!("{} in {}: {}", logged.event, logged.scope, logged.value.to_json().unwrap())
            })
            .collect();
        log.sort();
        Self {
            status: report.status,
            outcome: outcome
                .as_ref()
                .map(|output| serde_json::to_value(output).unwrap())
                .map_err(ToString::to_string),
            log,
            executions: report.steps.iter().map(|row| (row.step.to_string(), row.executions)).collect(),
        }
    }
}

/// Runs a workflow to its end, and then again from each prefix of its journal: every one has to lead to the same end.
pub(crate) async fn from_every_prefix<W, P, F>(
    host: impl Fn() -> EngineBuilder,
    begin: impl StartEvent + Clone,
    play: P,
) where
    W: Workflow<Output: serde::Serialize>,
    P: Fn(RunHandle<W>) -> F,
    F: Future<Output = ()>,
{
    let whole = Batches::default();
    let engine = host().store(whole.clone()).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start_with::<W>(begin, RunOptions::new().id("r")).await.unwrap();
    play(run.clone()).await;
    let expected = Ending::of::<W>(&run.outcome().await, &*run.report().await.unwrap());
    for batches in 1..=whole.len() {
        let store = whole.first(batches).await;
        let before = store.journal(&"r".into()).await;
        let engine = host().store(store.clone()).clock(VirtualClock::new()).build().unwrap();
        let run = engine.attach::<W>("r").await.unwrap();
        play(run.clone()).await;
        let outcome = run.outcome().await;
        let found = Ending::of::<W>(&outcome, &*run.report().await.unwrap());
        assert_eq!(found, expected, "after {batches} batches of {}: {before:#?}", whole.len());
        let after = store.journal(&"r".into()).await;
        assert!(matches!(after.last(), Some(Record::RunEnded { .. })));
        // And once more, from the end.
        let engine = host().store(store).clock(VirtualClock::new()).build().unwrap();
        let run = engine.attach::<W>("r").await.unwrap();
        let again = Ending::of::<W>(&run.outcome().await, &*run.report().await.unwrap());
        assert_eq!(again, found);
    }
}

/// Nobody has anything to say.
pub(crate) async fn nobody<W>(_: RunHandle<W>) {}

/// Opens every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Begin(pub(crate) u32);

/// Comes from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Note(pub(crate) u32);

/// Is passed from step to step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Item(pub(crate) u32);

/// Is passed from step to step as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
pub(crate) struct Part(pub(crate) u32);

/// Ends every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Done(pub(crate) u32);
