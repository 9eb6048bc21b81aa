//! The delay of a new run beside busy ones. The tests count turns: how often each other run has had its turn between
//! the start of the new run and its first step. They read no clock.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use workflow_core::RunHandle;
use workflow_core::prelude::*;

use crate::fixtures::{Begin, Done, Item, until};

/// The progress of each busy run.
#[derive(Clone, Default)]
struct Progress(Arc<Mutex<Vec<u64>>>);

impl Progress {
    fn of(runs: u32) -> Self {
        Self(Arc::new(Mutex::new(vec![0; runs as usize])))
    }

    fn count(&self, run: u32) {
        self.0.lock().unwrap()[run as usize] += 1;
    }

    fn now(&self) -> Vec<u64> {
        self.0.lock().unwrap().clone()
    }
}

/// Is polled once in each turn of its run, and never ends.
struct Polled(Progress);

#[workflow]
impl Polled {
    #[step]
    async fn go_on(&self, begin: &Begin) -> Done {
        loop {
            self.0.count(begin.0);
            tokio::task::yield_now().await;
        }
    }
}

/// Executes consecutive steps, none of which waits.
struct Executing(Progress);

#[workflow]
impl Executing {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(loops)]
    async fn next(&self, item: &Item) -> (Item, Option<Done>) {
        self.0.count(item.0);
        (item.clone(), None)
    }
}

/// Records the others' progress when it begins.
struct New {
    progress: Progress,
    seen: Arc<Mutex<Vec<u64>>>,
}

#[workflow]
impl New {
    #[step]
    async fn begin(&self, begin: &Begin) -> Done {
        *self.seen.lock().unwrap() = self.progress.now();
        Done(begin.0)
    }
}

/// The progress of a kind of run before a new one began: all values that occurred, with this many busy runs, and with
/// the new one started at this many moments.
async fn before_a_new_run_begins<W: Workflow>(
    busy: u32,
    moments: usize,
    kind: impl Fn(Progress) -> W,
) -> BTreeSet<u64> {
    let (progress, seen) = (Progress::of(busy), Arc::default());
    let new = New { progress: progress.clone(), seen: Arc::clone(&seen) };
    let engine = Engine::builder().workflow(kind(progress.clone())).workflow(new);
    let engine = engine.max_executions_per_run(u64::MAX).build().unwrap();
    let mut others: Vec<RunHandle<W>> = Vec::new();
    for number in 0..busy {
        others.push(engine.start::<W>(Begin(number)).await.unwrap());
    }
    until(|| progress.now().iter().all(|done| *done > 0)).await;
    let mut between = BTreeSet::new();
    for moment in 0..moments {
        for _ in 0..moment {
            tokio::task::yield_now().await;
        }
        let began_with = progress.now();
        let run = engine.start::<New>(Begin(0)).await.unwrap();
        run.outcome().await.unwrap();
        between.extend(seen.lock().unwrap().iter().zip(&began_with).map(|(then, before)| then - before));
    }
    between
}

// S21
#[tokio::test]
async fn a_new_run_begins_after_one_turn_of_each_other_run_whether_ten_are_busy_or_a_thousand() {
    for busy in [10, 1_000] {
        let turns = before_a_new_run_begins(busy, 16, Polled).await;
        assert_eq!(turns, BTreeSet::from([1]), "with {busy} busy runs");
    }
}

/// The number of actions in one turn of a run. Each execution takes several actions.
const SLICE: u64 = 256;

// S21
#[tokio::test]
async fn a_turn_of_each_other_run_is_a_slice_of_its_executions_whether_ten_are_busy_or_a_hundred() {
    for busy in [10, 100] {
        let executions = before_a_new_run_begins(busy, 4, Executing).await;
        let most = executions.last().copied().unwrap();
        assert!(most > 0 && most <= SLICE, "{most} executions with {busy} busy runs");
    }
}
