//! The store of contexts as an engine calls it, and the clearing of contexts of ended runs. `removal` finds the
//! contexts that a killed process left.

use std::future::ready;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;

use crate::context::{ContextChange, ContextError, ContextScope, ContextStore, ContextValue, PRIVATE_THREAD};
use crate::id::{RunId, ThreadId};
use crate::panics::{caught, caught_in};
use crate::patience::StorePatience;
use crate::store::StoreError;

/// How many scopes one call asks for.
const PAGE: usize = 1_024;

/// An engine's store of contexts. A panic is an error, and so is an answer that is missing when the engine gives up.
pub(super) struct ContextScopes {
    store: Arc<dyn ContextStore>,
    patience: StorePatience,
    /// Whether journals outlive the process. Then another process can clear the contexts that this one leaves.
    outlive: bool,
}

impl ContextScopes {
    pub(super) fn new(store: Arc<dyn ContextStore>, patience: StorePatience, outlive: bool) -> Self {
        Self { store, patience, outlive }
    }

    /// A handle for runs. It does not keep the store open.
    pub(super) fn downgrade(&self) -> Weak<dyn ContextStore> {
        Arc::downgrade(&self.store)
    }

    /// The store for callers outside of runs.
    pub(super) fn outside(&self) -> Arc<dyn ContextStore> {
        Arc::new(OutsideContexts(Arc::clone(&self.store)))
    }

    /// Bounds a call by the engine's patience, and turns a panic into an error.
    async fn ask<T>(&self, asked: impl Future<Output = Result<T, ContextError>>) -> Result<T, StoreError> {
        match self.patience.wait(caught_in(asked)).await? {
            Ok(answer) => answer.map_err(StoreError::unavailable),
            Err(panic) => Err(StoreError::unavailable(panic)),
        }
    }

    /// Clears the context of a run, and before it the context of `thread`, which is this run's private thread.
    ///
    /// The run's scope names the thread, so it is cleared last: after a crash the next process finds the rest. An
    /// engine without journals has no next process. There the run's scope is cleared even if the thread's cannot be.
    pub(super) async fn clear(&self, run: &RunId, thread: Option<ThreadId>) -> Result<(), StoreError> {
        let of_thread = match thread {
            Some(thread) => self.clear_scope(ContextScope::Thread(thread)).await,
            None => Ok(()),
        };
        if of_thread.is_err() && self.outlive {
            return of_thread;
        }
        of_thread.and(self.clear_scope(ContextScope::Run(run.clone())).await)
    }

    async fn clear_scope(&self, scope: ContextScope) -> Result<(), StoreError> {
        self.ask(async { self.store.clear(&scope).await }).await
    }

    /// The private thread of a run, as the run's scope names it.
    pub(super) async fn private_thread(&self, run: &RunId) -> Result<Option<ThreadId>, StoreError> {
        let scope = ContextScope::Run(run.clone());
        let thread = self.ask(async { self.store.get(&scope, PRIVATE_THREAD).await }).await?;
        // The engine itself notes threads that can be read.
        Ok(thread.and_then(|thread| thread.get::<ThreadId>().ok()))
    }

    /// The next scopes with values, after this one.
    pub(super) async fn page(&self, after: Option<&ContextScope>) -> Result<Vec<ContextScope>, StoreError> {
        self.ask(async { self.store.scopes(after, PAGE).await }).await
    }
}

/// The store of contexts for callers outside of runs, which no attempt protects from a panic of the store: it is an error.
struct OutsideContexts(Arc<dyn ContextStore>);

/// The answer of a call of the store.
type Answer<'a, T> = BoxFuture<'a, Result<T, ContextError>>;

/// Turns a panic of the call into an error.
fn guarded<'a, T: Send + 'a>(call: impl FnOnce() -> Answer<'a, T> + Send + 'a) -> Answer<'a, T> {
    Box::pin(async move {
        let answered = caught_in(async move { call().await }).await;
        answered.unwrap_or_else(|panic| Err(ContextError::unavailable(panic)))
    })
}

impl ContextStore for OutsideContexts {
    fn get<'a>(&'a self, scope: &'a ContextScope, key: &'a str) -> Answer<'a, Option<ContextValue>> {
        guarded(move || self.0.get(scope, key))
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> Answer<'a, Option<ContextValue>> {
        guarded(move || self.0.set(scope, key, value))
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> Answer<'a, Option<ContextValue>> {
        guarded(move || self.0.update(scope, key, change))
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> Answer<'a, Vec<(String, ContextValue)>> {
        guarded(move || self.0.list(scope, after, at_most))
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> Answer<'a, ()> {
        guarded(move || self.0.clear(scope))
    }

    fn serialises(&self) -> bool {
        caught(|| self.0.serialises()).unwrap_or(true)
    }
}

/// The contexts of an engine whose store of journals hands out none: nothing is there, and nothing can be set.
///
/// Only parameters that do not [declare](crate::signature::InputSpec::using_context) their use of a context reach it.
pub(super) struct NoContexts;

impl ContextStore for NoContexts {
    fn get<'a>(
        &'a self,
        _: &'a ContextScope,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        Box::pin(ready(Ok(None)))
    }

    fn set<'a>(
        &'a self,
        _: &'a ContextScope,
        _: &'a str,
        _: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        Box::pin(ready(Err(ContextError::NoStore)))
    }

    fn update<'a>(
        &'a self,
        _: &'a ContextScope,
        _: &'a str,
        _: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        Box::pin(ready(Err(ContextError::NoStore)))
    }

    fn list<'a>(
        &'a self,
        _: &'a ContextScope,
        _: Option<&'a str>,
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn clear<'a>(&'a self, _: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        Box::pin(ready(Ok(())))
    }

    fn serialises(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::super::ending::Ending;
    use super::*;
    use crate::context::MemoryContexts;

    fn set(store: &MemoryContexts, scope: &ContextScope, key: &str, value: ContextValue) {
        store.set(scope, key, Some(value)).now_or_never().unwrap().unwrap();
    }

    /// The scopes that have values.
    fn left(store: &MemoryContexts) -> Vec<ContextScope> {
        let mut left = store.scopes(None, PAGE).now_or_never().unwrap().unwrap();
        left.sort();
        left
    }

    fn now<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        asked.now_or_never().expect("a store in memory answers at once")
    }

    #[test]
    fn the_thread_of_a_run_goes_before_its_own_scope() {
        let store = Arc::new(MemoryContexts::default());
        let (run, thread) = (ContextScope::Run("r".into()), ContextScope::Thread("t".into()));
        set(&store, &run, PRIVATE_THREAD, ContextValue::new(ThreadId::from("t")));
        set(&store, &thread, "seen", ContextValue::new(1));
        let contexts =
            ContextScopes::new(Arc::<MemoryContexts>::clone(&store), Ending::default().patience(), true);
        let noted = now(contexts.private_thread(&"r".into())).unwrap();
        assert_eq!(noted, Some("t".into()));
        assert_eq!(now(contexts.page(None)).unwrap().len(), 2);
        now(contexts.clear(&"r".into(), noted)).unwrap();
        assert!(left(&store).is_empty());
    }

    /// Contexts in memory whose thread scopes cannot be cleared.
    #[derive(Default)]
    struct Stuck(MemoryContexts);

    impl ContextStore for Stuck {
        fn get<'a>(
            &'a self,
            scope: &'a ContextScope,
            key: &'a str,
        ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
            self.0.get(scope, key)
        }

        fn set<'a>(
            &'a self,
            scope: &'a ContextScope,
            key: &'a str,
            value: Option<ContextValue>,
        ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
            self.0.set(scope, key, value)
        }

        fn update<'a>(
            &'a self,
            scope: &'a ContextScope,
            key: &'a str,
            change: ContextChange<'a>,
        ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
            self.0.update(scope, key, change)
        }

        fn list<'a>(
            &'a self,
            scope: &'a ContextScope,
            after: Option<&'a str>,
            at_most: usize,
        ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
            self.0.list(scope, after, at_most)
        }

        fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
            match scope {
                ContextScope::Run(_) => self.0.clear(scope),
                ContextScope::Thread(_) => panic!("threads cannot be cleared"),
            }
        }
    }

    #[test]
    fn a_thread_that_cannot_be_cleared_keeps_the_run_scope_for_the_next_process() {
        for outlive in [true, false] {
            let store = Arc::new(Stuck::default());
            set(&store.0, &ContextScope::Run("r".into()), "seen", ContextValue::new(1));
            let contexts =
                ContextScopes::new(Arc::<Stuck>::clone(&store), Ending::default().patience(), outlive);
            let cleared = now(contexts.clear(&"r".into(), Some("t".into())));
            assert!(matches!(cleared, Err(StoreError::Unavailable { .. })), "{cleared:?}");
            assert_eq!(left(&store.0).len(), usize::from(outlive));
        }
    }
}
