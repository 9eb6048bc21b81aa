//! Context of runs and threads, as steps see it (S6, S26).

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use workflow_core::RunOptions;
use workflow_core::errors::ContextError;
use workflow_core::prelude::*;
use workflow_core::store::{ContextChange, ContextScope, ContextStore, ContextValue, MemoryContexts};

use crate::fixtures::{Begin, Close, Done, Item, Part, started};

struct Counting;

#[workflow]
impl Counting {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(spawn)]
    async fn count(&self, item: &Item, context: &RunContext) -> Result<Part, StepError> {
        context.increment("count", 1).await?;
        tokio::task::yield_now().await;
        context.update("sum", |sum: Option<u32>| sum.unwrap_or(0) + item.0).await?;
        Ok(Part(item.0))
    }

    #[step]
    async fn end(&self, _parts: &FixedList<Part, 200>, context: RunContext) -> Result<Done, StepError> {
        let count = context.get::<u32>("count").await?.unwrap_or(0);
        let sum = context.get::<u32>("sum").await?.unwrap_or(0);
        Ok(Done(count * 100_000 + sum))
    }
}

// S26
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_and_increments_of_many_concurrent_steps_all_count() {
    let sum: u32 = (0..200).sum();
    assert_eq!(Counting.run(Begin(200)).await.unwrap(), Done(200 * 100_000 + sum));
}

struct Visits;

#[workflow]
impl Visits {
    #[step]
    async fn visit(
        &self,
        _begin: &Begin,
        run: &RunContext,
        thread: &ThreadContext,
    ) -> Result<Done, StepError> {
        let of_run = run.increment("visits", 1).await?;
        let of_thread = thread.increment("visits", 1).await?;
        Ok(Done(u32::try_from(of_thread * 10 + of_run)?))
    }
}

async fn visit(engine: &Engine, thread: Option<&str>) -> Done {
    let options = RunOptions::new();
    let options = match thread {
        Some(thread) => options.thread(thread),
        None => options,
    };
    engine.start_with::<Visits>(Begin(0), options).await.unwrap().outcome().await.unwrap()
}

// S6
#[tokio::test]
async fn runs_of_one_thread_share_its_context_and_not_their_own() {
    let engine = Engine::builder().workflow(Visits).build().unwrap();
    assert_eq!(visit(&engine, Some("user-4")).await, Done(11));
    assert_eq!(visit(&engine, Some("user-4")).await, Done(21));
    assert_eq!(visit(&engine, Some("user-5")).await, Done(11));
}

// S6
#[tokio::test]
async fn a_run_without_a_thread_has_one_of_its_own() {
    let engine = Engine::builder().workflow(Visits).build().unwrap();
    assert_eq!(visit(&engine, None).await, Done(11));
    assert_eq!(visit(&engine, None).await, Done(11));
}

struct Concurrently;

#[workflow]
impl Concurrently {
    #[step]
    async fn write(&self, begin: &Begin, thread: &ThreadContext) -> Result<(), StepError> {
        Ok(thread.set("from", begin.0).await?)
    }

    #[step]
    async fn read(&self, _close: &Close, thread: &ThreadContext) -> Result<Done, StepError> {
        Ok(Done(thread.get("from").await?.unwrap_or(0)))
    }
}

// S26
#[tokio::test]
async fn a_write_is_seen_by_another_running_run_of_the_thread_at_once() {
    let engine = Engine::builder().workflow(Concurrently).build().unwrap();
    let start = |number| engine.start_with::<Concurrently>(Begin(number), RunOptions::new().thread("t"));
    let first = start(1).await.unwrap();
    first.settled().await;
    let second = start(2).await.unwrap();
    second.settled().await;
    first.send(Close).await.unwrap();
    assert_eq!(first.outcome().await.unwrap(), Done(2));
}

/// A store that the test can inspect.
#[derive(Clone, Default)]
struct Watched(Arc<MemoryContexts>);

impl ContextStore for Watched {
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
        self.0.clear(scope)
    }
}

// S26
#[tokio::test]
async fn an_engine_keeps_context_in_the_store_it_was_given() {
    let store = Watched::default();
    let engine = Engine::builder().workflow(Concurrently).contexts(store.clone()).build().unwrap();
    let options = RunOptions::new().thread("t");
    let run = engine.start_with::<Concurrently>(Begin(7), options).await.unwrap();
    run.settled().await;
    let kept = store.0.get(&ContextScope::Thread("t".into()), "from").await.unwrap();
    assert_eq!(kept.unwrap().get::<u32>().unwrap(), 7);
}

struct Broken;

impl ContextStore for Broken {
    fn get<'a>(
        &'a self,
        _: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        async move { Err(ContextError::NotKept { key: key.into() }) }.boxed()
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        _: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.get(scope, key)
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        _: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.get(scope, key)
    }

    fn list<'a>(
        &'a self,
        _: &'a ContextScope,
        _: Option<&'a str>,
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        async move { Err(ContextError::NotKept { key: "everything".into() }) }.boxed()
    }

    fn clear<'a>(&'a self, _: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        async move { Err(ContextError::NotKept { key: "everything".into() }) }.boxed()
    }
}

// S26, S29
#[tokio::test]
async fn a_store_that_fails_fails_the_step_that_asked_it() {
    let engine = Engine::builder().workflow(Visits).contexts(Broken).build().unwrap();
    let error = engine.start::<Visits>(Begin(0)).await.unwrap().outcome().await.unwrap_err();
    let RunError::StepFailed { step, source, .. } = error else { panic!("{error}") };
    assert_eq!(&*step, "visit");
    assert!(matches!(source.downcast_ref(), Some(ContextError::NotKept { key }) if &**key == "visits"));
}

// S26
#[tokio::test]
async fn data_of_one_run_alone_is_removed_with_it() {
    let store = Watched::default();
    let engine = Engine::builder().workflow(Visits).contexts(store.clone()).build().unwrap();
    let options = RunOptions::new().id("r").thread("t");
    engine.start_with::<Visits>(Begin(0), options).await.unwrap().outcome().await.unwrap();
    crate::fixtures::until(|| engine.running().is_empty()).await;
    assert!(store.0.get(&ContextScope::Run("r".into()), "visits").await.unwrap().is_none());
    assert!(store.0.get(&ContextScope::Thread("t".into()), "visits").await.unwrap().is_some());
}

// S26
#[tokio::test]
async fn runs_do_not_see_each_others_context() {
    let [first, second] = [started(Visits, 0).await, started(Visits, 0).await];
    assert_eq!(first.outcome().await.unwrap(), Done(11));
    assert_eq!(second.outcome().await.unwrap(), Done(11));
}
