//! The event store that lives and dies with its process. Records stay the values they are: nothing is ever
//! serialised.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Batch, EventStore, Position, Record, RunQuery, RunSummary, StoreError, StoreFuture, StoredRun};
use crate::id::RunId;

/// Keeps journals in memory, until they are removed.
///
/// It is for tests, and for programs that look at the journals of their runs while they run. It does not
/// forget by itself.
///
/// ```
/// use workflow_core::{EventStore, MemoryStore, Position};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::StoreError> {
/// let store = MemoryStore::default();
/// assert!(!store.remove(&"order-17".into()).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct MemoryStore {
    /// Held for one operation at a time, never while anything of a user's runs.
    runs: Mutex<BTreeMap<RunId, Journal>>,
}

struct Journal {
    records: Vec<Record>,
    run: RunSummary,
}

impl MemoryStore {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, Journal>> {
        // Nothing panics while it is held, and every operation leaves it whole.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, run: &RunId, expected: Position, batch: Batch) -> Result<(), StoreError> {
        let mut runs = self.runs();
        let journal = runs.get_mut(run);
        let found = Position::default().after(journal.as_ref().map_or(0, |journal| journal.records.len()));
        if found != expected {
            return Err(StoreError::Conflict { expected, found });
        }
        let Batch { records, run: summary } = batch;
        match journal {
            Some(journal) => {
                journal.records.extend(records);
                journal.run = summary;
            }
            None => drop(runs.insert(run.clone(), Journal { records, run: summary })),
        }
        Ok(())
    }

    fn page(&self, run: &RunId, from: Position, at_most: usize) -> Vec<Record> {
        let runs = self.runs();
        let records = runs.get(run).map_or(&[][..], |journal| &journal.records);
        let from = usize::try_from(from.0).unwrap_or(usize::MAX);
        records.iter().skip(from).take(at_most.max(1)).cloned().collect()
    }

    fn list(&self, query: &RunQuery) -> Vec<StoredRun> {
        let runs = self.runs();
        let after = query.begins_after().map_or(Bound::Unbounded, Bound::Excluded);
        let listed =
            runs.range((after, Bound::Unbounded)).filter(|(id, journal)| query.admits(id, &journal.run));
        let stored = listed.map(|(id, journal)| StoredRun {
            id: id.clone(),
            end: Position::default().after(journal.records.len()),
            run: journal.run.clone(),
        });
        stored.take(query.page()).collect()
    }
}

impl EventStore for MemoryStore {
    fn append(&self, run: &RunId, expected: Position, batch: Batch) -> StoreFuture<()> {
        StoreFuture::ready(self.add(run, expected, batch))
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        StoreFuture::ready(Ok(self.page(run, from, at_most)))
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        StoreFuture::ready(Ok(self.list(query)))
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        // Dropped after the lock is: values of users may have something to do in their `Drop`.
        let removed = self.runs().remove(run);
        StoreFuture::ready(Ok(removed.is_some()))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("runs", &self.runs().len()).finish()
    }
}
