//! A store of contexts in memory for tests: it has values as JSON, as a disk would, counts calls, fails from a given call
//! on, and can let other tasks run before each call.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use workflow_core::errors::ContextError;
use workflow_core::store::{ContextChange, ContextScope, ContextStore, ContextValue, MemoryContexts};

#[derive(Default)]
pub(super) struct Watched {
    inner: MemoryContexts,
    calls: AtomicUsize,
    /// The number of calls that succeed, if it is set.
    allowed: Mutex<Option<usize>>,
    /// Whether the call that fails first takes effect nevertheless.
    fails_late: AtomicBool,
    /// The seed of random yields; 0 for none.
    yields: AtomicUsize,
}

impl Watched {
    pub(super) fn yielding(seed: usize) -> Self {
        Self { yields: seed.into(), ..Self::default() }
    }

    /// The number of calls since the last question.
    pub(super) fn take_calls(&self) -> usize {
        self.calls.swap(0, Relaxed)
    }

    /// Lets so many calls succeed and the others fail. The first failing one may take effect.
    pub(super) fn fail_after(&self, calls: Option<usize>, late: bool) {
        *self.allowed.lock().unwrap() = calls;
        self.fails_late.store(late, Relaxed);
    }

    /// Whether the call may go on, and whether it fails afterwards.
    async fn enter(&self) -> Result<bool, ContextError> {
        self.calls.fetch_add(1, Relaxed);
        let state = self.yields.load(Relaxed);
        if state > 0 {
            let next = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.yields.store(next | 1, Relaxed);
            for _ in 0..(next >> 33) % 4 {
                tokio::task::yield_now().await;
            }
        }
        let mut allowed = self.allowed.lock().unwrap();
        match &mut *allowed {
            None => Ok(false),
            Some(0) if self.fails_late.swap(false, Relaxed) => Ok(true),
            Some(0) => Err(failure()),
            Some(calls) => {
                *calls -= 1;
                Ok(false)
            }
        }
    }
}

fn failure() -> ContextError {
    ContextError::unavailable(io::Error::other("the process ended here"))
}

fn as_json(value: Option<ContextValue>) -> Option<ContextValue> {
    value.map(|value| ContextValue::from_json(value.to_json().unwrap()))
}

fn answer<T>(value: T, fails: bool) -> Result<T, ContextError> {
    if fails { Err(failure()) } else { Ok(value) }
}

impl ContextStore for Watched {
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move {
            let fails = self.enter().await?;
            answer(self.inner.get(scope, key).await?, fails)
        }
        .boxed()
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move {
            let fails = self.enter().await?;
            answer(self.inner.set(scope, key, as_json(value)).await?, fails)
        }
        .boxed()
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move {
            let fails = self.enter().await?;
            let mut change = |there| change(there).map(as_json);
            answer(self.inner.update(scope, key, &mut change).await?, fails)
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        async move {
            let fails = self.enter().await?;
            answer(self.inner.list(scope, after, at_most).await?, fails)
        }
        .boxed()
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        self.inner.clear(scope)
    }
}
