//! The store as an engine calls it: a panic is an error, and what has not answered when the engine gives up waiting for
//! it is one too.

use std::sync::Arc;
use std::time::Duration;

use super::ending::Patience;
use crate::id::{EngineId, RunId};
use crate::panics::{caught, caught_in};
use crate::store::{
    Batch, EventStore, Position, Record, Retention, RunQuery, StoreError, StoreFuture, StoredRun,
};

/// An engine's store.
pub(super) struct Guarded {
    store: Arc<dyn EventStore>,
    patience: Patience,
}

impl Guarded {
    pub(super) fn new(store: Arc<dyn EventStore>, patience: Patience) -> Self {
        Self { store, patience }
    }

    /// An answer that is there costs nothing more. One that takes time costs an allocation.
    fn call<T: Send + Unpin + 'static>(
        &self,
        call: impl FnOnce(&dyn EventStore) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        let answer = match caught(|| call(&*self.store)) {
            Ok(answer) if answer.is_ready() => return answer,
            Ok(answer) => answer,
            Err(panic) => return StoreFuture::ready(Err(StoreError::unavailable(panic))),
        };
        let patience = self.patience.clone();
        StoreFuture::new(async move {
            patience
                .wait(caught_in(answer))
                .await?
                .unwrap_or_else(|panic| Err(StoreError::unavailable(panic)))
        })
    }
}

impl EventStore for Guarded {
    fn append(&self, run: &RunId, expected: Position, batch: Batch) -> StoreFuture<()> {
        self.call(|store| store.append(run, expected, batch))
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.call(|store| store.read(run, from, at_most))
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.call(|store| store.runs(query))
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.call(|store| store.remove(run))
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.call(|store| store.retain(kept))
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.call(|store| store.lease(engine, duration))
    }

    fn serialises(&self) -> bool {
        self.store.serialises()
    }
}
