//! A dropped store can be opened again at once, from any place that dropped it.

use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{join_all, poll_immediate};
use tokio::runtime::{Builder, Runtime};
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, Position, RunQuery, StoreFuture};
use workflow_redb::{RedbStore, StoreFile};

use crate::fixtures::{Place, batch};

/// The number of tries of each way.
const TIMES: u64 = 500;

/// The number of engines, which take longer: `REOPENED=500` makes more than a test needs each time.
fn engines() -> u64 {
    std::env::var("REOPENED").ok().and_then(|times| times.parse().ok()).unwrap_or(100)
}

fn reopened(place: &Place, time: u64) -> RedbStore {
    RedbStore::open(&place.file).unwrap_or_else(|error| panic!("time {time}: {error}"))
}

/// Appends and reads in tasks with their own handles; one of these is the last.
async fn dropped_in_tasks() {
    let place = Place::new();
    for time in 0..TIMES {
        let store = reopened(&place, time);
        let tasks = (0..4).map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let run = format!("run-{number}").into();
                store.append(&run, Position(2 * time), batch(2 * time..2 * time + 2)).await.unwrap();
                store.read(&run, Position(0), 10).await.unwrap();
            })
        });
        let tasks = join_all(tasks.collect::<Vec<_>>());
        drop(store);
        for done in tasks.await {
            done.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_that_tasks_dropped_is_opened_at_once() {
    dropped_in_tasks().await;
}

#[tokio::test]
async fn a_store_that_tasks_of_one_thread_dropped_is_opened_at_once() {
    dropped_in_tasks().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_with_abandoned_calls_is_opened_at_once() {
    let place = Place::new();
    for time in 0..TIMES {
        let store = reopened(&place, time);
        let mut read = Box::pin(store.runs(&RunQuery::new()));
        let mut append = Box::pin(store.append(&"a".into(), Position(0), batch(0..2)));
        drop(poll_immediate(&mut read).await);
        drop(poll_immediate(&mut append).await);
        drop((read, append, store));
    }
}

/// A call whose waker drops it, on the store's own thread, with the last handle.
struct Woken {
    call: Mutex<Option<StoreFuture<()>>>,
    dropped: mpsc::Sender<()>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        drop(self.call.lock().unwrap().take());
        self.dropped.send(()).unwrap();
    }
}

#[test]
fn a_store_that_its_own_thread_dropped_is_opened_at_once() {
    let place = Place::new();
    for time in 0..TIMES {
        let store = reopened(&place, time);
        let (dropped, drops) = mpsc::channel();
        let call = store.append(&"a".into(), Position(2 * time), batch(2 * time..2 * time + 2));
        drop(store);
        let woken = Arc::new(Woken { call: Mutex::new(Some(call)), dropped });
        let waker = Waker::from(Arc::clone(&woken));
        let mut call = woken.call.lock().unwrap();
        let polled = call.as_mut().unwrap().poll_unpin(&mut Context::from_waker(&waker));
        drop(call);
        match polled {
            Poll::Pending => drops.recv().unwrap(),
            Poll::Ready(appended) => {
                appended.unwrap();
                drop(woken.call.lock().unwrap().take());
            }
        }
        // Read-only opens wait in the same way.
        if time % 2 == 0 {
            drop(StoreFile::open(&place.file).unwrap());
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Begin;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Note;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Done;

struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn end(&self, _begin: &Begin, _note: &Note) -> Done {
        Done
    }
}

/// Runs an engine on a store until both are dropped: one of two runs ends, the other waits.
async fn run_an_engine(store: RedbStore) {
    let engine = Engine::builder().workflow(Waits).store(store).build().unwrap();
    let ends = engine.start::<Waits>(Begin).await.unwrap();
    let waits = engine.start::<Waits>(Begin).await.unwrap();
    ends.send(Note).await.unwrap();
    ends.outcome().await.unwrap();
    engine.cancel_all("the engine is shutting down", Duration::from_mins(5)).await;
    drop((waits, engine));
}

fn after_engines(runtime: impl Fn() -> Runtime) {
    let place = Place::new();
    for time in 0..engines() {
        let store = reopened(&place, time);
        let runtime = runtime();
        runtime.block_on(run_an_engine(store));
        // The runtime's tasks hold the store until they are dropped.
        drop(runtime);
    }
}

#[test]
fn a_store_is_opened_at_once_when_an_engine_and_its_runtime_are_gone() {
    after_engines(|| Builder::new_current_thread().enable_all().build().unwrap());
    after_engines(|| Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap());
}

/// An engine that nobody shuts down: the run's task is still there when the runtime goes.
#[test]
fn a_store_is_opened_at_once_when_a_runtime_was_shut_down_under_its_engine() {
    let place = Place::new();
    for time in 0..engines() {
        let store = reopened(&place, time);
        let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        runtime.block_on(async {
            let engine = Engine::builder().workflow(Waits).store(store).build().unwrap();
            assert_eq!(engine.resume_open_runs().await.unwrap().runs.len() as u64, time);
            engine.start::<Waits>(Begin).await.unwrap();
        });
        runtime.shutdown_timeout(Duration::from_secs(10));
    }
}

/// Engines on one runtime, each on the store that the previous one has shut down.
async fn after_shut_down() {
    let place = Place::new();
    for time in 0..engines() {
        run_an_engine(reopened(&place, time)).await;
    }
}

#[tokio::test]
async fn a_store_is_opened_at_once_when_an_engine_of_one_thread_was_shut_down() {
    after_shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_is_opened_at_once_when_an_engine_of_several_threads_was_shut_down() {
    after_shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_is_opened_at_once_when_an_engine_with_a_lease_was_shut_down_during_an_unpolled_start() {
    let place = Place::new();
    for time in 0..engines() {
        let store = reopened(&place, time);
        let engine = Engine::builder().workflow(Waits).store(store).lease(Duration::from_secs(30));
        let engine = engine.build().unwrap();
        let mut starts = Box::pin(engine.start::<Waits>(Begin));
        drop(poll_immediate(&mut starts).await);
        engine.cancel_all("the engine is shutting down", Duration::from_mins(5)).await;
        drop(starts);
    }
}
