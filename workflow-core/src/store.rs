//! Where the journals of runs are kept: the trait that a store implements, and the one that keeps them in
//! memory. What a journal says is `record`'s; who writes it, and when, is the run's.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::id::{EngineId, RunId};

mod error;
mod leases;
mod memory;
mod record;
mod retention;
mod summary;
mod waiting;

pub use error::StoreError;
pub use leases::Leases;
pub use memory::MemoryStore;
pub use record::{JOURNAL_FORMAT, OpenedFanOut, Record, RecordedEvent};
pub use retention::Retention;
pub use summary::{RunQuery, RunSummary, StoredRun};
pub use waiting::WaitingFor;

/// A place in the journal of a run: how many records stand before it. A journal begins at 0.
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

/// What enters a journal at once, and where the run stands with it.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The records, in their order; at least one.
    pub records: Vec<Record>,
    /// The run as the batch leaves it: what [`EventStore::runs`] lists.
    pub run: RunSummary,
}

/// Keeps the journals of runs.
///
/// A journal is the append-only sequence of a run's [`Record`]s. A store maps the id of a run to its journal
/// and to its latest [`RunSummary`]; it has these duties and no other knowledge. It never interprets a
/// record: it does not know what one means, nor when a run is over other than by the summary.
///
/// **Ids.** Any text of up to 1 KiB is the id of a run, the empty one too, and ids that differ in a single
/// byte are those of two runs.
///
/// **Sizes.** A store takes batches of at least 1,000 records, and events of at least 1 MiB as JSON; what it cannot
/// take beyond that it refuses as a whole, with [`StoreError::Unserialisable`]. The engine writes at most 1,000 records and
/// 16 MiB at once, unless a run commits more at once: a step that returns 10,000 events asks for more. The engine repeats a
/// refused write in smaller ones. What is still refused fails the execution that emitted it, or the call that sent it.
///
/// **Order.** The calls for one run have a single order, whichever process they come from, and each sees all
/// that came before it. A call that has returned comes before every call that begins later. Runs are
/// independent of each other: one that fails or is slow holds up no other.
///
/// **Atomicity.** A batch is in the journal as a whole or not at all, and with it its summary: no reader sees
/// a part, and neither does anybody after a crash.
///
/// **Durability.** When [`append`](Self::append) returns `Ok`, the batch is as durable as the store promises
/// to its users. The engine starts nothing that depends on a batch before that (S38).
///
/// **Errors.** [`StoreError::Conflict`], [`StoreError::Unserialisable`] and [`StoreError::Corrupt`] mean that nothing was
/// changed. After [`StoreError::Unavailable`] the outcome is unknown: the engine stops the run here and leaves its
/// journal as it is. A store repeats what is worth repeating by itself, and finds out whether an append whose
/// answer was lost has succeeded. A panic is taken for `Unavailable`.
///
/// **Time.** Calls are made, and their futures polled, in the tasks of runs: they must not block. Every future
/// resolves in the end, be it with `Unavailable`: a run cannot end before its store has answered.
///
/// **Cancellation.** A call begins when it is made, or when its future is first polled. A future that is
/// dropped before it returns leaves a call whose answer is lost: it is done, or not done, or still to be done
/// after others that begin later, but never half done and in nobody's way.
///
/// **Values.** A store that keeps bytes serialises the records, for example with `serde_json::to_vec`, and
/// reads them back with `serde_json::from_slice`. Events in records are JSON, and no other format reads them. The store
/// puts at most four arrays or objects of its own around a record ([`MAX_JSON_DEPTH`](crate::MAX_JSON_DEPTH)). A store
/// that keeps everything in memory keeps records as they are, serialises nothing, and says so:
/// [`serialises`](Self::serialises).
///
/// `event_store_conformance!` in `workflow-testkit` has a test for each of these sentences that can be tested.
///
/// ```
/// use workflow_core::{EventStore, MemoryStore, Position, RunQuery};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::StoreError> {
/// let store: Box<dyn EventStore> = Box::new(MemoryStore::default());
/// assert!(store.read(&"order-17".into(), Position(0), 100).await?.is_empty());
/// assert!(store.runs(&RunQuery::new()).await?.is_empty());
/// # Ok(())
/// # }
/// ```
pub trait EventStore: Send + Sync + 'static {
    /// Appends a batch to the journal of a run, if the journal ends at `expected`; position 0 begins one.
    ///
    /// This rule is what keeps two writers of one run apart (S40): of any number of appends at the same
    /// position exactly one succeeds. It is not idempotent: an append that is repeated is a conflict.
    ///
    /// # Errors
    /// `Conflict` if the journal ends elsewhere, with where it ends; `Unserialisable` if a record has no form
    /// that the store can keep, or the batch is larger than the store takes at once; `Corrupt` if what is kept does not tell
    /// where the journal ends; `Unavailable`.
    ///
    /// After `Unserialisable` the engine appends the records again, in smaller batches and at the same position, and reads
    /// the journal if one of these is refused as well. In all other cases it stops the run with
    /// [`RunError::Conflict`](crate::RunError::Conflict) or [`RunError::Store`](crate::RunError::Store), and leaves its
    /// journal as it is.
    fn append(&self, run: &RunId, expected: Position, batch: Batch) -> StoreFuture<()>;

    /// The records of a run from a position on, in their order: at most so many, where 0 is taken as 1, and at
    /// least one unless the journal ends there. It may end within a batch. Of a run that the store does not
    /// have, and from behind the end, there are none. Changes nothing.
    ///
    /// # Errors
    /// `Corrupt` if what is kept cannot be read as records; `Unavailable`.
    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>>;

    /// The runs that the query asks for, in the order of the bytes of their ids, as their latest batch left
    /// them. A page is shorter than [`RunQuery::at_most`] only if it is the last. Changes nothing.
    ///
    /// A run that is begun, ends or is removed between two pages is listed or not; every other is listed
    /// once. What is wrong with one run is in the way of no other: where its summary cannot be read, a run is listed as
    /// its journal tells of it, or else as one that goes on, of a workflow without a name. Whoever reads it is told.
    ///
    /// # Errors
    /// `Corrupt` if the list itself cannot be read; `Unavailable`.
    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>>;

    /// Removes a run with its journal, and says whether there was one. Idempotent.
    ///
    /// Its id is free then, and whoever still writes to it gets a `Conflict`, unless a new run of the same id
    /// has come exactly as far: a store does not tell the two apart.
    ///
    /// # Errors
    /// `Unavailable`.
    fn remove(&self, run: &RunId) -> StoreFuture<bool>;

    /// Removes the runs that have ended and that no rule keeps, with their journals; says how many.
    /// [`Retention::choose`] says which these are, by when the store wrote the latest batch of each, by the clock of its
    /// machine. A store that keeps contexts as well removes those of the runs with them. Idempotent.
    ///
    /// Each run is removed as a whole or not at all, and only if it is still as it was when it was chosen: one that is
    /// begun anew under its id meanwhile stays. A future that is dropped leaves some of them
    /// removed. What cannot be read as a run is kept.
    ///
    /// # Errors
    /// `Unavailable`; some of them may be removed then.
    fn retain(&self, kept: &Retention) -> StoreFuture<u64>;

    /// Takes the lease of an engine, or renews it, for so long from now; for no time, gives it up. Answers every engine
    /// whose lease has not run out, each once and in any order: the caller too, unless it gave its own up. So a call
    /// for no time by an engine that holds no lease only looks.
    ///
    /// Now is when the store takes the call, by **its own** clock: those of engines differ. A lease never runs out early,
    /// and is gone a second after its time at the latest; the last call for an engine counts, be it longer or shorter. Giving up is idempotent. Ids of engines are texts
    /// like those of runs, and what has run out is forgotten.
    ///
    /// Leases are about who may go on with whose runs, which is the engines' to heed: a store lets everybody append. The
    /// single order of calls holds for leases as well, over all runs: an engine that is not among those that are
    /// answered has no lease from then on until it takes one anew. A store that one process uses at a time may keep
    /// leases in memory, with [`Leases`]: the next process begins with none.
    ///
    /// # Errors
    /// `Unavailable`; whether the lease was taken is unknown then.
    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>>;

    /// Whether the store keeps events as JSON, so that they have to come back from that. By default it does. An engine
    /// asks once, when it is built.
    ///
    /// Over such a store an engine serialises each event before it enters a run, and refuses one that could not be read
    /// back ([`UnfitEvent`](crate::UnfitEvent)). The record that the store is given carries the JSON that was made then,
    /// so that no event is serialised twice. A store that keeps the values themselves, as
    /// [`MemoryStore`](crate::MemoryStore) does, answers `false`: then no event is ever serialised. A store around another one
    /// answers for that one.
    fn serialises(&self) -> bool {
        true
    }
}

impl<S: EventStore + ?Sized> EventStore for Arc<S> {
    fn append(&self, run: &RunId, expected: Position, batch: Batch) -> StoreFuture<()> {
        (**self).append(run, expected, batch)
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
}

/// What a store's call comes to: an answer that is there at once, without an allocation, or a future.
///
/// ```
/// use workflow_core::StoreFuture;
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
    /// An answer that is there.
    pub fn ready(answer: Result<T, StoreError>) -> Self {
        Self(Answer::Ready(Some(answer)))
    }

    /// Whether the answer is there.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.0, Answer::Ready(_))
    }

    /// An answer that takes time. One allocation.
    pub fn new(answer: impl Future<Output = Result<T, StoreError>> + Send + 'static) -> Self {
        Self(Answer::Pending(Box::pin(answer)))
    }
}

impl<T: Unpin> Future for StoreFuture<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            // Polled after its end, it pends, as a future may.
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
