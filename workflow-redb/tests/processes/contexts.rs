//! The contexts of runs in the file.

use std::collections::BTreeSet;

use workflow_core::RunId;
use workflow_core::store::{ContextScope, ContextStore};
use workflow_redb::RedbStore;

/// The page size of scope listings.
const PAGE: usize = 1_000;

/// Every non-empty scope.
pub(crate) async fn scopes(store: &RedbStore) -> Vec<ContextScope> {
    let (mut scopes, mut after) = (Vec::new(), None);
    loop {
        let page = ContextStore::scopes(store, after.as_ref(), PAGE).await.unwrap();
        let Some(last) = page.last() else { return scopes };
        after = Some(last.clone());
        scopes.extend(page);
    }
}

/// The contexts of these runs.
pub(crate) async fn of_runs(store: &RedbStore, runs: &BTreeSet<RunId>) -> Vec<RunId> {
    let owners = scopes(store).await.into_iter().filter_map(|scope| match scope {
        ContextScope::Run(run) => Some(run),
        ContextScope::Thread(_) => None,
    });
    owners.filter(|run| runs.contains(run)).collect()
}
