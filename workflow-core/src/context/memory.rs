//! The store of contexts in memory. It is lost with its process, serialises nothing, and removes nothing by itself: the
//! engine clears a run's scope at the run's end.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use dashmap::DashMap;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::{ContextChange, ContextError, ContextScope, ContextStore, ContextValue};

/// Stores contexts in memory: the default of an engine without a store of journals.
///
/// They are lost with the process. [`MemoryStore`](crate::store::MemoryStore) has such contexts beside its journals.
///
/// A call takes O(log keys of the scope) time, and a list also O(page). A list of scopes reads all scopes.
///
/// ```
/// use workflow_core::RunId;
/// use workflow_core::store::{ContextScope, ContextStore, MemoryContexts};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow_core::errors::ContextError> {
/// let contexts = MemoryContexts::default();
/// let scope = ContextScope::Run(RunId::new("order-17"));
/// assert!(contexts.get(&scope, "attempts").await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct MemoryContexts {
    /// A shard's lock is held for one map operation at a time: never across an `await`, nor while a change or the
    /// `Drop` of a value runs. A scope without values has no entry.
    scopes: DashMap<ContextScope, Values>,
}

type Values = BTreeMap<Box<str>, ContextValue>;

impl MemoryContexts {
    /// Contexts that a restart loses, for an engine whose journals survive it.
    ///
    /// The same as the default, by a name that says what happens: after a restart, resumed runs find their counters and
    /// flags gone. An engine with a [`store`](crate::EngineBuilder::store) that hands out no contexts accepts workflows
    /// that take a context only with [`contexts`](crate::EngineBuilder::contexts), such as these.
    ///
    /// ```
    /// use workflow_core::Engine;
    /// use workflow_core::store::{MemoryContexts, MemoryStore};
    ///
    /// let engine = Engine::builder().store(MemoryStore::default()).contexts(MemoryContexts::forgetful());
    /// # engine.build()?;
    /// # Ok::<(), workflow_core::BuildError>(())
    /// ```
    pub fn forgetful() -> Self {
        Self::default()
    }

    /// Removes everything in a scope.
    pub(crate) fn forget(&self, scope: &ContextScope) {
        drop(self.scopes.remove(scope));
    }

    fn read(&self, scope: &ContextScope, key: &str) -> Option<ContextValue> {
        self.scopes.get(scope)?.get(key).cloned()
    }

    fn page(&self, scope: &ContextScope, after: Option<&str>, at_most: usize) -> Vec<(String, ContextValue)> {
        let Some(values) = self.scopes.get(scope) else { return Vec::new() };
        let keys = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let page = values.range::<str, _>(keys).take(at_most.max(1));
        page.map(|(key, value)| (key.to_string(), value.clone())).collect()
    }

    /// Scopes have no order in the map, so each page reads all of them.
    fn page_of_scopes(&self, after: Option<&ContextScope>, at_most: usize) -> Vec<ContextScope> {
        let scopes = self.scopes.iter().map(|values| values.key().clone());
        let mut page: Vec<_> = scopes.filter(|scope| after.is_none_or(|after| scope > after)).collect();
        page.sort_unstable();
        page.truncate(at_most.max(1));
        page
    }

    fn replace(&self, scope: &ContextScope, key: &str, value: Option<ContextValue>) -> Option<ContextValue> {
        self.with_values(scope, |values| put(values, key, value))
    }

    /// Applies `change` outside of any lock, and starts over if the value changed meanwhile. Each round some caller
    /// succeeds, so callers do not block each other for ever.
    fn apply(
        &self,
        scope: &ContextScope,
        key: &str,
        change: ContextChange<'_>,
    ) -> Result<Option<ContextValue>, ContextError> {
        loop {
            let seen = self.read(scope, key);
            let next = change(seen.clone())?;
            if self.replace_if_unchanged(scope, key, seen.as_ref(), next.clone()) {
                return Ok(next);
            }
        }
    }

    fn replace_if_unchanged(
        &self,
        scope: &ContextScope,
        key: &str,
        seen: Option<&ContextValue>,
        next: Option<ContextValue>,
    ) -> bool {
        // The caller holds both values, so neither is dropped here under the lock.
        self.with_values(scope, |values| {
            let unchanged = is_same(values.get(key), seen);
            if unchanged {
                put(values, key, next);
            }
            unchanged
        })
    }

    fn with_values<R>(&self, scope: &ContextScope, work: impl FnOnce(&mut Values) -> R) -> R {
        let mut values = self.scopes.entry(scope.clone()).or_default();
        let result = work(&mut values);
        let is_empty = values.is_empty();
        drop(values);
        if is_empty {
            self.scopes.remove_if(scope, |_, values| values.is_empty());
        }
        result
    }
}

/// Sets or removes a value. Returns the previous one.
fn put(values: &mut Values, key: &str, value: Option<ContextValue>) -> Option<ContextValue> {
    match (values.get_mut(key), value) {
        (Some(place), Some(value)) => Some(std::mem::replace(place, value)),
        (None, Some(value)) => values.insert(key.into(), value),
        (_, None) => values.remove(key),
    }
}

fn is_same(there: Option<&ContextValue>, seen: Option<&ContextValue>) -> bool {
    match (there, seen) {
        (Some(there), Some(seen)) => there.is_same(seen),
        (None, None) => true,
        _ => false,
    }
}

impl ContextStore for MemoryContexts {
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move { Ok(self.read(scope, key)) }.boxed()
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move { Ok(self.replace(scope, key, value)) }.boxed()
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move { self.apply(scope, key, change) }.boxed()
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        async move { Ok(self.page(scope, after, at_most)) }.boxed()
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        async move {
            self.forget(scope);
            Ok(())
        }
        .boxed()
    }

    fn serialises(&self) -> bool {
        false
    }

    fn scopes<'a>(
        &'a self,
        after: Option<&'a ContextScope>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<ContextScope>, ContextError>> {
        async move { Ok(self.page_of_scopes(after, at_most)) }.boxed()
    }
}

impl fmt::Debug for MemoryContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryContexts").field("scopes", &self.scopes.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::id::RunId;

    fn scope(run: &str) -> ContextScope {
        ContextScope::Run(run.into())
    }

    fn value(number: i32) -> ContextValue {
        ContextValue::new(number)
    }

    fn number(value: Option<ContextValue>) -> Option<i32> {
        value.map(|value| value.get().unwrap())
    }

    #[tokio::test]
    async fn set_returns_the_previous_value() {
        let store = MemoryContexts::default();
        assert_eq!(number(store.set(&scope("a"), "k", Some(value(1))).await.unwrap()), None);
        assert_eq!(number(store.set(&scope("a"), "k", Some(value(2))).await.unwrap()), Some(1));
        assert_eq!(number(store.set(&scope("a"), "k", None).await.unwrap()), Some(2));
        assert_eq!(number(store.get(&scope("a"), "k").await.unwrap()), None);
    }

    #[tokio::test]
    async fn scopes_are_independent_and_a_run_is_not_a_thread() {
        let store = MemoryContexts::default();
        store.set(&scope("a"), "k", Some(value(1))).await.unwrap();
        let thread = ContextScope::Thread("a".into());
        assert!(store.get(&scope("b"), "k").await.unwrap().is_none());
        assert!(store.get(&thread, "k").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_scope_without_values_takes_no_room() {
        let store = MemoryContexts::default();
        for run in ["a", "b", "c"] {
            store.set(&scope(run), "k", Some(value(1))).await.unwrap();
        }
        store.set(&scope("a"), "k", None).await.unwrap();
        store.update(&scope("b"), "k", &mut |_| Ok(None)).await.unwrap();
        store.clear(&scope("c")).await.unwrap();
        store.clear(&scope("c")).await.unwrap();
        store.update(&scope("d"), "k", &mut |_| Ok(None)).await.unwrap();
        assert!(store.scopes.is_empty());
    }

    #[tokio::test]
    async fn scopes_with_values_are_listed_once_page_by_page() {
        let store = MemoryContexts::default();
        let thread = ContextScope::Thread("a".into());
        for scope in [&thread, &scope("b"), &scope("a"), &scope("c")] {
            store.set(scope, "k", Some(value(1))).await.unwrap();
        }
        store.clear(&scope("b")).await.unwrap();
        let (mut listed, mut after) = (Vec::new(), None);
        while let Some(last) = store.scopes(after.as_ref(), 1).await.unwrap().pop() {
            listed.push(last.clone());
            after = Some(last);
        }
        assert_eq!(listed, [scope("a"), scope("c"), thread]);
    }

    #[tokio::test]
    async fn a_change_that_fails_leaves_the_value() {
        let store = MemoryContexts::default();
        store.set(&scope("a"), "k", Some(value(1))).await.unwrap();
        let mut fails = |_| Err(ContextError::KeyTooLong { length: 0, limit: 0 });
        assert!(store.update(&scope("a"), "k", &mut fails).await.is_err());
        assert_eq!(number(store.get(&scope("a"), "k").await.unwrap()), Some(1));
    }

    #[tokio::test]
    async fn a_change_that_panics_leaves_the_value_and_the_store() {
        let store = Arc::new(MemoryContexts::default());
        store.set(&scope("a"), "k", Some(value(1))).await.unwrap();
        let panicking = Arc::clone(&store);
        let task = tokio::spawn(async move {
            let mut panics = |_| panic!("a bug in a change");
            panicking.update(&scope("a"), "k", &mut panics).await
        });
        assert!(task.await.unwrap_err().is_panic());
        assert_eq!(number(store.set(&scope("a"), "k", Some(value(2))).await.unwrap()), Some(1));
    }

    #[tokio::test]
    async fn a_change_starts_over_when_the_value_changes_meanwhile() {
        let store = MemoryContexts::default();
        let mut seen = Vec::new();
        let mut change = |there: Option<ContextValue>| {
            if seen.is_empty() {
                store.replace(&scope("a"), "k", Some(value(10)));
            }
            seen.push(number(there));
            Ok(Some(value(seen.len().try_into().unwrap())))
        };
        let stored = store.update(&scope("a"), "k", &mut change).await.unwrap();
        assert_eq!(number(stored), Some(2));
        assert_eq!(seen, [None, Some(10)]);
    }

    #[tokio::test]
    async fn nothing_happens_before_a_call_is_awaited() {
        let store = MemoryContexts::default();
        let run = ContextScope::Run(RunId::new("a"));
        drop(store.set(&run, "k", Some(value(1))));
        assert!(store.get(&run, "k").await.unwrap().is_none());
    }
}
