//! Panicking clocks and context stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use futures::future::BoxFuture;
use workflow_core::errors::ContextError;
use workflow_core::observe::{Observation, Observer};
use workflow_core::prelude::*;
use workflow_core::store::{
    ContextChange, ContextScope, ContextStore, ContextValue, MemoryContexts, MemoryStore,
};
use workflow_core::{Clock, SystemClock};

use super::{Fine, explode, goes_on};
use crate::fixtures::{Begin, Done, Seen};

/// A clock that can be broken and repaired. Clones share one clock.
#[derive(Clone, Default)]
struct Fragile(Arc<AtomicBool>);

impl Fragile {
    fn is_broken(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Clock for Fragile {
    fn now(&self) -> SystemTime {
        if self.is_broken() { explode() } else { SystemClock.now() }
    }

    fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
        SystemClock.sleep_until(at)
    }
}

/// Is displayed.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Oops;

/// Breaks the clock, and then displays an item.
struct Clumsy(Fragile);

#[workflow]
impl Clumsy {
    #[step]
    async fn drop_it(&self, begin: &Begin, display: &Display) -> Done {
        display.show(Oops);
        self.0.0.store(true, Ordering::SeqCst);
        tokio::task::yield_now().await;
        Done(begin.0)
    }
}

/// Sees everything.
struct Watch(Seen);

impl Observer for Watch {
    fn observe(&self, observation: &Observation) {
        self.0.note(format!("{:?}", observation.what));
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

// S27
#[tokio::test]
async fn a_clock_that_panics_ends_the_run_that_asked_and_observers_see_its_end() {
    let (clock, seen) = (Fragile::default(), Seen::default());
    let engine = Engine::builder().workflow(Clumsy(clock.clone())).workflow(Fine).clock(clock.clone());
    let engine = engine.observer(Watch(seen.clone())).build().unwrap();
    let run = engine.start::<Clumsy>(Begin(1)).await.unwrap();
    let error = run.outcome().await.unwrap_err();
    assert!(matches!(error, RunError::Detached), "{error}");
    assert!(seen.lines().last().unwrap().starts_with("RunEnded"), "{:?}", seen.lines());
    clock.0.store(false, Ordering::SeqCst);
    goes_on(&engine).await;
}

/// Fails to clear contexts.
struct Elephant(MemoryContexts, Seen);

impl ContextStore for Elephant {
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
        if key == "peanut" {
            explode()
        }
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
        self.1.note(if matches!(scope, ContextScope::Run(_)) { "run" } else { "thread" });
        explode()
    }
}

struct Remembering;

#[workflow]
impl Remembering {
    #[step(on_error = "continue")]
    async fn remember(&self, _begin: &Begin, context: RunContext) -> Result<(), StepError> {
        context.set("peanut", 1).await?;
        Ok(())
    }

    #[step]
    async fn end(&self, begin: &Begin, thread: &ThreadContext) -> Result<Done, StepError> {
        thread.set("nut", 1).await?;
        Ok(Done(begin.0))
    }
}

// S26, S27
#[tokio::test]
async fn a_context_store_that_panics_fails_the_step_that_asked_and_no_run_when_it_is_to_clear() {
    let seen = Seen::default();
    let contexts = Elephant(MemoryContexts::default(), seen.clone());
    let engine = Engine::builder().workflow(Remembering).workflow(Fine).contexts(contexts);
    let engine = engine.max_concurrent_runs(1).build().unwrap();
    let run = engine.start::<Remembering>(Begin(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    let report = run.report().await.unwrap();
    assert_eq!(super::failures_of(&report, "remember"), ["it panicked: no message"]);
    assert_eq!(seen.lines(), ["thread", "run"]);
    goes_on(&engine).await;
}

// S26
#[tokio::test]
async fn the_context_of_a_run_with_a_journal_stays_as_long_as_that_of_its_thread_cannot_be_cleared() {
    let seen = Seen::default();
    let contexts = Elephant(MemoryContexts::default(), seen.clone());
    let engine = Engine::builder().workflow(Remembering).contexts(contexts);
    let engine = engine.store(MemoryStore::default()).build().unwrap();
    let run = engine.start::<Remembering>(Begin(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    // The scope names the run's own thread, so that a later process can clear both.
    assert_eq!(seen.lines(), ["thread"]);
}
