//! Lives of a process: a disk that outlasts them, stores that fail after a number of operations, and a runtime for each
//! life. The disk keeps JSON only, so a later life has nothing of the values of an earlier one.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_agent::prelude::*;
use workflow_core::errors::ContextError;
use workflow_core::store::{
    ContextChange, ContextScope, ContextStore, ContextValue, EngineId, EventStore, MemoryContexts,
    MemoryStore, Position, Record, Retention, RunQuery, StoreError, StoreFuture, StoredRun, Write,
};
use workflow_core::{EngineBuilder, RunId};
use workflow_testkit::VirtualClock;

/// Journals and contexts of all lives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    journals: Arc<MemoryStore>,
    contexts: Arc<MemoryContexts>,
}

/// The store as a process sees it: it fails after a number of operations, or at one of them.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    disk: Disk,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    fails: Fails,
    operations: AtomicU64,
    failed: AtomicU64,
    /// The kinds of the operations on contexts.
    contexts: Mutex<Vec<&'static str>>,
}

/// Which operations fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fails {
    Never,
    /// All from this one on, counted from 0.
    From(u64, Lost),
    /// This operation on contexts only.
    Context(u64, Lost),
}

/// Whether the first operation that fails is done all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    Operation,
    Answer,
}

impl Disk {
    pub(crate) fn process(&self, fails: Fails) -> Process {
        let state = State {
            fails,
            operations: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            contexts: Mutex::default(),
        };
        Process { disk: self.clone(), state: Arc::new(state) }
    }

    pub(crate) fn healthy(&self) -> Process {
        self.process(Fails::Never)
    }
}

#[derive(PartialEq, Eq)]
enum Fate {
    Done,
    AnswerLost,
    Refused,
}

#[derive(Debug, thiserror::Error)]
#[error("the process is at its end, on purpose")]
struct AtItsEnd;

impl Process {
    /// Whether any operation failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.failed.load(SeqCst) > 0
    }

    /// The operations on contexts since the last call.
    pub(crate) fn taken_context_operations(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.state.contexts.lock().unwrap())
    }

    /// An engine builder over this store, on the runtime's own time.
    pub(crate) fn builder(&self) -> EngineBuilder {
        Engine::builder().store(self.clone()).clock(VirtualClock::new())
    }

    pub(crate) fn engine(&self, agent: &Agent) -> Engine {
        self.builder().agent(agent.clone()).build().unwrap()
    }

    fn fate(&self, context: Option<&'static str>) -> Fate {
        let operation = match (self.state.fails, context) {
            (Fails::Context(..), None) => return Fate::Done,
            _ => self.state.operations.fetch_add(1, SeqCst),
        };
        if let Some(kind) = context {
            self.state.contexts.lock().unwrap().push(kind);
        }
        let fate = match self.state.fails {
            Fails::From(from, lost) if operation == from => of(lost),
            Fails::From(from, _) if operation > from => Fate::Refused,
            Fails::Context(at, lost) if operation == at => of(lost),
            _ => Fate::Done,
        };
        if fate != Fate::Done {
            self.state.failed.fetch_add(1, SeqCst);
        }
        fate
    }

    async fn of_context<T>(
        &self,
        kind: &'static str,
        work: impl Future<Output = Result<T, ContextError>>,
    ) -> Result<T, ContextError> {
        match self.fate(Some(kind)) {
            Fate::Done => work.await,
            Fate::AnswerLost => {
                drop(work.await);
                Err(ContextError::unavailable(AtItsEnd))
            }
            Fate::Refused => Err(ContextError::unavailable(AtItsEnd)),
        }
    }
}

fn of(lost: Lost) -> Fate {
    match lost {
        Lost::Operation => Fate::Refused,
        Lost::Answer => Fate::AnswerLost,
    }
}

/// The record as bytes would give it back.
fn written(record: &Record) -> Record {
    serde_json::from_slice(&serde_json::to_vec(record).unwrap()).unwrap()
}

fn written_value(value: &ContextValue) -> ContextValue {
    let bytes = serde_json::to_vec(&value.to_json().unwrap()).unwrap();
    ContextValue::from_json(serde_json::from_slice(&bytes).unwrap())
}

impl EventStore for Process {
    fn append(&self, run: &RunId, expected: Position, write: Write) -> StoreFuture<()> {
        let write = Write { records: write.records.iter().map(written).collect(), run: write.run };
        let lost = || StoreFuture::ready(Err(StoreError::unavailable(AtItsEnd)));
        match self.fate(None) {
            Fate::Done => self.disk.journals.append(run, expected, write),
            Fate::AnswerLost => {
                drop(self.disk.journals.append(run, expected, write).now_or_never());
                lost()
            }
            Fate::Refused => lost(),
        }
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.disk.journals.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        EventStore::runs(&*self.disk.journals, query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.disk.journals.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.disk.journals.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.disk.journals.lease(engine, duration)
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        Some(Arc::new(self.clone()))
    }
}

impl ContextStore for Process {
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.of_context("get", self.disk.contexts.get(scope, key)).boxed()
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.of_context("set", self.disk.contexts.set(scope, key, value.as_ref().map(written_value))).boxed()
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        let update = async move {
            let mut changed = |value: Option<ContextValue>| Ok(change(value)?.as_ref().map(written_value));
            self.disk.contexts.update(scope, key, &mut changed).await
        };
        self.of_context("update", update).boxed()
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        // A page may be short, because its values are large.
        self.of_context("list", self.disk.contexts.list(scope, after, at_most.min(5))).boxed()
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        self.of_context("clear", self.disk.contexts.clear(scope)).boxed()
    }
}

/// A life of a process: a runtime on virtual time, and its end.
pub(crate) fn life<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

/// A moment of virtual time, in which everything that is ready happens.
pub(crate) async fn moment() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
