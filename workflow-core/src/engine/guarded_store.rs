//! The store as an engine calls it. A panic of the store is an error, and so is an answer that is missing when the
//! engine gives up. A call that begins after that has a time of its own: a run whose step has blocked its thread until then
//! still writes its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::SHORTEST_PATIENCE;
use super::ending::sleep_or_pend;
use crate::clock::EngineClock;
use crate::id::{EngineId, RunId};
use crate::panics::{caught, caught_in};
use crate::patience::StorePatience;
use crate::store::{
    ContextStore, EventStore, Inbox, Position, Record, Retention, RunQuery, StoreError, StoreFuture,
    StoredRun, Write,
};

/// An engine's store, with the two guards.
pub(crate) struct GuardedStore {
    store: Arc<dyn EventStore>,
    patience: StorePatience,
    clock: EngineClock,
}

impl GuardedStore {
    pub(crate) fn new(store: Arc<dyn EventStore>, patience: StorePatience, clock: EngineClock) -> Self {
        Self { store, patience, clock }
    }

    /// Calls the store. A ready answer costs nothing more, and another one costs an allocation.
    fn call<T: Send + Unpin + 'static>(
        &self,
        call: impl FnOnce(&dyn EventStore) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        let answer = match caught(|| call(&*self.store)) {
            Ok(answer) if answer.is_ready() => return answer,
            Ok(answer) => answer,
            Err(panic) => return StoreFuture::ready(Err(StoreError::unavailable(panic))),
        };
        let (patience, clock, is_late) =
            (self.patience.clone(), self.clock.clone(), self.patience.has_ended());
        StoreFuture::new(async move {
            let answer = caught_in(answer);
            let answered = if is_late {
                match select(pin!(answer), pin!(sleep_or_pend(clock, SHORTEST_PATIENCE))).await {
                    Either::Left((answered, _)) => answered,
                    Either::Right(_) => return Err(StoreError::ShutDown),
                }
            } else {
                patience.wait(answer).await?
            };
            answered.unwrap_or_else(|panic| Err(StoreError::unavailable(panic)))
        })
    }
}

impl EventStore for GuardedStore {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
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

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        self.store.contexts()
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.store.inbox()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::super::ending::Ending;
    use super::*;
    use crate::id::RunId;
    use crate::store::{MemoryStore, Position, Record, Retention, RunQuery, StoreFuture, StoredRun, Write};

    /// Panics when it lists runs or writes, and never answers a read.
    struct Broken;

    impl EventStore for Broken {
        fn append(&self, _: &RunId, _: Position, _: Write) -> StoreFuture<()> {
            StoreFuture::new(async { panic!("while it writes") })
        }

        fn read(&self, _: &RunId, _: Position, _: usize) -> StoreFuture<Vec<Record>> {
            StoreFuture::new(std::future::pending())
        }

        fn runs(&self, _: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
            panic!("at once")
        }

        fn remove(&self, _: &RunId) -> StoreFuture<bool> {
            StoreFuture::ready(Ok(true))
        }

        fn retain(&self, _: &Retention) -> StoreFuture<u64> {
            StoreFuture::ready(Ok(0))
        }

        fn lease(&self, _: &EngineId, _: Duration) -> StoreFuture<Vec<EngineId>> {
            StoreFuture::ready(Ok(Vec::new()))
        }
    }

    #[test]
    fn a_panic_of_the_store_is_an_error() {
        let store = GuardedStore::new(Arc::new(Broken), Ending::default().patience(), EngineClock::default());
        let runs = store.runs(&RunQuery::new()).now_or_never().unwrap();
        assert!(matches!(runs, Err(StoreError::Unavailable { .. })));
        let batch = Write {
            records: Vec::new(),
            run: crate::store::RunSummary::running("w", std::time::SystemTime::UNIX_EPOCH),
        };
        let written = store.append(&"r".into(), Position(0), batch).now_or_never().unwrap();
        assert!(matches!(written, Err(StoreError::Unavailable { .. })));
    }

    #[test]
    fn an_answer_that_never_comes_is_an_error_once_the_engine_gives_up() {
        let ending = Ending::default();
        let store = GuardedStore::new(Arc::new(Broken), ending.patience(), EngineClock::default());
        let mut read = store.read(&"r".into(), Position(0), 1);
        assert!((&mut read).now_or_never().is_none());
        ending.give_up();
        assert!(matches!(read.now_or_never(), Some(Err(StoreError::ShutDown))));
    }

    /// Lists runs at the second look.
    struct Slow;

    impl EventStore for Slow {
        fn append(&self, _: &RunId, _: Position, _: Write) -> StoreFuture<()> {
            StoreFuture::ready(Ok(()))
        }

        fn read(&self, _: &RunId, _: Position, _: usize) -> StoreFuture<Vec<Record>> {
            StoreFuture::ready(Ok(Vec::new()))
        }

        fn runs(&self, _: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
            StoreFuture::new(async {
                tokio::task::yield_now().await;
                Ok(Vec::new())
            })
        }

        fn remove(&self, _: &RunId) -> StoreFuture<bool> {
            StoreFuture::ready(Ok(false))
        }

        fn retain(&self, _: &Retention) -> StoreFuture<u64> {
            StoreFuture::ready(Ok(0))
        }

        fn lease(&self, _: &EngineId, _: Duration) -> StoreFuture<Vec<EngineId>> {
            StoreFuture::ready(Ok(Vec::new()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_begins_after_the_engine_gave_up_is_answered() {
        let ending = Ending::default();
        let stores: [Arc<dyn EventStore>; 2] = [Arc::new(Slow), Arc::new(Broken)];
        let [slow, broken] =
            stores.map(|it| GuardedStore::new(it, ending.patience(), EngineClock::default()));
        ending.give_up();
        assert!(slow.runs(&RunQuery::new()).await.is_ok());
        let late = broken.read(&"r".into(), Position(0), 1).await;
        assert!(matches!(late, Err(StoreError::ShutDown)), "it has a second");
    }

    #[test]
    fn an_answer_that_is_there_passes() {
        let (patience, clock) = (Ending::default().patience(), EngineClock::default());
        let store = GuardedStore::new(Arc::new(MemoryStore::default()), patience, clock);
        assert!(store.runs(&RunQuery::new()).is_ready());
        assert!(!store.serialises());
    }
}
