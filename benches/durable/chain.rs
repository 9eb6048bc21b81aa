//! One durable run, step by step, and the same number of plain commits.

use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use workflow_core::Engine;
use workflow_redb::RedbStore;

use super::bare::{Bare, Prepared};
use super::records::{RECORDS, batch};
use crate::work::chain::{Begin, Clock};

/// An engine whose store is in a file.
#[derive(Debug)]
pub struct Chain {
    engine: Engine,
    _folder: TempDir,
}

impl Chain {
    /// With a file in that folder.
    ///
    /// # Panics
    /// If the file cannot be made.
    pub fn new(folder: TempDir) -> Self {
        let store = RedbStore::open(folder.path().join("runs.redb")).expect("a store can be made");
        let engine = Engine::builder().workflow(Clock).store(store).build().expect("it is sound");
        Self { engine, _folder: folder }
    }

    /// The time of a run of this many steps.
    ///
    /// # Panics
    /// If it fails.
    pub fn turn(&self, runtime: &Runtime, steps: u64) -> Duration {
        let engine = self.engine.clone();
        let began = Instant::now();
        let run = runtime.spawn(async move {
            let run = engine.start::<Clock>(Begin { steps }).await.expect("it starts");
            run.outcome().await.expect("it completes")
        });
        runtime.block_on(run).expect("it does not panic");
        began.elapsed()
    }
}

/// redb itself, with a commit for each step.
#[derive(Debug)]
pub struct Commits {
    bare: Bare,
    done: u64,
    _folder: TempDir,
}

impl Commits {
    /// With a file in that folder.
    pub fn new(folder: TempDir) -> Self {
        Self { bare: Bare::create(&folder.path().join("bare.redb")), done: 0, _folder: folder }
    }

    /// The time of this many commits, each with the batch of one step.
    ///
    /// # Panics
    /// If one fails.
    pub fn turn(&mut self, commits: u64) -> Duration {
        let numbers = self.done..self.done + commits;
        self.done = numbers.end;
        let batches: Vec<_> =
            numbers.map(|number| Prepared::alone("chain", number * RECORDS, &batch(number))).collect();
        let began = Instant::now();
        for batch in batches {
            self.bare.commit(&[batch]).expect("it is committed");
        }
        began.elapsed()
    }
}
