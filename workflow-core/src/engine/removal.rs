//! Removing runs from the store, with their contexts and their children.

use std::collections::HashSet;
use std::sync::Weak;

use super::Engine;
use super::claim::Look;
use super::known::Registered;
use crate::id::{RunId, ThreadId};
use crate::store::{EventStore, Position, Record, Retention, RunQuery, StoreError, StoredRun};

/// A run that is to be removed. Nobody begins or resumes one of its id meanwhile.
struct Removed {
    run: RunId,
    /// The thread that was made for it alone.
    thread: Option<ThreadId>,
    _taken: Registered,
}

/// What the first record of a run says of where it belongs.
#[derive(Default)]
struct Origin {
    parent: Option<RunId>,
    /// The thread that was made for it alone.
    thread: Option<ThreadId>,
}

impl Engine {
    /// Removes a run from the engine's store, with its context and with its children and theirs; says whether the store
    /// had it. The id can be used again at once.
    ///
    /// Contexts go before journals, and children before their parents, so that a call that fails, is dropped or ends
    /// with its process can be repeated. An open run that this engine does not drive is removed; without
    /// [leases](crate::EngineBuilder::lease) the caller has to know that no other engine drives it. O(children) calls of
    /// the store.
    ///
    /// # Errors
    /// [`StoreError::InUse`] with the run, if it has not ended and this engine drives it, or another one that holds its
    /// lease; or with one of its children that has not ended: nothing is removed then. Cancel or remove that one first.
    /// [`StoreError::NoStore`], and errors of the store and of the contexts; some children may be removed then.
    pub async fn remove_run(&self, run: &RunId) -> Result<bool, StoreError> {
        let store = &**self.inner.store()?;
        let _held = self.hold(run).await?;
        // The id is taken while its journal goes, so that nobody begins another meanwhile.
        let taken = self.take(run)?;
        if self.inner.lease.is_some() && matches!(self.look(run).await?, Look::Elsewhere(_)) {
            return Err(StoreError::InUse { run: run.clone() });
        }
        let mut children = self.children_of(store, run).await?;
        // The deepest first: a child's id begins with its parent's, and comes behind it.
        while let Some(child) = children.pop() {
            self.remove(store, child).await?;
        }
        // A journal that cannot be read can be removed.
        let thread = origin_of(store, run).await.unwrap_or_default().thread;
        self.remove(store, Removed { run: run.clone(), thread, _taken: taken }).await
    }

    /// Removes the runs of the engine's store that have ended and that no rule keeps, with their contexts; says how many.
    /// Children that have ended go with their parents, also those that a rule would keep. Runs that have not ended, in
    /// any engine, and the children of these are always kept.
    ///
    /// Contexts that a killed process left of runs that have ended are cleared before, as by
    /// [`resume_open_runs`](Self::resume_open_runs). O(runs of the store) time and memory.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and errors of the store and of the contexts; some of the runs may be removed then.
    pub async fn retain(&self, kept: &Retention) -> Result<u64, StoreError> {
        let store = &**self.inner.store()?;
        // Before any journal goes: what is left of a run that the store does not list is nobody's to clear.
        self.clear_left_contexts().await?;
        let removed = store.retain(kept).await?;
        Ok(removed + self.remove_orphans(store).await?)
    }

    fn take(&self, run: &RunId) -> Result<Registered, StoreError> {
        self.register(run, Weak::new()).map_err(|_| StoreError::InUse { run: run.clone() })
    }

    /// Removes one run, its contexts first; says whether the store had it.
    async fn remove(&self, store: &dyn EventStore, removed: Removed) -> Result<bool, StoreError> {
        let Removed { run, thread, _taken } = removed;
        self.inner.clear(&run, thread).await?;
        store.remove(&run).await
    }

    /// The children of a run and theirs, in the order of their ids, which all have ended.
    async fn children_of(&self, store: &dyn EventStore, root: &RunId) -> Result<Vec<Removed>, StoreError> {
        let prefix = format!("{root}/");
        let (mut above, mut children) = (HashSet::from([root.clone()]), Vec::new());
        let mut query = RunQuery::new().after(prefix.as_str());
        loop {
            let page = store.runs(&query).await?;
            for stored in page.iter().take_while(|stored| stored.id.as_str().starts_with(&prefix)) {
                if parent_in(&stored.id).is_none() {
                    continue;
                }
                let Origin { parent, thread } = origin_of(store, &stored.id).await?;
                if !parent.is_some_and(|parent| above.contains(&parent)) {
                    continue;
                }
                let run = stored.id.clone();
                if !stored.run.status.is_ended() {
                    return Err(StoreError::InUse { run });
                }
                let taken = self.take(&run)?;
                above.insert(run.clone());
                children.push(Removed { run, thread, _taken: taken });
            }
            match page.last().filter(|last| last.id.as_str().starts_with(&prefix)) {
                Some(last) if page.len() == query.page() => query = query.after(last.id.clone()),
                _ => return Ok(children),
            }
        }
    }

    /// Removes the children that have ended and whose parents the store does not have any more; says how many.
    async fn remove_orphans(&self, store: &dyn EventStore) -> Result<u64, StoreError> {
        let (mut listed, mut removed) = (HashSet::new(), 0);
        let mut query = RunQuery::new();
        loop {
            let page = store.runs(&query).await?;
            for stored in &page {
                // A run comes before its children.
                if self.is_orphan(store, stored, &listed).await?
                    && self.remove_orphan(store, &stored.id).await?
                {
                    removed += 1;
                } else {
                    listed.insert(stored.id.clone());
                }
            }
            match page.last() {
                Some(last) if page.len() == query.page() => query = query.after(last.id.clone()),
                _ => return Ok(removed),
            }
        }
    }

    async fn is_orphan(
        &self,
        store: &dyn EventStore,
        stored: &StoredRun,
        listed: &HashSet<RunId>,
    ) -> Result<bool, StoreError> {
        let Some(parent) = parent_in(&stored.id).filter(|_| stored.run.status.is_ended()) else {
            return Ok(false);
        };
        if listed.contains(&RunId::new(parent)) || self.inner.known.has(&stored.id) {
            return Ok(false);
        }
        let Some(parent) = origin_of(store, &stored.id).await?.parent else { return Ok(false) };
        // It may have begun since its part of the list was read.
        Ok(!listed.contains(&parent) && self.stored_run(&parent).await?.is_none())
    }

    async fn remove_orphan(&self, store: &dyn EventStore, run: &RunId) -> Result<bool, StoreError> {
        let _held = self.hold(run).await?;
        let Ok(taken) = self.take(run) else { return Ok(false) };
        // Another may have begun under its id while that was free.
        if self.stored_run(run).await?.is_none_or(|stored| !stored.run.status.is_ended()) {
            return Ok(false);
        }
        let thread = origin_of(store, run).await?.thread;
        self.remove(store, Removed { run: run.clone(), thread, _taken: taken }).await
    }
}

/// Where a run belongs, as its journal says; nothing of one whose first record cannot be read.
async fn origin_of(store: &dyn EventStore, run: &RunId) -> Result<Origin, StoreError> {
    let first = match store.read(run, Position(0), 1).await {
        Ok(first) => first.into_iter().next(),
        Err(StoreError::Corrupt { .. } | StoreError::NewerFormat { .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(match first {
        Some(Record::RunStarted { parent, thread, private_thread, .. }) => {
            Origin { parent: parent.map(|parent| parent.run), thread: private_thread.then_some(thread) }
        }
        _ => Origin::default(),
    })
}

/// The id of the run that this one is a child of, if its id looks like a child's: `order-17` of `order-17/price-x3.1`.
/// Names that programs give to children may have slashes too, so that it is a run further down then.
fn parent_in(run: &RunId) -> Option<&str> {
    let run = run.as_str();
    run.match_indices('/').rev().find_map(|(at, _)| {
        let (step, _name) = run[at + 1..].split_once('.')?;
        let (_, execution) = step.rsplit_once("-x")?;
        let is_number = !execution.is_empty() && execution.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && !step.contains('/')).then_some(&run[..at])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_in_an_id_that_looks_like_a_childs() {
        let parent = |id: &str| parent_in(&id.into()).map(str::to_owned);
        assert_eq!(parent("order-17/price-x3.1").as_deref(), Some("order-17"));
        assert_eq!(parent("a/b/price-x3.a2.1").as_deref(), Some("a/b"));
        assert_eq!(parent("a/s-x1.eu/west").as_deref(), Some("a"));
        assert_eq!(parent("a/s-x1.1/t-x2.1").as_deref(), Some("a/s-x1.1"));
        for none in ["", "a", "tenant/17", "tenant/order-x.1", "a/-x.", "a/s-x1"] {
            assert_eq!(parent(none), None, "{none}");
        }
    }
}
