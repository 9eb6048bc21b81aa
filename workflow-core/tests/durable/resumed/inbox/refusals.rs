//! Messages that their runs refuse (S67): settled once the journal has the cause.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;
use workflow_core::prelude::*;
use workflow_core::report::RequestId;
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunMessage, RunQuery, StoreError,
    StoreFuture, StoredRun, Write,
};
use workflow_core::{AnyRun, Pause, RunId, RunOptions, RunStatus, Seq};

use super::{Approve, Closed, Desk, World, note};
use crate::fixtures::Begin;

/// A store whose writes wait while it holds them, and fail when it lets them go.
struct Holding {
    kept: Arc<MemoryStore>,
    holds: AtomicBool,
    lets_go: Arc<Notify>,
    error: fn() -> StoreError,
}

impl Holding {
    fn new(world: &World, error: fn() -> StoreError) -> Arc<Self> {
        let kept = Arc::clone(&world.store);
        Arc::new(Self { kept, holds: AtomicBool::new(false), lets_go: Arc::default(), error })
    }
}

impl EventStore for Holding {
    fn append(&self, run: &RunId, expected: Position, write: Write) -> StoreFuture<()> {
        if !self.holds.load(Ordering::SeqCst) {
            return self.kept.append(run, expected, write);
        }
        let (lets_go, error) = (Arc::clone(&self.lets_go), self.error);
        StoreFuture::new(async move {
            lets_go.notified().await;
            Err(error())
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

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.kept.lease(engine, duration)
    }
}

fn unavailable() -> StoreError {
    StoreError::unavailable(std::io::Error::other("no route"))
}

fn refused() -> StoreError {
    StoreError::unserialisable(std::io::Error::other("too large"))
}

/// The world's run `a`, which waits in an engine with this store.
async fn waiting(world: &World, store: &Arc<Holding>) -> (Engine, AnyRun) {
    let engine = Engine::builder().workflow(world.desk.clone()).clock(world.clock.clone());
    let engine = engine.store(Arc::clone(store)).inbox(Arc::clone(&world.inbox)).build().unwrap();
    let run = engine.start_with::<Desk>(Begin(0), RunOptions::new().id("a")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    tokio::time::sleep(Duration::from_secs(1)).await;
    store.holds.store(true, Ordering::SeqCst);
    let run = run.any().clone();
    (engine, run)
}

/// Lets a handle act on a run beside a message of its inbox, while the store holds the writes. `turns` is how many turns
/// other tasks have between the two.
async fn acts_beside<F: Future<Output = ()> + Send + 'static>(
    (engine, world): (&Engine, &World),
    message: RunMessage,
    turns: usize,
    act: F,
) {
    world.put("1", message);
    engine.notify_inbox(&"a".into());
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    tokio::spawn(act);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((world.pending().await, world.inbox.refused().len()), (1, 0), "after {turns} turns");
}

// S67, S38: the reply for which another one is refused never reached the store.
#[tokio::test(start_paused = true)]
async fn a_reply_is_refused_once_the_journal_has_the_earlier_one() {
    for turns in 0..6 {
        let world = World::new();
        let store = Holding::new(&world, unavailable);
        let (engine, run) = waiting(&world, &store).await;
        let replies = run.clone();
        // Of one step, and so between the two steps of the message.
        let replies = async move { drop(replies.reply(RequestId::<Approve>::new(Seq(2)), false).await) };
        let message = RunMessage::Reply { request: Seq(2), data: json!(true) };
        acts_beside((&engine, &world), message, turns, replies).await;
        store.lets_go.notify_one();
        run.outcome_any().await.unwrap_err();
        assert_eq!((world.pending().await, world.inbox.refused().len()), (1, 0), "after {turns} turns");
        let run = world.engine().attach::<Desk>("a").await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Closed(true), "after {turns} turns");
    }
}

// S67, S38: the store refuses the reply for which another one is refused, which the run then takes.
#[tokio::test(start_paused = true)]
async fn a_reply_is_taken_if_the_store_refuses_the_earlier_one() {
    for turns in 0..6 {
        let world = World::new();
        let store = Holding::new(&world, refused);
        let (engine, run) = waiting(&world, &store).await;
        let replies = run.clone();
        let replies = async move { drop(replies.reply(RequestId::<Approve>::new(Seq(2)), false).await) };
        let message = RunMessage::Reply { request: Seq(2), data: json!(true) };
        acts_beside((&engine, &world), message, turns, replies).await;
        store.holds.store(false, Ordering::SeqCst);
        store.lets_go.notify_one();
        // The handle's reply is the one that the store refuses if it came first.
        timeout(Duration::from_hours(1), run.outcome_any()).await.unwrap().unwrap();
        world.drained().await;
        let journaled = world.journaled().await.len();
        assert_eq!(journaled + world.inbox.refused().len(), 1, "after {turns} turns");
    }
}

// S67, S38: the end for which a message is refused never reached the store.
#[tokio::test(start_paused = true)]
async fn a_message_is_refused_once_the_journal_has_the_end() {
    let answer = RunMessage::Reply { request: Seq(2), data: json!(true) };
    for message in [note(1), RunMessage::Unpause, RunMessage::Pause { how: Pause::Now }, answer] {
        for turns in 0..6 {
            let world = World::new();
            let store = Holding::new(&world, unavailable);
            let (engine, run) = waiting(&world, &store).await;
            let cancels = run.clone();
            let cancels = async move { drop(cancels.cancel("enough").await) };
            acts_beside((&engine, &world), message.clone(), turns, cancels).await;
            store.lets_go.notify_one();
            run.outcome_any().await.unwrap_err();
            assert_eq!((world.pending().await, world.inbox.refused().len()), (1, 0), "after {turns} turns");
            let _run = world.engine().attach::<Desk>("a").await.unwrap();
            world.drained().await;
            assert!(world.inbox.refused().is_empty(), "after {turns} turns");
        }
    }
}

// S67: a message that comes after the end is refused by the engine that is notified.
#[tokio::test(start_paused = true)]
async fn a_message_to_a_run_that_has_ended_is_refused_at_the_next_call() {
    let world = World::waiting().await;
    let engine = world.engine();
    engine.attach::<Desk>("a").await.unwrap().cancel("enough").await.unwrap();
    for engine in [engine, world.engine()] {
        world.put("1", note(1));
        assert!(!engine.notify_inbox(&"a".into()), "it is not here");
        world.drained().await;
        let refused = world.inbox.refused();
        assert!(refused.last().unwrap().reason.contains("cancelled"), "{refused:?}");
    }
    assert_eq!(world.inbox.refused().len(), 2);
}

// S67: an engine that does not have an open run leaves its messages.
#[tokio::test(start_paused = true)]
async fn a_message_to_an_open_run_stays_for_the_engine_that_takes_it_up() {
    let world = World::waiting().await;
    world.put("1", note(1));
    let engine = world.engine();
    for run in ["a", "nobody"] {
        assert!(!engine.notify_inbox(&run.into()));
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((world.pending().await, engine.running().len()), (1, 0));
}
