//! Steps on threads of their own that still run when their runs end: nothing of the run begins beside them (S31, S39).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use workflow_core::prelude::*;
use workflow_core::store::MemoryStore;
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
async fn a_redrive_begins_once_the_dropped_steps_are_gone() {
    let bench = Bench::default();
    let engine =
        Engine::builder().store(MemoryStore::default()).workflow(Blocks(bench.clone())).build().unwrap();
    let run = engine.start_with::<Blocks>(Begin(1), RunOptions::new().id("b")).await.unwrap();
    bench.is_used().await;
    // The run ends while the step has its thread.
    run.cancel("enough").await.unwrap();
    let mut redriven = Box::pin(engine.redrive::<Blocks>("b"));
    for _ in 0..100 {
        assert!(futures::poll!(&mut redriven).is_pending());
        tokio::task::yield_now().await;
    }
    bench.free.store(true, Ordering::SeqCst);
    assert_eq!(redriven.await.unwrap().outcome().await.unwrap(), Done(1));
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
    let cancels = tokio::spawn({
        let run = run.clone();
        async move { run.cancel("enough").await }
    });
    until(async || run.status() == workflow_core::RunStatus::CleaningUp).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert!(bench.undone.lock().unwrap().is_empty(), "the step still has its thread");
    }
    bench.free.store(true, Ordering::SeqCst);
    cancels.await.unwrap().unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
    assert_eq!(*bench.undone.lock().unwrap(), [0]);
}
