//! A store that counts its calls, so that a check that hangs can name the call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use workflow_core::RunId;
use workflow_core::store::{
    ContextStore, EngineId, EventStore, Inbox, Position, Record, Retention, RunQuery, StoreFuture, StoredRun,
    Write,
};

use crate::conformance::stage::Progress;

/// The calls of a check.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    begun: u64,
    /// The number of calls begun plus the number ended.
    moments: u64,
    last: String,
}

impl Calls {
    fn begin(self: &Arc<Self>, call: String) -> Call {
        let mut counted = self.counted();
        counted.begun += 1;
        counted.moments += 1;
        counted.last = call;
        Call(Arc::clone(self))
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Calls {
    fn moments(&self) -> u64 {
        self.counted().moments
    }

    fn last(&self) -> String {
        let counted = self.counted();
        match counted.begun {
            0 => "no call was made".to_owned(),
            calls => format!("{calls} calls were made, the last was {}", counted.last),
        }
    }
}

/// A call in progress; dropping this value ends it.
struct Call(Arc<Calls>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.counted().moments += 1;
    }
}

/// A store whose calls are counted.
pub(super) struct Watched<S> {
    store: S,
    calls: Arc<Calls>,
}

impl<S: EventStore> Watched<S> {
    pub(super) fn new(store: S, calls: &Arc<Calls>) -> Self {
        Self { store, calls: Arc::clone(calls) }
    }

    /// Makes the call in the same poll as its caller does.
    fn call<T: Send + Unpin + 'static>(
        &self,
        call: String,
        make: impl FnOnce(&S) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        let call = self.calls.begin(call);
        let answer = make(&self.store);
        StoreFuture::new(async move {
            let _call = call;
            answer.await
        })
    }
}

impl<S: EventStore> EventStore for Watched<S> {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let call = format!("`append` of {} records to {run:?} at {expected}", batch.records.len());
        self.call(call, |store| store.append(run, expected, batch))
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        let call = format!("`read` of {run:?} from {from}, at most {at_most}");
        self.call(call, |store| store.read(run, from, at_most))
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.call("`runs`".to_owned(), |store| store.runs(query))
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.call(format!("`remove` of {run:?}"), |store| store.remove(run))
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.call("`retain`".to_owned(), |store| store.retain(kept))
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.call(format!("`lease` of {engine:?} for {duration:?}"), |store| store.lease(engine, duration))
    }

    fn serialises(&self) -> bool {
        self.store.serialises()
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        self.store.contexts()
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.store.inbox()
    }
}
