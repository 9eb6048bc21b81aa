//! Crashes with shared and separate writes: each planted mistake shows in one way of confirming, and passes with a
//! store that confirms at once.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use workflow_core::RunId;
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreFuture, StoredRun, Write,
};
use workflow_testkit::{Confirms, CrashStore, Scenario, Start, crash_everywhere};

use crate::stores::crashes::{Begin, Done, Item, failure};

/// Three steps that complete one after the other at one point of time.
struct Staggered;

async fn later(turns: u32) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Side(u32);

#[workflow]
impl Staggered {
    #[step]
    async fn one(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn two(&self, begin: &Begin) -> Item {
        later(20).await;
        Item(begin.0 + 1)
    }

    #[step]
    async fn three(&self, begin: &Begin) -> Item {
        later(40).await;
        Item(begin.0 + 2)
    }

    #[step]
    async fn beside(&self, begin: &Begin) -> Side {
        later(60).await;
        Side(begin.0)
    }

    #[step]
    async fn end(&self, items: &FixedList<Item, 3>, side: &Side) -> Done {
        Done(items.iter().map(|item| item.0).sum::<u32>() + side.0)
    }
}

fn staggered(store: impl EventStore) -> Start<Staggered> {
    Scenario::new(Staggered).engine(|engine| engine.store(store)).start(Begin(1))
}

#[tokio::test]
async fn how_batches_share_writes_depends_on_when_the_store_confirms() {
    let survived = async |ways: &[Confirms]| {
        let crashes = crash_everywhere(staggered).confirming(ways.iter().copied()).pairs(20);
        let survived = crashes.await;
        assert_eq!(survived.once(), 2 * survived.appends(), "{survived}");
        survived
    };
    let [at_once, late] = [survived(&[Confirms::AtOnce]).await, survived(&[Confirms::Late]).await];
    // Start; the four; the end. With late confirmation, three of the four share a write.
    assert_eq!((at_once.appends(), late.appends()), (6, 4));
    // Each of the four already has its own write, and there is no other run to be out of step with.
    let all = survived(Confirms::ALL).await;
    assert_eq!(all.appends(), 10);
    assert!((15..=20).contains(&all.twice()), "{all}");
    assert_eq!(survived(&[]).await, at_once);
}

/// Keeps only the first completion of a write.
#[derive(Default)]
struct Forgets(MemoryStore);

impl EventStore for Forgets {
    fn append(&self, run: &RunId, expected: Position, mut batch: Write) -> StoreFuture<()> {
        let completes = |record: &Record| matches!(record, Record::ExecutionSucceeded { .. });
        let mut completions = batch.records.iter().enumerate().filter(|(_, record)| completes(record));
        if let Some((second, _)) = completions.nth(1) {
            batch.records.truncate(second);
        }
        self.0.append(run, expected, batch)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.0.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.0.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.0.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.0.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.0.lease(engine, duration)
    }
}

#[tokio::test]
async fn a_store_that_loses_a_batch_of_a_write_is_found() {
    let forgets = || crash_everywhere(staggered).on(Forgets::default).pairs(5);
    assert!(forgets().confirming([Confirms::OneByOne]).await.once() > 0);
    let said = failure(forgets().confirming([Confirms::OneByOne, Confirms::Late])).await;
    assert!(said.starts_with("where the store confirms late, the oldest write first: "), "{said}");
    assert!(said.contains("the store has not what it was given"), "{said}");
}

/// A store that reports each write as confirmed when it gets it, so runs do not wait.
struct Hasty(CrashStore);

impl EventStore for Hasty {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        tokio::spawn(self.0.append(run, expected, batch));
        StoreFuture::ready(Ok(()))
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.0.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.0.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.0.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.0.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.0.lease(engine, duration)
    }
}

#[tokio::test]
async fn a_run_that_acts_on_what_is_not_confirmed_is_found() {
    let hasty = || crash_everywhere(|store| staggered(Hasty(store))).pairs(5);
    let heard = "in `scenario` observers heard of #1 Begin before the store had confirmed it";
    // With immediate confirmation, a confirmation that never comes shows.
    let said = failure(hasty().confirming([Confirms::AtOnce])).await;
    assert!(
        said.contains("the store went down at append 1, whose batch was stored but not confirmed"),
        "{said}"
    );
    assert!(said.contains(heard), "{said}");
    let said = failure(hasty().confirming([Confirms::Late])).await;
    assert_eq!(said, format!("where the store confirms late, the oldest write first: {heard}"));
}

/// One step leaves a value in the process for the other; both complete at the same time.
#[derive(Default)]
struct Whispers {
    said: AtomicU32,
}

#[workflow]
impl Whispers {
    #[step]
    async fn say(&self, begin: &Begin) -> Item {
        self.said.store(begin.0, Ordering::Relaxed);
        Item(begin.0)
    }

    #[step]
    async fn hear(&self, _: &Begin) -> Side {
        Side(self.said.load(Ordering::Relaxed))
    }

    #[step]
    async fn end(&self, item: &Item, side: &Side) -> Done {
        Done(item.0 * 10 + side.0)
    }
}

#[tokio::test]
async fn what_is_lost_between_two_batches_that_share_a_write_is_found() {
    let whispers = || {
        crash_everywhere(|store| {
            Scenario::new(Whispers::default()).engine(|engine| engine.store(store)).start(Begin(4))
        })
    };
    assert!(whispers().confirming([Confirms::AtOnce]).await.once() > 0);
    let said = failure(whispers()).await;
    assert!(said.contains("it is completed with Done 40\n  instead of completed with Done 44"), "{said}");
    assert!(
        said.contains("where the store confirms each write at once, and steps complete one by one"),
        "{said}"
    );
}

/// Has a child, and concurrent work of its own.
struct Parents;

#[workflow]
impl Parents {
    #[step]
    async fn ask(&self, begin: &Begin, children: &Children) -> Result<Side, RunError> {
        Ok(Side(children.run::<Staggered>(Begin(begin.0)).await?.0))
    }

    #[step]
    async fn work(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn on(&self, item: &Item) -> Fact {
        later(10).await;
        Fact(item.0)
    }

    #[step]
    async fn end(&self, fact: &Fact, side: &Side) -> Done {
        Done(fact.0 + side.0)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Fact(u32);

#[tokio::test]
async fn children_whose_writes_are_confirmed_out_of_step_survive() {
    fn survived(ways: &[Confirms]) -> impl Future<Output = (u64, u64)> + use<> {
        let crashes = crash_everywhere(|store| {
            Scenario::new(Parents).host(Staggered).engine(|engine| engine.store(store)).start(Begin(1))
        });
        let crashes = crashes.confirming(ways.to_vec()).pairs(30).into_future();
        async move {
            let survived = crashes.await;
            assert_eq!(survived.once(), 2 * survived.appends(), "{survived}");
            (survived.appends(), survived.twice())
        }
    }
    let late = survived(&[Confirms::Late]).await;
    let out_of_step = survived(&[Confirms::Late, Confirms::OthersFirst, Confirms::OthersLast]).await;
    assert!(out_of_step.0 > late.0, "{out_of_step:?}, {late:?}");
    // The same each time.
    assert_eq!(survived(Confirms::ALL).await, survived(Confirms::ALL).await);
}
