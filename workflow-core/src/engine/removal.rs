//! Removing runs from the store, with their contexts and their children.
//!
//! Order, so that the next call or process can finish what a crash interrupted: contexts before journals, children
//! before parents, and a run's own scope after the scope of its private thread.

use std::collections::HashSet;

use super::contexts::ContextScopes;
use super::journals::{Journals, Pages};
use super::owner::Availability;
use super::registry::{Reserved, RunRegistry};
use super::{Engine, Inner};
use crate::context::ContextScope;
use crate::id::{RunId, RunStatus, ThreadId};
use crate::store::{EventStore, Position, Record, Retention, RunQuery, StoreError, StoredRun};

/// Removes runs from the store of journals and from the store of contexts.
pub(super) struct Removal<'a> {
    pub(super) journals: &'a Journals,
    pub(super) contexts: &'a ContextScopes,
    pub(super) runs: &'a RunRegistry,
}

/// A run to remove. Its reserved id keeps others from beginning or resuming a run meanwhile.
struct Removed<'a> {
    id: Reserved<'a>,
    /// The thread that was created for this run only.
    thread: Option<ThreadId>,
}

/// The rest to clear of a run that has values in its context.
enum Left {
    /// The run is open, or not in this store.
    Nothing,
    /// It has ended, and can continue (S39): the values stay until it completes or is removed.
    Redrivable,
    /// It has ended for good.
    Contexts,
}

/// Parent and private thread of a run, from its first record.
#[derive(Default)]
struct FirstRecord {
    parent: Option<RunId>,
    /// The thread that was created for this run only.
    thread: Option<ThreadId>,
}

impl Engine {
    /// Removes a run with its context and all its descendants from the engine's store.
    ///
    /// Returns whether the store had the run. The id can be used again at once. Contexts are removed before journals,
    /// and children before their parents, so a call that failed, was dropped or ended with its process can be repeated.
    ///
    /// An open run that this engine does not drive is removed. Without [leases](crate::EngineBuilder::lease) the caller
    /// has to make sure that no other engine drives it. O(descendants) calls of the store.
    ///
    /// An engine without a store removes an ended run that it [keeps](crate::EngineBuilder::keep_ended). Handles on it
    /// stay valid.
    ///
    /// # Errors
    /// [`StoreError::InUse`], with nothing removed, if this engine or another one that holds a lease drives the run, or
    /// a descendant has not ended. Cancel or remove the named run first. [`StoreError::NoStore`], and errors of the
    /// store and of the contexts, after which some descendants may be removed.
    pub async fn remove_run(&self, run: &RunId) -> Result<bool, StoreError> {
        if let Some(ended) = self.inner.runs.ended() {
            if self.inner.runs.has(run) {
                return Err(StoreError::InUse { run: run.clone() });
            }
            return Ok(ended.remove(run));
        }
        self.inner.removal().remove_run(run).await
    }

    /// Removes the ended runs that no rule of `kept` retains, with their contexts.
    ///
    /// Returns the number of removed runs. Ended children are removed with their parents, even if a rule would retain
    /// them. Open runs of any engine and their children always stay.
    ///
    /// The call first clears contexts that a killed process left of ended runs, as
    /// [`resume_open_runs`](Self::resume_open_runs) does. O(runs of the store) time and memory.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], and errors of the store and of the contexts, after which some of the runs may be
    /// removed.
    pub async fn retain(&self, kept: &Retention) -> Result<u64, StoreError> {
        self.inner.removal().retain(kept).await
    }
}

impl Inner {
    pub(super) fn removal(&self) -> Removal<'_> {
        Removal { journals: &self.journals, contexts: &self.contexts, runs: &self.runs }
    }
}

impl<'a> Removal<'a> {
    /// Removes a run with its descendants.
    async fn remove_run(&self, run: &RunId) -> Result<bool, StoreError> {
        let store = self.store()?;
        let _run_lock = self.runs.lock(run).await?;
        // The reservation keeps others from beginning a run of this id while its journal is removed.
        let id = self.reserve(run)?;
        if matches!(self.journals.availability(run).await?, Availability::Elsewhere(_)) {
            return Err(StoreError::InUse { run: run.clone() });
        }
        let mut children = self.children_of(run).await?;
        // The deepest first: a child's id begins with its parent's, so it comes later in the list.
        while let Some(child) = children.pop() {
            self.remove(child).await?;
        }
        // A run is removed even if its journal cannot be read.
        let thread = first_record_of(store, run).await.unwrap_or_default().thread;
        self.remove(Removed { id, thread }).await
    }

    /// Removes the ended runs that no rule retains, and the children of removed runs.
    async fn retain(&self, kept: &Retention) -> Result<u64, StoreError> {
        let store = self.store()?;
        // Contexts first: once a journal is removed, no engine knows whose its contexts are.
        let redrivable = self.clear_leftover_contexts().await?;
        let removed = store.retain(kept).await?;
        for (run, thread) in redrivable {
            self.clear_if_gone(&run, thread).await?;
        }
        Ok(removed + self.remove_leftover_children().await?)
    }

    /// Clears the contexts of a run that could have been redriven, if the store has removed the run.
    async fn clear_if_gone(&self, run: &RunId, thread: Option<ThreadId>) -> Result<(), StoreError> {
        let _run_lock = self.runs.lock(run).await?;
        let Some(_reserved) = self.runs.reserve(run) else { return Ok(()) };
        if self.journals.listed(run).await?.is_none() {
            self.contexts.clear(run, thread).await?;
        }
        Ok(())
    }

    fn store(&self) -> Result<&'a dyn EventStore, StoreError> {
        Ok(&**self.journals.store()?)
    }

    fn reserve(&self, run: &RunId) -> Result<Reserved<'a>, StoreError> {
        self.runs.reserve(run).ok_or_else(|| StoreError::InUse { run: run.clone() })
    }

    /// Removes one run, its contexts first. Returns whether the store had it.
    async fn remove(&self, removed: Removed<'a>) -> Result<bool, StoreError> {
        let Removed { id, thread } = removed;
        self.contexts.clear(id.run(), thread).await?;
        self.store()?.remove(id.run()).await
    }

    /// All descendants of a run, in the order of their ids. An error if one of them has not ended.
    async fn children_of(&self, root: &RunId) -> Result<Vec<Removed<'a>>, StoreError> {
        let store = self.store()?;
        let (mut above, mut children) = (HashSet::from([root.clone()]), Vec::new());
        let mut pages = Pages::below(store, root, RunQuery::new());
        while let Some(page) = pages.next().await? {
            for StoredRun { id: run, run: summary, .. } in page {
                if parent_in(&run).is_none() {
                    continue;
                }
                let FirstRecord { parent, thread } = first_record_of(store, &run).await?;
                if !parent.is_some_and(|parent| above.contains(&parent)) {
                    continue;
                }
                if !summary.status.is_ended() {
                    return Err(StoreError::InUse { run });
                }
                children.push(Removed { id: self.reserve(&run)?, thread });
                above.insert(run);
            }
        }
        Ok(children)
    }

    /// Removes ended children whose parents are not in the store any more. Returns how many.
    async fn remove_leftover_children(&self) -> Result<u64, StoreError> {
        let (mut listed, mut removed) = (HashSet::new(), 0);
        let mut pages = Pages::of(self.store()?, RunQuery::new());
        while let Some(page) = pages.next().await? {
            for stored in page {
                // A parent comes before its children.
                if self.is_leftover_child(&stored, &listed).await?
                    && self.remove_leftover_child(&stored.id).await?
                {
                    removed += 1;
                } else {
                    listed.insert(stored.id);
                }
            }
        }
        Ok(removed)
    }

    /// Whether the run is an ended child whose parent neither `listed` nor the store has.
    async fn is_leftover_child(
        &self,
        stored: &StoredRun,
        listed: &HashSet<RunId>,
    ) -> Result<bool, StoreError> {
        let Some(parent) = parent_in(&stored.id).filter(|_| stored.run.status.is_ended()) else {
            return Ok(false);
        };
        if listed.contains(&RunId::new(parent)) || self.runs.has(&stored.id) {
            return Ok(false);
        }
        let Some(parent) = first_record_of(self.store()?, &stored.id).await?.parent else { return Ok(false) };
        // The parent may have begun since the search read its part of the list.
        Ok(!listed.contains(&parent) && self.journals.listed(&parent).await?.is_none())
    }

    /// Removes a leftover child, unless a run of its id began meanwhile. Returns whether it was removed.
    async fn remove_leftover_child(&self, run: &RunId) -> Result<bool, StoreError> {
        let _run_lock = self.runs.lock(run).await?;
        let Some(id) = self.runs.reserve(run) else { return Ok(false) };
        // Another run may have begun under this id before the reservation.
        if !self.journals.is_listed_as_ended(run).await? {
            return Ok(false);
        }
        let thread = first_record_of(self.store()?, run).await?.thread;
        self.remove(Removed { id, thread }).await
    }

    /// Clears the contexts of runs that the store lists as ended and this engine does not drive: a killed process left
    /// them. Returns the runs whose contexts stay because the runs can be redriven, with their private threads.
    ///
    /// Contexts of runs that the store does not list stay, since an engine without journals or with another store may
    /// use them. Contexts of open runs stay too. A run uses its context only once the store has its beginning, so a run
    /// that is starting is listed as open.
    ///
    /// O(runs with contexts) calls of the stores.
    pub(super) async fn clear_leftover_contexts(&self) -> Result<Vec<(RunId, Option<ThreadId>)>, StoreError> {
        let (mut after, mut redrivable) = (None, Vec::new());
        loop {
            let page = self.contexts.page(after.as_ref()).await?;
            for scope in &page {
                // A thread's scope is removed only with a run whose own scope names it.
                if let ContextScope::Run(run) = scope
                    && self.clear_if_left(run).await?
                {
                    redrivable.push((run.clone(), self.contexts.private_thread(run).await?));
                }
            }
            match page.last() {
                Some(last) => after = Some(last.clone()),
                None => return Ok(redrivable),
            }
        }
    }

    /// Clears the contexts of one run, if the store lists it as ended and this engine has no such run. Leaves those of
    /// a run that can be redriven, and returns whether it is one.
    async fn clear_if_left(&self, run: &RunId) -> Result<bool, StoreError> {
        match self.left(run).await? {
            Left::Nothing => return Ok(false),
            Left::Redrivable => return Ok(true),
            Left::Contexts => {}
        }
        let _run_lock = self.runs.lock(run).await?;
        let Some(_reserved) = self.runs.reserve(run) else { return Ok(false) };
        // The id was free until the reservation, so another run may have begun under it.
        let stored = self.journals.listed(run).await?;
        if stored.is_none_or(|stored| !stored.run.status.is_ended()) {
            return Ok(false);
        }
        let thread = self.contexts.private_thread(run).await?;
        self.contexts.clear(run, thread).await.map(|()| false)
    }

    /// The rest of a run that has values in its context.
    async fn left(&self, run: &RunId) -> Result<Left, StoreError> {
        let stored = if self.runs.has(run) { None } else { self.journals.listed(run).await? };
        Ok(match stored.map(|stored| stored.run.status) {
            Some(RunStatus::Completed) => Left::Contexts,
            Some(status) if status.is_ended() => {
                let is_child = first_record_of(self.store()?, run).await?.parent.is_some();
                if is_child { Left::Contexts } else { Left::Redrivable }
            }
            _ => Left::Nothing,
        })
    }
}

/// The facts of a run's first record; empty if that cannot be read.
async fn first_record_of(store: &dyn EventStore, run: &RunId) -> Result<FirstRecord, StoreError> {
    let first = match store.read(run, Position(0), 1).await {
        Ok(first) => first.into_iter().next(),
        Err(StoreError::Corrupt { .. } | StoreError::NewerFormat { .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(match first {
        Some(Record::RunStarted { parent, thread, private_thread, .. }) => {
            FirstRecord { parent: parent.map(|parent| parent.run), thread: private_thread.then_some(thread) }
        }
        _ => FirstRecord::default(),
    })
}

/// The id of the parent, if the id looks like a child's: `order-17` of `order-17/price-x3.1`. Names that programs give
/// to children may have slashes too; then this is a run further down.
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
    use super::super::ending::Ending;
    use super::super::fixtures::{Began, Written, now};
    use super::*;
    use crate::context::{ContextStore as _, ContextValue, MemoryContexts, PRIVATE_THREAD};

    /// The parts that a removal needs.
    struct Parts {
        written: Written,
        journals: Journals,
        store: std::sync::Arc<MemoryContexts>,
        contexts: ContextScopes,
        runs: RunRegistry,
    }

    impl Parts {
        /// Two runs with a child each that has ended, a thread and something in their contexts.
        fn new() -> Self {
            let (written, patience) = (Written::default(), Ending::default().patience());
            let store = std::sync::Arc::new(MemoryContexts::default());
            for run in ["a", "b"] {
                let thread = format!("of {run}");
                written.begin(run, Began { private_thread: Some(&thread), ..Began::default() });
                let child = format!("{run}/greet-x1.1");
                written.begin(&child, Began { parent: Some(run), awaited: true, ..Began::default() });
                written.end(&child);
                let noted = ContextValue::new(ThreadId::from(thread.as_str()));
                let set = |scope, key, value| now(store.set(&scope, key, Some(value))).unwrap();
                set(ContextScope::Run(run.into()), PRIVATE_THREAD, noted);
                set(ContextScope::Thread(thread.as_str().into()), "seen", ContextValue::new(1));
            }
            let contexts = std::sync::Arc::<MemoryContexts>::clone(&store);
            Self {
                journals: written.journals(),
                contexts: ContextScopes::new(contexts, patience.clone(), true),
                runs: RunRegistry::new(patience),
                written,
                store,
            }
        }

        fn removal(&self) -> Removal<'_> {
            Removal { journals: &self.journals, contexts: &self.contexts, runs: &self.runs }
        }

        /// The scopes that have something.
        fn scopes(&self) -> Vec<String> {
            let scopes = now(self.store.scopes(None, 100)).unwrap();
            let mut scopes: Vec<_> = scopes.iter().map(ToString::to_string).collect();
            scopes.sort();
            scopes
        }
    }

    #[test]
    fn a_run_goes_with_its_children_and_contexts() {
        let parts = Parts::new();
        assert!(now(parts.removal().remove_run(&"a".into())).unwrap());
        assert_eq!(parts.written.ids(), ["b", "b/greet-x1.1"]);
        assert_eq!(parts.scopes(), ["run b", "thread of b"]);
        assert_eq!(parts.runs.len(), 0, "the ids are free again");
        assert!(!now(parts.removal().remove_run(&"a".into())).unwrap());
    }

    #[test]
    fn nothing_is_removed_of_a_run_that_is_driven_or_has_a_child_that_has_not_ended() {
        let parts = Parts::new();
        let driven = parts.runs.reserve(&"a".into());
        parts.written.begin("b/greet-x2.1", Began { parent: Some("b"), ..Began::default() });
        for (run, in_use) in [("a", "a"), ("b", "b/greet-x2.1")] {
            let refused = now(parts.removal().remove_run(&run.into()));
            assert!(matches!(refused, Err(StoreError::InUse { run }) if run == in_use.into()));
        }
        assert_eq!((parts.written.ids().len(), parts.scopes().len()), (5, 4));
        drop(driven);
    }

    #[test]
    fn runs_that_ended_go_with_their_children_and_open_ones_stay() {
        let parts = Parts::new();
        parts.written.end("a");
        let removed = now(parts.removal().retain(&Retention::none())).unwrap();
        assert_eq!((removed, parts.written.ids()), (2, vec!["b".to_owned(), "b/greet-x1.1".to_owned()]));
        assert_eq!(parts.scopes(), ["run b", "thread of b"]);
    }

    #[test]
    fn contexts_are_cleared_of_runs_alone_that_the_store_lists_as_completed() {
        let parts = Parts::new();
        parts.written.end_with("a", RunStatus::Completed);
        let scope = ContextScope::Run("unlisted".into());
        now(parts.store.set(&scope, "seen", Some(ContextValue::new(1)))).unwrap();
        assert_eq!(now(parts.removal().clear_leftover_contexts()).unwrap(), []);
        assert_eq!(parts.scopes(), ["run b", "run unlisted", "thread of b"]);
    }

    // S39
    #[test]
    fn contexts_of_a_run_that_can_be_redriven_stay_until_the_run_is_removed() {
        let parts = Parts::new();
        parts.written.end("a");
        let redrivable = now(parts.removal().clear_leftover_contexts()).unwrap();
        assert_eq!(redrivable.iter().map(|(run, _)| run.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(parts.scopes(), ["run a", "run b", "thread of a", "thread of b"]);
        assert!(now(parts.removal().remove_run(&"a".into())).unwrap());
        assert_eq!(parts.scopes(), ["run b", "thread of b"]);
    }

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
