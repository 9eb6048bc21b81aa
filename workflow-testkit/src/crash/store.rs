//! The store of a process that is killed: it keeps journals as bytes, and at one append it goes down.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;
use workflow_core::{
    Batch, EventStore, Position, Record, RunId, RunQuery, RunSummary, StoreError, StoreFuture, StoredRun,
};

/// An [`EventStore`] that [`crash_everywhere`](crate::crash_everywhere()) gives to a scenario's engine. Clones are one
/// store.
///
/// It keeps journals as the bytes that a store on a disk would, so that every record goes through its JSON both ways.
/// When it is told to, it goes down with an append, kept or not, and answers nothing any more. One that is made by
/// [`default`](Self::default) never does.
///
/// ```
/// use workflow_core::{EventStore, Position};
/// use workflow_testkit::CrashStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::StoreError> {
/// let store = CrashStore::default();
/// assert!(store.read(&"order-17".into(), Position(0), 100).await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct CrashStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Told of every append that was kept, and when the store goes down.
    news: Notify,
}

#[derive(Default)]
struct State {
    journals: BTreeMap<RunId, Kept>,
    /// How many batches it was given.
    appends: u64,
    crash: Option<Crash>,
    /// The run whose batch it went down with.
    down: Option<RunId>,
}

#[derive(Clone)]
struct Kept {
    records: Vec<Box<[u8]>>,
    run: RunSummary,
}

/// When a store goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crash {
    /// With which of its appends, from 1.
    pub(super) at: u64,
    pub(super) batch: Lot,
}

/// What becomes of the batch that a store goes down with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lot {
    /// It is not kept.
    Lost,
    /// It is kept, and nobody hears of it.
    Unheard,
}

impl Lot {
    pub(super) const BOTH: [Self; 2] = [Self::Lost, Self::Unheard];
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let batch = match self.batch {
            Lot::Lost => "was lost",
            Lot::Unheard => "was kept, which nobody heard of",
        };
        write!(f, "at append {}, whose batch {batch}", self.at)
    }
}

impl CrashStore {
    /// The store as it is after a restart.
    pub(super) fn restarted(&self, crash: Option<Crash>) -> Self {
        let state = State { journals: self.lock().journals.clone(), crash, ..State::default() };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), news: Notify::new() }) }
    }

    /// How many batches it was given.
    pub(super) fn appends(&self) -> u64 {
        self.lock().appends
    }

    /// The run whose batch it went down with; none if it has not.
    pub(super) fn down(&self) -> Option<RunId> {
        self.lock().down.clone()
    }

    /// Waits until it is down.
    pub(super) async fn gone_down(&self) {
        self.until(|state| state.down.is_some()).await;
    }

    /// Waits until every run has ended that it has.
    pub(super) async fn all_ended(&self) {
        self.until(|state| state.journals.values().all(|kept| kept.run.status.is_ended())).await;
    }

    async fn until(&self, is_so: impl Fn(&State) -> bool) {
        loop {
            // Whoever is told later is told for this one too.
            let told = self.shared.news.notified();
            if is_so(&self.lock()) {
                return;
            }
            told.await;
        }
    }

    /// Every run that it has.
    pub(super) fn kept_runs(&self) -> Vec<(RunId, RunSummary)> {
        self.lock().journals.iter().map(|(id, kept)| (id.clone(), kept.run.clone())).collect()
    }

    /// The records of a run.
    pub(super) fn records(&self, run: &RunId) -> Vec<Record> {
        self.page(run, Position(0), usize::MAX).unwrap_or_default()
    }

    /// The records of a run as JSON.
    pub(super) fn journal(&self, run: &RunId) -> Vec<Value> {
        let state = self.lock();
        let records = state.journals.get(run).map_or(&[][..], |kept| &kept.records);
        records.iter().map(|record| serde_json::from_slice(record).unwrap_or_default()).collect()
    }

    fn add(&self, run: &RunId, expected: Position, batch: &Batch) -> Option<Result<(), StoreError>> {
        let records = match bytes(&batch.records) {
            Ok(records) => records,
            Err(error) => return Some(Err(error)),
        };
        let mut state = self.lock();
        if state.down.is_some() {
            return None;
        }
        let end = state.journals.get(run).map_or(0, |kept| kept.records.len());
        let found = Position::default().after(end);
        if found != expected {
            return Some(Err(StoreError::Conflict { expected, found }));
        }
        state.appends += 1;
        let crash = state.crash.filter(|crash| crash.at == state.appends);
        if crash.is_none_or(|crash| crash.batch == Lot::Unheard) {
            let empty = || Kept { records: Vec::new(), run: batch.run.clone() };
            let kept = state.journals.entry(run.clone()).or_insert_with(empty);
            kept.records.extend(records);
            kept.run = batch.run.clone();
        }
        state.down = crash.map(|_| run.clone());
        drop(state);
        self.shared.news.notify_waiters();
        crash.is_none().then_some(Ok(()))
    }

    fn page(&self, run: &RunId, from: Position, at_most: usize) -> Result<Vec<Record>, StoreError> {
        let state = self.lock();
        let records = state.journals.get(run).map_or(&[][..], |kept| &kept.records);
        let from = usize::try_from(from.0).unwrap_or(usize::MAX);
        let page = records.iter().enumerate().skip(from).take(at_most.max(1));
        let read = page.map(|(place, record)| {
            let corrupt = |error| StoreError::corrupt(run, Position::default().after(place), error);
            serde_json::from_slice(record).map_err(corrupt)
        });
        read.collect()
    }

    fn list(&self, query: &RunQuery) -> Vec<StoredRun> {
        let state = self.lock();
        let after = query.begins_after().map_or(Bound::Unbounded, Bound::Excluded);
        let listed = state.journals.range::<RunId, _>((after, Bound::Unbounded));
        let listed = listed.filter(|(id, kept)| query.admits(id, &kept.run));
        let stored = listed.map(|(id, kept)| StoredRun {
            id: id.clone(),
            end: Position::default().after(kept.records.len()),
            run: kept.run.clone(),
        });
        stored.take(query.page()).collect()
    }

    fn answer<T: Send + Unpin + 'static>(
        &self,
        answer: impl FnOnce() -> Result<T, StoreError>,
    ) -> StoreFuture<T> {
        if self.down().is_some() { StoreFuture::new(pending()) } else { StoreFuture::ready(answer()) }
    }

    /// Nothing in here is ever left half-changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes(records: &[Record]) -> Result<Vec<Box<[u8]>>, StoreError> {
    let bytes = records.iter().map(|record| serde_json::to_vec(record).map(Vec::into_boxed_slice));
    bytes.collect::<Result<_, _>>().map_err(StoreError::unserialisable)
}

impl EventStore for CrashStore {
    fn append(&self, run: &RunId, expected: Position, batch: Batch) -> StoreFuture<()> {
        self.add(run, expected, &batch).map_or_else(|| StoreFuture::new(pending()), StoreFuture::ready)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.answer(|| self.page(run, from, at_most))
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.answer(|| Ok(self.list(query)))
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.answer(|| Ok(self.lock().journals.remove(run).is_some()))
    }
}

impl fmt::Debug for CrashStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("CrashStore")
            .field("runs", &state.journals.len())
            .field("appends", &state.appends)
            .field("down", &state.down.is_some())
            .finish()
    }
}
