//! Steps on threads of their own that still run when their runs end: nothing of the run begins beside them (S31, S39).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use workflow_core::prelude::*;
use workflow_core::store::{EventStore as _, MemoryStore, Position, Record};
use workflow_core::{RunError, RunOptions};

use crate::fixtures::{Begin, Done, until};

/// How many steps run now, and whether they may return.
#[derive(Clone, Default)]
struct Bench {
    working: Arc<AtomicU32>,
    most: Arc<AtomicU32>,
    begun: Arc<AtomicU32>,
    free: Arc<AtomicBool>,
    undone: Arc<Mutex<Vec<u32>>>,
}

impl Bench {
    /// Blocks the thread until the bench is free.
    fn work(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let now = self.working.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        while !self.free.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        self.working.fetch_sub(1, Ordering::SeqCst);
    }

    async fn is_used(&self) {
        until(async || self.working.load(Ordering::SeqCst) == 1).await;
    }
}

struct Blocks(Bench);

#[workflow]
impl Blocks {
    #[step(spawn)]
    async fn work(&self, begin: &Begin) -> Done {
        self.0.work();
        // The first attempt is aborted, and ends here.
        tokio::task::yield_now().await;
        Done(begin.0)
    }
}

// S39
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_run_ends_in_its_journal_once_its_dropped_steps_are_gone() {
    let (bench, store) = (Bench::default(), Arc::new(MemoryStore::default()));
    let engine = Engine::builder().store(Arc::clone(&store)).workflow(Blocks(bench.clone())).build().unwrap();
    let run = engine.start_with::<Blocks>(Begin(1), RunOptions::new().id("b")).await.unwrap();
    bench.is_used().await;
    run.cancel("enough").await.unwrap();
    // Nobody can redrive the run while the step has its thread.
    for _ in 0..100 {
        tokio::task::yield_now().await;
        let records = store.read(&"b".into(), Position(0), 100).await.unwrap();
        assert!(!records.iter().any(|record| matches!(record, Record::RunEnded { .. })), "{records:?}");
        assert!(engine.redrive::<Blocks>("b").await.is_err());
    }
    bench.free.store(true, Ordering::SeqCst);
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
    let redriven = engine.redrive::<Blocks>("b").await.unwrap();
    assert_eq!(redriven.outcome().await.unwrap(), Done(1));
    assert_eq!((bench.begun.load(Ordering::SeqCst), bench.most.load(Ordering::SeqCst)), (2, 1));
}

struct Undoes(Bench);

#[workflow]
impl Undoes {
    #[step(spawn)]
    async fn work(&self, begin: &Begin) -> Done {
        self.0.work();
        Done(begin.0)
    }

    #[step(on_end)]
    async fn undo(&self, _begin: &Begin) {
        let working = self.0.working.load(Ordering::SeqCst);
        self.0.undone.lock().unwrap().push(working);
    }
}

// S31
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn clean_up_steps_begin_once_dropped_steps_are_gone() {
    let bench = Bench::default();
    let engine = Engine::builder().workflow(Undoes(bench.clone())).build().unwrap();
    let run = engine.start::<Undoes>(Begin(1)).await.unwrap();
    bench.is_used().await;
    run.cancel("enough").await.unwrap();
    until(async || run.status() == workflow_core::RunStatus::CleaningUp).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert!(bench.undone.lock().unwrap().is_empty(), "the step still has its thread");
    }
    bench.free.store(true, Ordering::SeqCst);
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
    assert_eq!(*bench.undone.lock().unwrap(), [0]);
}
