//! Stores of journals: the trait [`EventStore`] that a store implements, the records of a journal, and the store in
//! memory.

// `record` defines the contents of a journal, and `run` writes it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::id::RunId;

mod error;
mod inbox;
mod leases;
mod memory;
mod query;
mod record;
mod retention;
mod summary;
mod waiting;

pub use crate::context::{
    ContextChange, ContextData, ContextScope, ContextStore, ContextValue, MemoryContexts,
};
pub use crate::id::EngineId;
pub use crate::json::MAX_JSON_DEPTH;
pub use error::StoreError;
pub use inbox::{Inbox, InboxFull, InboxMessage, MemoryInbox, RefusedMessage, RunMessage};
pub use leases::Leases;
pub use memory::MemoryStore;
pub use query::RunQuery;
pub use record::{EndedChild, JOURNAL_FORMAT, OpenedFanOut, ReachedLimit, Record, RecordedEvent};
pub use retention::Retention;
pub(crate) use summary::metadata_bytes;
pub use summary::{RunSummary, StoredRun};
pub use waiting::WaitingFor;

/// A place in a run's journal: the number of records before it. A journal begins at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(pub u64);

impl Position {
    /// The place after so many more records.
    pub fn after(self, records: usize) -> Self {
        Self(self.0.saturating_add(records as u64))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The records of one write, and the run's summary after it.
#[derive(Debug, Clone)]
pub struct Write {
    /// The records, in their order; at least one.
    pub records: Vec<Record>,
    /// The run's summary after the write, which [`EventStore::runs`] lists.
    pub run: RunSummary,
}

/// Stores the journals of runs.
///
/// A journal is the append-only sequence of a run's [`Record`]s. A store maps the id of a run to its journal and to its
/// latest [`RunSummary`], and has no other duty. It may
/// hand out a store of [contexts](Self::contexts) too. It never interprets a record. Only the summary says whether a run has
/// ended.
///
/// **Ids.** Any text of up to 1 KiB is a valid id, the empty one too. Ids that differ in one byte name two runs.
///
/// **Sizes.** A store accepts writes of at least 1,000 records, and events of at least 1 MiB as JSON. It refuses a
/// larger write as a whole, with [`StoreError::Unserialisable`]. The engine writes at most 1,000 records and 16 MiB at
/// once, except for a larger single commit: a step that returns 10,000 events is one. The engine repeats a refused
/// write in smaller ones. A write that is refused again fails the execution that emitted its events, or the call that
/// sent them.
///
/// **Order.** The calls for one run have a single order across all processes, and each call sees the effects of all
/// earlier ones. A call that has returned precedes every call that begins later. Runs are independent of each other: a
/// failing or slow run delays no other.
///
/// **Atomicity.** A write is in the journal as a whole or not at all, together with its summary. No reader sees a part
/// of it, even after a crash.
///
/// **Durability.** When [`append`](Self::append) returns `Ok`, the write is as durable as the store promises to its
/// users. The engine starts nothing that depends on a write before that.
///
/// **Errors.** [`StoreError::Conflict`], [`StoreError::Unserialisable`] and [`StoreError::Corrupt`] mean that nothing
/// was changed. After [`StoreError::Unavailable`] the outcome is unknown: the engine stops the run here, and its
/// journal stays as it is. A store retries by itself where a retry can help, and finds out whether an append with a
/// lost answer has succeeded. A panic counts as `Unavailable`.
///
/// **Time.** The tasks of runs make the calls and poll the futures, so neither may block. Every future completes in the
/// end, if only with `Unavailable`: a run cannot end before its store has answered.
///
/// **Cancellation.** A call begins when it is made, or when its future is first polled. If the future is dropped before
/// it completes, the answer is lost. The call is then done, not done, or done after later calls, but never half done,
/// and it blocks no other call.
///
/// **Values.** A store of bytes serialises the records, for example with `serde_json::to_vec`, and reads them back with
/// `serde_json::from_slice`. Events in records are JSON, and no other format reads them. The store puts at most four
/// arrays or objects of its own around a record ([`MAX_JSON_DEPTH`]). A store in memory keeps
/// the records themselves, serialises nothing, and returns `false` from [`serialises`](Self::serialises).
///
/// `event_store_conformance!` in `workflow-testkit` has a test for each of these sentences that can be tested.
///
/// ```
/// use workflow_core::store::{EventStore, MemoryStore, Position, RunQuery};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::store::StoreError> {
/// let store: Box<dyn EventStore> = Box::new(MemoryStore::default());
/// assert!(store.read(&"order-17".into(), Position(0), 100).await?.is_empty());
/// assert!(store.runs(&RunQuery::new()).await?.is_empty());
/// # Ok(())
/// # }
/// ```
pub trait EventStore: Send + Sync + 'static {
    /// Appends a write to a run's journal, if the journal ends at `expected`. Position 0 begins a journal.
    ///
    /// This rule keeps two writers of one run apart: of any number of appends at the same position exactly one
    /// succeeds. An append is not idempotent: the same append again is a conflict.
    ///
    /// # Errors
    /// `Conflict`, with the real end, if the journal ends elsewhere. `Unserialisable` if the store cannot represent a
    /// record, or the write is too large. `Corrupt` if the store cannot tell where the journal ends. `Unavailable`.
    ///
    /// After `Unserialisable` the engine appends the records again in smaller writes at the same position, and reads
    /// the journal if one of these is refused too. In all other cases it stops the run with
    /// [`RunError::Conflict`](crate::RunError::Conflict) or [`RunError::Store`](crate::RunError::Store), and the
    /// journal stays as it is.
    fn append(&self, run: &RunId, expected: Position, write: Write) -> StoreFuture<()>;

    /// Reads the records of a run from a position on, in their order.
    ///
    /// Returns at most `at_most` records, where 0 counts as 1, and at least one unless the journal ends there. The last
    /// one may be inside a write. Returns none for an unknown run, and from behind the end. Changes nothing.
    ///
    /// # Errors
    /// `Corrupt` if the stored bytes are not records; `Unavailable`.
    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>>;

    /// Lists the runs of a query with their latest summaries: by the bytes of their ids, or
    /// [newest first](RunQuery::newest_first).
    ///
    /// [`RunQuery::choose`] is the answer out of all runs. A query for [one run](RunQuery::run) reads no other. A page is
    /// shorter than [`RunQuery::at_most`] only if it is the last. Changes nothing.
    ///
    /// A run that begins, ends or is removed between two pages may be missing; every other run is listed once. A
    /// damaged run hides no other: if its summary cannot be read, the store lists the run by its journal, or else as an
    /// open run of a workflow without a name. Reading such a run returns the error.
    ///
    /// # Errors
    /// `Corrupt` if the list itself cannot be read; `Unavailable`.
    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>>;

    /// Removes a run with its journal. Returns whether there was one. Idempotent.
    ///
    /// The id is free afterwards. A writer of the removed run gets a `Conflict`, unless a new run of the same id has
    /// reached the same position: a store does not tell the two apart.
    ///
    /// # Errors
    /// `Unavailable`.
    fn remove(&self, run: &RunId) -> StoreFuture<bool>;

    /// Removes the ended runs that no rule of `kept` retains, with their journals. Returns how many.
    ///
    /// [`Retention::choose`] selects the runs, by the time of each run's latest write on the store's clock. A store
    /// that also has contexts removes those of the runs with them. Idempotent.
    ///
    /// Each run is removed as a whole or not at all, and only if nothing was written to it since its selection: a new
    /// run of the same id stays. A dropped future may leave some runs removed. An unreadable run stays.
    ///
    /// # Errors
    /// `Unavailable`; some of the runs may be removed then.
    fn retain(&self, kept: &Retention) -> StoreFuture<u64>;

    /// Takes or renews an engine's lease for `duration` from now. Zero gives the lease up.
    ///
    /// Returns every engine whose lease has not run out, once and in any order. The caller is among them unless it gave
    /// its lease up. So a call with zero by an engine without a lease only reads.
    ///
    /// "Now" is the moment when the store takes the call, by **its own** clock, because the clocks of engines differ. A
    /// lease never ends early, and at most a second late. The last call for an engine counts, even if its lease is
    /// shorter. Giving up is idempotent. Ids of engines follow the rules of run ids, and the store forgets leases that
    /// have run out.
    ///
    /// Leases say which engine may resume a run, and the engines obey them: a store accepts appends of any engine. The
    /// single order of calls holds for leases over all runs: an engine that is missing in an answer has no lease until
    /// it takes a new one. A store that one process uses at a time may hold leases in memory, with [`Leases`]: the next
    /// process begins with none.
    ///
    /// # Errors
    /// `Unavailable`; the lease may or may not be taken then.
    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>>;

    /// Whether the store serialises events as JSON. Default: `true`. An engine asks once, when it is built.
    ///
    /// Over such a store an engine serialises each event before it enters a run, and refuses an event that could not be
    /// read back ([`UnfitEvent`](crate::errors::UnfitEvent)). The record carries that JSON, so no event is serialised twice. A
    /// store of the values themselves, as [`MemoryStore`], returns `false`: then no event is ever
    /// serialised. A store around another one returns the inner store's answer.
    fn serialises(&self) -> bool {
        true
    }

    /// The store of contexts that goes with this store of journals. Default: `None`.
    ///
    /// An engine whose builder has no [`contexts`](crate::EngineBuilder::contexts) asks once, when it is built, and
    /// uses the answer, so that one value stores journals and contexts. Contexts should be as durable as journals: if
    /// `None`, the engine refuses workflows that take a context. Every call returns the same contexts. A store around
    /// another one returns the inner store's answer.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use workflow_core::store::{ContextScope, ContextStore, ContextValue, EventStore, MemoryStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
    /// let store = MemoryStore::default();
    /// let contexts = store.contexts().expect("a `MemoryStore` has contexts");
    /// let ada = ContextScope::Thread("ada".into());
    /// contexts.set(&ada, "visits", Some(ContextValue::new(1))).await?;
    /// assert!(store.contexts().expect("the same").get(&ada, "visits").await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        None
    }

    /// The inbox that goes with this store of journals. Default: `None`.
    ///
    /// An engine whose builder has no [`inbox`](crate::EngineBuilder::inbox) asks once, when it is built, and uses the
    /// answer. Every call returns the same inbox. A store around another one returns the inner store's answer.
    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        None
    }
}

impl<S: EventStore + ?Sized> EventStore for Arc<S> {
    fn append(&self, run: &RunId, expected: Position, write: Write) -> StoreFuture<()> {
        (**self).append(run, expected, write)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        (**self).read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        (**self).runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        (**self).remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        (**self).retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        (**self).lease(engine, duration)
    }

    fn serialises(&self) -> bool {
        (**self).serialises()
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        (**self).contexts()
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        (**self).inbox()
    }
}

/// The result of a store's call: a ready answer without an allocation, or a future.
///
/// ```
/// use workflow_core::store::StoreFuture;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert!(StoreFuture::ready(Ok(true)).await.unwrap());
/// assert!(StoreFuture::new(async { Ok(true) }).await.unwrap());
/// # }
/// ```
#[must_use = "nothing may have happened before it is awaited"]
pub struct StoreFuture<T>(Answer<T>);

enum Answer<T> {
    Ready(Option<Result<T, StoreError>>),
    Pending(BoxFuture<'static, Result<T, StoreError>>),
}

impl<T> StoreFuture<T> {
    /// An answer that is ready.
    pub fn ready(answer: Result<T, StoreError>) -> Self {
        Self(Answer::Ready(Some(answer)))
    }

    /// Whether the answer is ready.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.0, Answer::Ready(_))
    }

    /// An answer that takes time. Costs one allocation.
    pub fn new(answer: impl Future<Output = Result<T, StoreError>> + Send + 'static) -> Self {
        Self(Answer::Pending(Box::pin(answer)))
    }
}

impl<T: Unpin> Future for StoreFuture<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            // After its completion it stays pending, as a future may.
            Answer::Ready(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            Answer::Pending(future) => future.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for StoreFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreFuture").finish_non_exhaustive()
    }
}
