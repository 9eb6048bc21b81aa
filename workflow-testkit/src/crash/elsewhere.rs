//! Journals that a user's store keeps as well. Each call runs on a thread that may block, so the virtual clock stands
//! still. Appends run one after the other, so none is in progress after a crash.

use std::future::pending;
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::{Builder, Handle};
use tokio::sync::OwnedMutexGuard;
use workflow_core::RunId;
use workflow_core::store::{
    EventStore, Position, Record, Retention, RunQuery, StoreError, StoreFuture, StoredRun, Write,
};

use super::store::{CrashStore, Lot, last_event};

/// A user's store, behind the one that goes down.
pub(super) type Keeper = Arc<dyn EventStore>;

impl CrashStore {
    pub(super) fn append_to(
        &self,
        keeper: &Keeper,
        run: &RunId,
        expected: Position,
        batch: Write,
    ) -> StoreFuture<()> {
        let (store, keeper, its) = (self.clone(), Arc::clone(keeper), run.clone());
        let until = last_event(&batch.records);
        let taken = self.alone(move || {
            let lot = match store.admit(&its, expected)? {
                Ok(lot) => lot,
                Err(conflict) => return Some(Err(conflict)),
            };
            let mut appended = Ok(());
            if lot != Some(Lot::Lost) {
                appended = Handle::current().block_on(keeper.append(&its, expected, batch.clone()));
                appended = appended.and_then(|()| store.keep(&its, &batch));
            }
            if lot.is_some() && !store.confirms().is_late() {
                // The store gets no other call before it is down.
                store.go_down(&its);
                return None;
            }
            // Nobody receives the answer of a store that goes down.
            Some(if lot.is_some() { Ok(lot) } else { appended.map(|()| lot) })
        });
        let (store, run) = (self.clone(), run.clone());
        StoreFuture::new(async move { store.confirm(&run, until, taken.await?).await })
    }

    pub(super) fn remove_from(&self, keeper: &Keeper, run: &RunId) -> StoreFuture<bool> {
        let (store, keeper, run) = (self.clone(), Arc::clone(keeper), run.clone());
        self.alone(move || {
            let removed = Handle::current().block_on(keeper.remove(&run));
            store.forget(&run);
            Some(removed)
        })
    }

    pub(super) fn retain_in(&self, keeper: &Keeper, kept: &Retention) -> StoreFuture<u64> {
        let (store, keeper, kept) = (self.clone(), Arc::clone(keeper), kept.clone());
        self.alone(move || {
            let mut removed = 0;
            for run in store.chosen(&kept) {
                match Handle::current().block_on(keeper.remove(&run)) {
                    Ok(was_there) => removed += u64::from(was_there),
                    Err(error) => return Some(Err(error)),
                }
                store.forget(&run);
            }
            Some(Ok(removed))
        })
    }

    /// Performs a change exclusively, unless the store is down.
    fn alone<T: Send + 'static>(
        &self,
        change: impl FnOnce() -> Option<Result<T, StoreError>> + Send + 'static,
    ) -> StoreFuture<T> {
        let store = self.clone();
        StoreFuture::new(async move {
            let _under_way = store.under_way();
            // Waiters proceed in order of arrival, so the order of appends is the same each time.
            let alone = store.one_at_a_time().lock_owned().await;
            let is_up = store.down().is_none();
            let change = move |_alone: OwnedMutexGuard<()>| if is_up { change() } else { None };
            blocking(move || change(alone)).await
        })
    }
}

/// Performs a read. A store that is down never answers.
fn read<T: Send + Unpin + 'static>(
    store: &CrashStore,
    call: impl FnOnce() -> StoreFuture<T> + Send + 'static,
) -> StoreFuture<T> {
    let store = store.clone();
    StoreFuture::new(async move {
        let _under_way = store.under_way();
        let is_up = store.down().is_none();
        blocking(move || is_up.then(|| Handle::current().block_on(call()))).await
    })
}

/// The result of work on a thread that may block; pending for ever if there is no answer.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Option<Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Some(answer)) => answer,
        Ok(None) => pending().await,
        Err(panic) => Err(StoreError::unavailable(panic)),
    }
}

/// The difference between a user's store and everything it was given; `None` if there is none, or no such store.
pub(super) fn unfaithful(store: &CrashStore) -> Option<String> {
    let keeper = store.keeper()?;
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Some(format!("no runtime to read the store on: {error}")),
    };
    store.kept_runs().into_iter().find_map(|(run, _)| {
        let given = store.journal(&run);
        match runtime.block_on(journal_of(&*keeper, &run)) {
            Ok(kept) if kept == given => None,
            Ok(kept) => {
                let place = kept.iter().zip(&given).take_while(|(kept, given)| kept == given).count();
                let (kept, given) = (kept.len(), given.len());
                Some(format!(
                    "  of `{run}` it has {kept} records and was given {given}: those from {place} on differ\n"
                ))
            }
            Err(error) => Some(format!("  `{run}` cannot be read: {error}\n")),
        }
    })
}

async fn journal_of(keeper: &dyn EventStore, run: &RunId) -> Result<Vec<Value>, StoreError> {
    let mut journal = Vec::new();
    loop {
        let page = keeper.read(run, Position::default().after(journal.len()), usize::MAX).await?;
        if page.is_empty() {
            return Ok(journal);
        }
        let records = page.iter().map(|record: &Record| serde_json::to_value(record));
        journal.extend(records.collect::<Result<Vec<_>, _>>().map_err(StoreError::unserialisable)?);
    }
}

/// The runs that a user's store lists.
pub(super) fn list(store: &CrashStore, keeper: &Keeper, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
    let (keeper, query) = (Arc::clone(keeper), query.clone());
    read(store, move || keeper.runs(&query))
}

/// A page of a journal that a user's store has.
pub(super) fn page(
    store: &CrashStore,
    keeper: &Keeper,
    run: &RunId,
    from: Position,
    at_most: usize,
) -> StoreFuture<Vec<Record>> {
    let (keeper, run) = (Arc::clone(keeper), run.clone());
    read(store, move || keeper.read(&run, from, at_most))
}
