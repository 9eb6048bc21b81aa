//! The store of journals in memory, with contexts. It is lost with its process, and serialises nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::{
    ContextScope, ContextStore, EventStore, Leases, MemoryContexts, Position, Record, Retention, RunQuery,
    RunSummary, StoreError, StoreFuture, StoredRun, Write,
};
use crate::id::{EngineId, RunId};

/// Stores journals and contexts in memory, until they are removed.
///
/// For tests, and for programs that read the journals of their runs. It removes nothing by itself. Engines that share
/// the store share its contexts.
///
/// ```
/// use workflow_core::store::{EventStore, MemoryStore, Position};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::store::StoreError> {
/// let store = MemoryStore::default();
/// assert!(!store.remove(&"order-17".into()).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct MemoryStore {
    /// Locked for one operation at a time, never while a user's code runs.
    runs: Mutex<BTreeMap<RunId, Journal>>,
    leases: Leases,
    contexts: Arc<MemoryContexts>,
}

struct Journal {
    records: Vec<Record>,
    run: RunSummary,
    /// The time of its latest write, by the machine's clock.
    written: SystemTime,
}

impl Journal {
    fn stored(&self, id: &RunId) -> StoredRun {
        let end = Position::default().after(self.records.len());
        StoredRun { id: id.clone(), end, run: self.run.clone() }
    }
}

impl MemoryStore {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, Journal>> {
        // No code panics under this lock, and every operation leaves the map whole.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, run: &RunId, expected: Position, write: Write) -> Result<(), StoreError> {
        let mut runs = self.runs();
        let journal = runs.get_mut(run);
        let found = Position::default().after(journal.as_ref().map_or(0, |journal| journal.records.len()));
        if found != expected {
            return Err(StoreError::Conflict { expected, found });
        }
        let Write { records, run: summary } = write;
        let written = SystemTime::now();
        match journal {
            Some(journal) => {
                journal.records.extend(records);
                (journal.run, journal.written) = (summary, written);
            }
            None => drop(runs.insert(run.clone(), Journal { records, run: summary, written })),
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
        if let Some(run) = query.of_run() {
            return query.choose(runs.get_key_value(run).map(|(id, journal)| journal.stored(id)));
        }
        if query.is_newest_first() {
            // Filtered before anything is cloned.
            let admitted = runs.iter().filter(|(id, journal)| query.admits(id, &journal.run));
            return query.choose(admitted.map(|(id, journal)| journal.stored(id)));
        }
        let Some(range) = query.id_range() else { return Vec::new() };
        let listed = runs.range(range).filter(|(id, journal)| query.admits(id, &journal.run));
        listed.map(|(id, journal)| journal.stored(id)).take(query.page()).collect()
    }

    fn choose_and_remove(&self, kept: &Retention) -> u64 {
        let mut runs = self.runs();
        let chosen = kept.choose(runs.iter().map(|(id, journal)| (journal.stored(id), journal.written)));
        let removed: Vec<_> = chosen.iter().filter_map(|(stored, _)| runs.remove(&stored.id)).collect();
        // Dropped after the lock, because the `Drop` of a user's value may do anything.
        drop(runs);
        for (stored, _) in &chosen {
            self.contexts.forget(&ContextScope::Run(stored.id.clone()));
        }
        removed.len() as u64
    }
}

impl EventStore for MemoryStore {
    fn append(&self, run: &RunId, expected: Position, write: Write) -> StoreFuture<()> {
        StoreFuture::ready(self.add(run, expected, write))
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        StoreFuture::ready(Ok(self.page(run, from, at_most)))
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        StoreFuture::ready(Ok(self.list(query)))
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        // Dropped after the lock, because the `Drop` of a user's value may do anything.
        let removed = self.runs().remove(run);
        StoreFuture::ready(Ok(removed.is_some()))
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        StoreFuture::ready(Ok(self.choose_and_remove(kept)))
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        StoreFuture::ready(Ok(self.leases.renew(engine, duration)))
    }

    fn serialises(&self) -> bool {
        false
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        Some(Arc::<MemoryContexts>::clone(&self.contexts))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("runs", &self.runs().len()).finish()
    }
}
