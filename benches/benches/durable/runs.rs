//! Whole runs at the same time, with a store that shares commits and with one that commits each batch by itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use workflow_benches::in_turns;
use workflow_core::prelude::*;
use workflow_core::{
    Batch, EngineId, EventStore, Position, Record, Retention, RunId, RunQuery, StoreFuture, StoredRun,
};
use workflow_redb::RedbStore;

use crate::scale::Scale;
use crate::{folder, runtime};
use workflow_benches::figure::{Figure, Target, per_second};

/// How many runs go on at the same time.
const RUNS: u64 = 32;

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

/// A store that begins a commit when the one before is done.
struct OneByOne {
    store: RedbStore,
    turn: Arc<Mutex<()>>,
}

impl EventStore for OneByOne {
    fn append(&self, run: &RunId, expected: Position, batch: Batch) -> StoreFuture<()> {
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

struct Contender {
    runtime: Runtime,
    engine: Engine,
    _folder: TempDir,
}

impl Contender {
    fn new<S: EventStore>(store: impl FnOnce(RedbStore) -> S) -> Self {
        let folder = folder();
        let opened = RedbStore::open(folder.path().join("runs.redb")).expect("a store can be made");
        let engine = Engine::builder().workflow(Five).store(store(opened)).build().expect("it is sound");
        Self { runtime: runtime(), engine, _folder: folder }
    }

    /// So many runs at the same time, each followed by others.
    fn turn(&self, runs_each: u64) -> Duration {
        let began = Instant::now();
        let started: Vec<_> = (0..RUNS)
            .map(|_| {
                let engine = self.engine.clone();
                self.runtime.spawn(async move {
                    for _ in 0..runs_each {
                        let run = engine.start::<Five>(Begin).await.expect("it starts");
                        assert_eq!(run.outcome().await.expect("it completes"), Shipped(5));
                    }
                })
            })
            .collect();
        for runs in started {
            self.runtime.block_on(runs).expect("no run panics");
        }
        began.elapsed()
    }
}

pub(crate) fn measure(scale: &Scale) -> Vec<Figure> {
    let shared = Contender::new(|store| store);
    let alone = Contender::new(|store| OneByOne { store, turn: Arc::default() });
    let runs = scale.runs_each;
    let times = in_turns(scale.turns, vec![Box::new(|| shared.turn(runs)), Box::new(|| alone.turn(runs))]);
    let rate = |time| per_second(RUNS * runs, time);
    vec![
        Figure::new("runs/32", "runs/s", rate(times[0]), rate(times[1]))
            .beside("a commit per batch")
            .target(Target::AtLeast(20.0)),
    ]
}
