//! Batches that share one write still take effect batch by batch (S38, S39, S47).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use workflow_core::prelude::*;
use workflow_core::scheduler::Cause;
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreFuture, StoredRun, Write,
};
use workflow_core::{RunId, RunOptions};

use crate::fixtures::{Begin, Done, Item, Note, Part, until};
use crate::resumed::found::copy;

/// A store that confirms late: from some point on, it keeps appends only when allowed.
#[derive(Clone)]
struct LateStore(Arc<Late>);

struct Late {
    kept: Arc<MemoryStore>,
    waits: AtomicBool,
    /// The waiting appends, oldest first.
    appends: Mutex<Vec<Vec<Record>>>,
    may_keep: Semaphore,
    /// Whether the store no longer confirms anything.
    is_silent: AtomicBool,
}

impl LateStore {
    fn new() -> Self {
        Self(Arc::new(Late {
            kept: Arc::default(),
            waits: AtomicBool::new(false),
            appends: Mutex::default(),
            may_keep: Semaphore::new(0),
            is_silent: AtomicBool::new(false),
        }))
    }
}

impl EventStore for LateStore {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let (store, run) = (Arc::clone(&self.0), run.clone());
        let is_late = store.waits.load(Ordering::SeqCst);
        if is_late {
            store.appends.lock().unwrap().push(batch.records.clone());
        }
        StoreFuture::new(async move {
            if is_late {
                store.may_keep.acquire().await.unwrap().forget();
            }
            store.kept.append(&run, expected, batch).await?;
            if store.is_silent.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.0.kept.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.0.kept.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.0.kept.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.0.kept.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.0.kept.lease(engine, duration)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Ping;

/// The actions of one process's steps, and which of them may end.
struct Seen {
    read: Mutex<Vec<u32>>,
    annotated: Mutex<Vec<u32>>,
    /// By page, whether its step may end.
    may_end: [Semaphore; 2],
}

impl Seen {
    fn new() -> Arc<Self> {
        let (read, annotated, may_end) = (Mutex::default(), Mutex::default(), [0; 2].map(Semaphore::new));
        Arc::new(Self { read, annotated, may_end })
    }
}

/// Each page is read, and annotated with the note that arrives while its branch is open.
struct Pages(Arc<Seen>);

#[workflow]
impl Pages {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn read(&self, page: &Item) -> Part {
        self.0.read.lock().unwrap().push(page.0);
        let _may = self.0.may_end[page.0 as usize].acquire().await.unwrap();
        Part(page.0 + 1)
    }

    #[step]
    async fn annotate(&self, page: &Item, _note: &Note) {
        self.0.annotated.lock().unwrap().push(page.0);
    }

    #[step]
    async fn ping(&self, _ping: &Ping) {}

    #[step]
    async fn bind(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

fn engine(seen: &Arc<Seen>, store: impl EventStore) -> Engine {
    Engine::builder().workflow(Pages(Arc::clone(seen))).store(store).build().unwrap()
}

/// Lets the run and its senders proceed until they wait for the store.
async fn others() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

fn is_read(record: &Record) -> bool {
    matches!(record, Record::ExecutionSucceeded { step, .. } if **step == *"read")
}

fn is_note(record: &Record) -> bool {
    matches!(record, Record::EventLogged { cause: Cause::Outside, event, .. } if event.name() == "Note")
}

/// The store of a process in which the last work of the first page and then a note shared one write.
async fn left() -> Arc<MemoryStore> {
    let (store, seen) = (LateStore::new(), Seen::new());
    let engine = engine(&seen, store.clone());
    let LateStore(store) = store;
    let run = engine.start_with::<Pages>(Begin(2), RunOptions::new().id("r")).await.unwrap();
    until(async || seen.read.lock().unwrap().len() == 2).await;
    store.waits.store(true, Ordering::SeqCst);
    // While the store has not kept this, later batches queue behind it.
    let pinged = tokio::spawn({
        let run = run.clone();
        async move { run.send(Ping).await }
    });
    until(async || store.appends.lock().unwrap().len() == 1).await;
    seen.may_end[0].add_permits(1);
    others().await;
    let noted = tokio::spawn({
        let run = run.clone();
        async move { run.send(Note(1)).await }
    });
    others().await;
    store.may_keep.add_permits(1);
    until(async || store.appends.lock().unwrap().len() == 2).await;
    store.is_silent.store(true, Ordering::SeqCst);
    store.may_keep.add_permits(1);
    let write = store.appends.lock().unwrap()[1].clone();
    let (read, note) = (write.iter().position(is_read), write.iter().position(is_note));
    assert!(read.is_some() && read < note, "both are in one write, in this order: {write:?}");
    until(async || {
        let records = store.kept.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
        records.iter().any(is_note)
    })
    .await;
    pinged.abort();
    noted.abort();
    assert_eq!(*seen.annotated.lock().unwrap(), [0; 0], "nothing begins before the store has confirmed it");
    copy(&store.kept).await
}

// S38, S39, S46, S47
#[tokio::test]
async fn a_note_behind_the_last_work_of_a_branch_in_one_write_is_only_for_the_branch_that_is_open() {
    let (store, seen) = (left().await, Seen::new());
    let engine = engine(&seen, Arc::clone(&store));
    let run = engine.attach::<Pages>("r").await.unwrap();
    // Unfinished executions run again, and pending ones run.
    until(async || !seen.annotated.lock().unwrap().is_empty()).await;
    assert_eq!(*seen.read.lock().unwrap(), [1]);
    seen.may_end[1].add_permits(1);
    assert_eq!(run.outcome().await.unwrap(), Done(3));
    assert_eq!(
        *seen.annotated.lock().unwrap(),
        [1],
        "the branch of the first page was settled before the note"
    );
    let records = store.read(&"r".into(), Position(0), usize::MAX).await.unwrap();
    assert_eq!(records.iter().filter(|record| is_read(record)).count(), 2);
}
