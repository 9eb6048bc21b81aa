//! Engines that end while a step blocks its thread (S31, S39).

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, Record};
use workflow_core::{RunOptions, RunStatus};

use crate::fixtures::{Begin, Done, Item, until};

/// Blocks its thread until the test lets it go.
#[derive(Clone)]
struct Blocks {
    entered: Sender<()>,
    goes: Arc<Mutex<Receiver<()>>>,
}

impl Blocks {
    fn block(&self) {
        self.entered.send(()).unwrap();
        let _ = self.goes.lock().unwrap_or_else(PoisonError::into_inner).recv();
    }
}

#[workflow]
impl Blocks {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(spawn = false, precondition = is_here)]
    async fn here(&self, _item: &Item) -> Done {
        self.block();
        Done(0)
    }

    #[step(spawn, precondition = is_elsewhere)]
    async fn elsewhere(&self, _item: &Item) -> Done {
        self.block();
        Done(0)
    }

    #[precondition]
    fn is_here(item: &Item) -> bool {
        item.0 == 0
    }

    #[precondition]
    fn is_elsewhere(item: &Item) -> bool {
        item.0 == 1
    }
}

/// Waits for ever.
struct Rests;

#[workflow]
impl Rests {
    #[step]
    async fn rest(&self, _begin: &Begin) -> Done {
        std::future::pending().await
    }
}

/// Ends an engine whose step blocks its thread.
async fn ends(has_store: bool, elsewhere: bool, shuts_down: bool) {
    let why = format!("store {has_store}, spawned {elsewhere}, shut down {shuts_down}");
    let ((entered, has_entered), (goes, go)) = (channel(), channel());
    let blocks = Blocks { entered, goes: Arc::new(Mutex::new(go)) };
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(blocks).workflow(Rests);
    let engine = if has_store { engine.store(Arc::clone(&store)) } else { engine }.build().unwrap();
    let rests = engine.start::<Rests>(Begin(0)).await.unwrap();
    let options = RunOptions::new().id("r");
    let run = engine.start_with::<Blocks>(Begin(u32::from(elsewhere)), options).await.unwrap();
    tokio::task::spawn_blocking(move || has_entered.recv().unwrap()).await.unwrap();
    let began = Instant::now();
    let within = Duration::from_millis(100);
    let ended = async {
        if shuts_down {
            engine.shut_down(within).await;
            Vec::new()
        } else {
            engine.cancel_all("the office closes", within).await
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
    let lack_the_cancel = ended.unwrap_or_else(|_| panic!("{why}: no end"));
    assert!(began.elapsed() < Duration::from_secs(15), "{why}: it took {:?}", began.elapsed());
    let error = run.outcome().await.unwrap_err();
    let is_open = has_store && !shuts_down && matches!(error, RunError::Detached);
    assert_eq!(lack_the_cancel, is_open.then(|| run.id().clone()).into_iter().collect::<Vec<_>>(), "{why}");
    match error {
        RunError::Cancelled { .. } => assert!(!has_store || !shuts_down, "{why}: {error}"),
        RunError::Detached => assert!(has_store, "{why}: {error}"),
        other => panic!("{why}: {other}"),
    }
    assert!(rests.outcome().await.is_err() && run.status() == RunStatus::Cancelled, "{why}");
    goes.send(()).unwrap();
    until(async || engine.running().is_empty()).await;
    assert_eq!(run.status(), RunStatus::Cancelled, "{why}");
    if has_store {
        let journal = store.read(run.id(), Position(0), usize::MAX).await.unwrap();
        let ends = journal.iter().filter(|record| matches!(record, Record::RunEnded { .. }));
        assert!(ends.count() <= 1, "{why}");
    }
}

// S31, S39
#[tokio::test(flavor = "multi_thread", worker_threads = 12)]
async fn an_engine_ends_in_its_time_though_a_step_blocks_its_thread() {
    // Each case blocks a thread of the runtime, and waits for two seconds.
    let cases = (0..8).map(|case| ends(case & 1 > 0, case & 2 > 0, case & 4 > 0));
    futures::future::join_all(cases).await;
}
