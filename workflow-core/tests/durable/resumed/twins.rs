//! Every process finds a child again by its id (S39): from each journal that a process leaves, the next one makes the
//! same runs as the first, and no others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use workflow_core::prelude::*;
use workflow_core::store::{EngineId, Position, Record, Retention, StoreFuture, StoredRun, Write};
use workflow_core::store::{EventStore, MemoryStore, RunQuery};
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunId, RunOptions};

use crate::fixtures::{Begin, Done, Item, Part};
use crate::resumed::found::copy;

/// A store that is copied after every append: the content if the process is killed there.
#[derive(Clone, Default)]
struct Photographed {
    kept: Arc<MemoryStore>,
    left: Arc<tokio::sync::Mutex<Vec<Arc<MemoryStore>>>>,
}

impl EventStore for Photographed {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let (all, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            // Serialised, so that each copy has one append more.
            let mut left = all.left.lock().await;
            all.kept.append(&run, expected, batch).await?;
            left.push(copy(&all.kept).await);
            Ok(())
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.kept.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.kept.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.kept.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.kept.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: std::time::Duration) -> StoreFuture<Vec<EngineId>> {
        self.kept.lease(engine, duration)
    }
}

/// The numbers of begun and ended children, over all processes.
#[derive(Debug, Clone, Default)]
struct Counts {
    ended: Arc<AtomicU32>,
}

/// The child.
struct Child(Counts);

#[workflow]
impl Child {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
        Done(item.0)
    }
}

/// Starts its child behind a precondition, in a second attempt, beside executions without preconditions.
struct Parent;

fn at_once() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, std::time::Duration::ZERO))
}

#[workflow]
impl Parent {
    #[precondition]
    async fn is_wanted(&self, begin: &Begin) -> bool {
        tokio::task::yield_now().await;
        begin.0 > 0
    }

    #[step(precondition = is_wanted, retry = at_once())]
    async fn delegate(&self, begin: &Begin, children: &Children, info: &RunInfo) -> Result<Part, StepError> {
        if info.attempt() == 1 {
            return Err(StepError::transient("busy"));
        }
        Ok(Part(children.run::<Child>(begin.clone()).await?.0))
    }

    #[step]
    async fn beside(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, part: &Part, item: &Item) -> Done {
        Done(part.0 + item.0)
    }
}

fn engine(store: impl EventStore, counts: &Counts) -> Engine {
    Engine::builder().workflow(Parent).workflow(Child(counts.clone())).store(store).build().unwrap()
}

async fn ids(store: &MemoryStore) -> BTreeSet<String> {
    let runs = store.runs(&RunQuery::new()).await.unwrap();
    runs.into_iter().map(|stored| stored.id.to_string()).collect()
}

fn ends(records: &[Record], of: &str) -> usize {
    let is_end =
        |record: &&Record| matches!(record, Record::ExecutionSucceeded { step, .. } if **step == *of);
    records.iter().filter(is_end).count()
}

// S20, S39
#[tokio::test]
async fn a_child_behind_a_precondition_and_of_a_second_attempt_is_the_same_from_every_prefix() {
    let first = Photographed::default();
    let counts = Counts::default();
    let whole = engine(first.clone(), &counts);
    let run = whole.start_with::<Parent>(Begin(7), RunOptions::new().id("r")).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(14));
    let expected = ids(&first.kept).await;
    assert_eq!(expected.len(), 2, "{expected:?}");
    assert_eq!(counts.ended.load(Ordering::SeqCst), 1);
    let left = std::mem::take(&mut *first.left.lock().await);
    assert!(left.len() >= 7, "{} appends", left.len());
    for (appends, store) in left.into_iter().enumerate() {
        let engine = engine(Arc::clone(&store), &Counts::default());
        let run = engine.attach::<Parent>("r").await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(14), "after {appends} appends");
        engine.cancel_all("the engine is shutting down", std::time::Duration::from_mins(1)).await;
        assert_eq!(ids(&store).await, expected, "after {appends} appends");
        for (id, step) in expected.iter().flat_map(|id| [(id, "end"), (id, "first"), (id, "delegate")]) {
            let records = store.read(&id.as_str().into(), Position(0), usize::MAX).await.unwrap();
            assert!(ends(&records, step) <= 1, "`{step}` of {id} after {appends} appends");
            let begins = |record: &&Record| matches!(record, Record::RunStarted { .. });
            assert_eq!(records.iter().filter(begins).count(), 1);
        }
    }
}
