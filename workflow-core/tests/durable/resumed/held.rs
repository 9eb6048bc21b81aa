//! A store that holds appends.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use workflow_core::RunId;
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreError, StoreFuture,
    StoredRun, Write,
};

/// A store that holds the appends of some runs.
#[derive(Clone, Default)]
pub(super) struct Held {
    pub(super) kept: Arc<MemoryStore>,
    closed_to: Arc<Mutex<HashSet<String>>>,
    failed_for: Arc<Mutex<HashSet<String>>>,
    opened: Arc<Notify>,
}

impl Held {
    /// Over another store, with nothing held.
    pub(super) fn over(kept: Arc<MemoryStore>) -> Self {
        Self { kept, ..Self::default() }
    }

    pub(super) fn hold(&self, run: &str) {
        self.closed_to.lock().unwrap().insert(run.into());
    }

    /// Fails the appends of the run that it holds, and all later ones.
    pub(super) fn fail(&self, run: &str) {
        self.failed_for.lock().unwrap().insert(run.into());
        self.release();
    }

    /// Fails no more appends.
    pub(super) fn recover(&self) {
        self.failed_for.lock().unwrap().clear();
    }

    pub(super) fn release(&self) {
        self.closed_to.lock().unwrap().clear();
        self.opened.notify_waiters();
    }
}

impl EventStore for Held {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let (store, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            loop {
                let opened = store.opened.notified();
                if !store.closed_to.lock().unwrap().contains(run.as_str()) {
                    break;
                }
                opened.await;
            }
            if store.failed_for.lock().unwrap().contains(run.as_str()) {
                return Err(StoreError::unavailable(std::io::Error::other("on purpose")));
            }
            store.kept.append(&run, expected, batch).await
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
