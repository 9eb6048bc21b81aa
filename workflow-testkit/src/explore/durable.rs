//! The store of an explored run: it keeps journals in memory, and each confirmation is an operation of the run.

use std::sync::Arc;
use std::time::Duration;

use workflow_core::RunId;
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreFuture, StoredRun, Write,
};

use super::footprint::Footprint;
use super::gate::{Actor, Gate};

/// A store that keeps a write at once and confirms it at its turn. It confirms writes of child runs at once.
pub(super) struct GatedStore {
    kept: MemoryStore,
    run: RunId,
    gate: Arc<Gate>,
}

impl GatedStore {
    pub(super) fn new(run: RunId, gate: Arc<Gate>) -> Self {
        Self { kept: MemoryStore::default(), run, gate }
    }
}

fn words_of(records: &[Record]) -> String {
    let said = records.iter().filter_map(|record| match record {
        Record::EventLogged { seq, event, .. } => Some(format!("{seq} {}", event.name())),
        Record::FanOutGathered { seq, fan_out, .. } => Some(format!("{seq}, the gathered {fan_out}")),
        Record::RunWaiting { .. } => Some("that the run waits".to_owned()),
        Record::ChildrenEnded { .. } => Some("the ends of children".to_owned()),
        Record::RunPaused { .. } => Some("that the run is paused".to_owned()),
        Record::RunUnpaused { .. } => Some("that the run is unpaused".to_owned()),
        Record::RunDetached { .. } => Some("that the run is detached".to_owned()),
        Record::CleanUpStarted { .. } => Some("that clean-up begins".to_owned()),
        Record::RunEnded { .. } => Some("the end of the run".to_owned()),
        Record::AttemptBegan { step, .. } => Some(format!("that an attempt of {step} begins")),
        Record::RetryScheduled { step, .. } => Some(format!("a retry of {step}")),
        Record::ExecutionFailed { step, .. } => Some(format!("the failure of {step}")),
        _ => None,
    });
    let said: Vec<String> = said.collect();
    let said = if said.is_empty() { "what has no events".to_owned() } else { said.join(", ") };
    format!("the store confirms {said}")
}

impl EventStore for GatedStore {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let words = words_of(&batch.records);
        let appended = self.kept.append(run, expected, batch);
        // Before its beginning is confirmed there is no run to be explored.
        if *run != self.run || expected == Position(0) {
            return appended;
        }
        let gate = Arc::clone(&self.gate);
        StoreFuture::new(async move {
            appended.await?;
            gate.pass(Actor::Store, words, Footprint::Confirmation).await;
            Ok(())
        })
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

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.kept.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.kept.lease(engine, duration)
    }
}
