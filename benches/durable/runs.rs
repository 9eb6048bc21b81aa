//! Concurrent whole runs, with a store that shares commits and with one that commits each batch separately.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use workflow_core::RunId;
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, Position, Record, Retention, RunQuery, StoreFuture, StoredRun, Write,
};
use workflow_redb::RedbStore;

/// The number of concurrent runs.
pub const RUNS: u64 = 32;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Asked(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Reserved(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Charged(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Packed(u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Shipped(u64);

/// Five steps, one after the other.
struct Five;

#[workflow]
impl Five {
    #[step]
    async fn ask(&self, _: &Begin) -> Asked {
        Asked(1)
    }

    #[step]
    async fn reserve(&self, asked: &Asked) -> Reserved {
        Reserved(asked.0 + 1)
    }

    #[step]
    async fn charge(&self, reserved: &Reserved) -> Charged {
        Charged(reserved.0 + 1)
    }

    #[step]
    async fn pack(&self, charged: &Charged) -> Packed {
        Packed(charged.0 + 1)
    }

    #[step]
    async fn ship(&self, packed: &Packed) -> Shipped {
        Shipped(packed.0 + 1)
    }
}

/// A store that begins a commit only after the previous one.
struct OneByOne {
    store: RedbStore,
    turn: Arc<Mutex<()>>,
}

impl EventStore for OneByOne {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let (turn, append) = (Arc::clone(&self.turn), self.store.append(run, expected, batch));
        StoreFuture::new(async move {
            let _turn = turn.lock().await;
            append.await
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.store.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.store.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.store.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.store.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.store.lease(engine, duration)
    }
}

/// An engine whose store is in a file.
#[derive(Debug)]
pub struct Runs {
    engine: Engine,
    _folder: TempDir,
}

impl Runs {
    /// An engine whose runs share commits.
    pub fn shared(folder: TempDir) -> Self {
        Self::new(folder, |store| store)
    }

    /// An engine whose store commits each batch separately.
    pub fn one_by_one(folder: TempDir) -> Self {
        Self::new(folder, |store| OneByOne { store, turn: Arc::default() })
    }

    fn new<S: EventStore>(folder: TempDir, store: impl FnOnce(RedbStore) -> S) -> Self {
        let opened = RedbStore::open(folder.path().join("runs.redb")).expect("a store can be made");
        let engine = Engine::builder().workflow(Five).store(store(opened)).build().expect("it is sound");
        Self { engine, _folder: folder }
    }

    /// The time of this many concurrent runs, each followed by others.
    ///
    /// # Panics
    /// If one fails.
    pub fn turn(&self, runtime: &Runtime, runs_each: u64) -> Duration {
        let began = Instant::now();
        let started: Vec<_> = (0..RUNS)
            .map(|_| {
                let engine = self.engine.clone();
                runtime.spawn(async move {
                    for _ in 0..runs_each {
                        let run = engine.start::<Five>(Begin).await.expect("it starts");
                        assert_eq!(run.outcome().await.expect("it completes"), Shipped(5));
                    }
                })
            })
            .collect();
        for runs in started {
            runtime.block_on(runs).expect("no run panics");
        }
        began.elapsed()
    }
}
