//! Removed runs leave nothing: no journals of children, no contexts, and no handles that answer for the next run of the
//! id. The same holds for runs whose process was killed between their end and the removal of their contexts (S26, S31).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::runtime::Builder;
use workflow_core::errors::ContextError;
use workflow_core::prelude::*;
use workflow_core::store::{
    ContextChange, ContextScope, ContextStore, ContextValue, EventStore, MemoryContexts, MemoryStore,
    Retention, RunQuery, StoreError,
};
use workflow_core::{RunHandle, RunOptions, RunStatus, SendError};

use crate::fixtures::{Begin, Done, Item, Note, until};

/// A store of contexts whose clearing the test can block, as if the process were killed before. Clones are one store.
#[derive(Clone, Default)]
struct Kept {
    contexts: Arc<MemoryContexts>,
    keeps: Arc<AtomicBool>,
}

impl Kept {
    fn keep(&self, keeps: bool) {
        self.keeps.store(keeps, Ordering::SeqCst);
    }

    /// The non-empty scopes, as text.
    async fn scopes(&self) -> Vec<String> {
        let scopes = self.contexts.scopes(None, usize::MAX).await.unwrap();
        scopes.iter().map(ToString::to_string).collect()
    }
}

impl ContextStore for Kept {
    fn get<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.contexts.get(scope, key)
    }

    fn set<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        value: Option<ContextValue>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.contexts.set(scope, key, value)
    }

    fn update<'a>(
        &'a self,
        scope: &'a ContextScope,
        key: &'a str,
        change: ContextChange<'a>,
    ) -> BoxFuture<'a, Result<Option<ContextValue>, ContextError>> {
        self.contexts.update(scope, key, change)
    }

    fn list<'a>(
        &'a self,
        scope: &'a ContextScope,
        after: Option<&'a str>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, ContextValue)>, ContextError>> {
        self.contexts.list(scope, after, at_most)
    }

    fn clear<'a>(&'a self, scope: &'a ContextScope) -> BoxFuture<'a, Result<(), ContextError>> {
        if self.keeps.load(Ordering::SeqCst) {
            return std::future::pending().boxed();
        }
        self.contexts.clear(scope)
    }

    fn scopes<'a>(
        &'a self,
        after: Option<&'a ContextScope>,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Vec<ContextScope>, ContextError>> {
        // Page by page, for any requested size.
        self.contexts.scopes(after, at_most.min(1))
    }

    fn serialises(&self) -> bool {
        self.contexts.serialises()
    }
}

/// Counts in both contexts, and returns 11 if it was the first in both.
async fn count(run: &RunContext, thread: &ThreadContext) -> Result<u32, ContextError> {
    let counted = 10 * run.increment("count", 1).await? + thread.increment("count", 1).await?;
    Ok(u32::try_from(counted).unwrap())
}

/// Runs nested children down to 0, and optionally starts one that waits for a note.
struct Nests {
    starts: bool,
}

#[workflow]
impl Nests {
    #[step]
    async fn first(
        &self,
        begin: &Begin,
        children: &Children,
        run: &RunContext,
        thread: &ThreadContext,
    ) -> Result<Item, StepError> {
        let counted = count(run, thread).await?;
        if self.starts {
            children.start_with::<Waits>(Begin(0), RunOptions::new().id("alone")).await?;
        }
        if begin.0 > 0 {
            children.run::<Self>(Begin(begin.0 - 1)).await?;
        }
        Ok(Item(counted))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// Waits for a note before it ends.
struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn first(
        &self,
        _begin: &Begin,
        run: &RunContext,
        thread: &ThreadContext,
    ) -> Result<Item, StepError> {
        Ok(Item(count(run, thread).await?))
    }

    #[step]
    async fn end(&self, item: &Item, _note: &Note) -> Done {
        Done(item.0)
    }
}

/// Copes with a child that fails.
struct Copes;

#[workflow]
impl Copes {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Done {
        Done(u32::from(children.run::<Fails>(begin.clone()).await.is_err()))
    }
}

struct Fails;

#[workflow]
impl Fails {
    #[step]
    async fn fail(&self, _begin: &Begin, thread: &ThreadContext) -> Result<Done, StepError> {
        thread.set("failed", true).await?;
        Err(StepError::permanent("on purpose"))
    }
}

fn engine(store: &Arc<MemoryStore>, contexts: &Kept, starts: bool) -> Engine {
    let engine = Engine::builder().workflow(Nests { starts }).workflow(Waits).workflow(Copes).workflow(Fails);
    engine.store(Arc::clone(store)).contexts(contexts.clone()).build().unwrap()
}

async fn start<W: Workflow>(engine: &Engine, id: &str, depth: u32) -> RunHandle<W> {
    engine.start_with::<W>(Begin(depth), RunOptions::new().id(id)).await.unwrap()
}

async fn stored(store: &MemoryStore) -> Vec<String> {
    let runs = store.runs(&RunQuery::new()).await.unwrap();
    runs.into_iter().map(|stored| stored.id.to_string()).collect()
}

/// Runs the work in a process that is killed once every run has ended and before any context is cleared.
fn killed(store: &Arc<MemoryStore>, contexts: &Kept, work: impl AsyncFnOnce(&Engine)) {
    contexts.keep(true);
    let process = Builder::new_current_thread().enable_all().build().unwrap();
    process.block_on(async {
        let engine = engine(store, contexts, false);
        work(&engine).await;
        until(async || {
            let runs = store.runs(&RunQuery::new()).await.unwrap();
            !runs.is_empty() && runs.iter().all(|stored| stored.run.status.is_ended())
        })
        .await;
    });
    drop(process);
    contexts.keep(false);
}

#[tokio::test]
async fn a_run_is_removed_with_its_children_and_all_contexts_and_its_id_is_as_new() {
    let (store, contexts) = (Arc::default(), Kept::default());
    let engine = engine(&store, &contexts, false);
    // Its id begins like that of a child.
    start::<Waits>(&engine, "r/other", 0).await.cancel("enough").await.unwrap();
    let others = contexts.scopes().await;
    for _ in 0..3 {
        // The same children, which find nothing of the earlier ones.
        let run = start::<Nests>(&engine, "r", 3).await;
        assert_eq!(run.outcome().await.unwrap(), Done(11));
        assert_eq!(stored(&store).await.len(), 5);
        contexts
            .set(&ContextScope::Run("r/first-x1.1".into()), "left", Some(ContextValue::new(1)))
            .await
            .unwrap();
        contexts
            .set(&ContextScope::Thread(run.thread().clone()), "left", Some(ContextValue::new(1)))
            .await
            .unwrap();
        assert!(engine.remove_run(run.id()).await.unwrap());
        assert_eq!(stored(&store).await, ["r/other"]);
        assert_eq!(contexts.scopes().await, others);
        assert!(!engine.remove_run(run.id()).await.unwrap());
    }
}

#[tokio::test]
async fn a_run_stays_as_long_as_one_of_its_children_has_not_ended() {
    let (store, contexts) = (Arc::default(), Kept::default());
    let engine = engine(&store, &contexts, true);
    let run = start::<Nests>(&engine, "r", 1).await;
    run.outcome().await.unwrap();
    let before = stored(&store).await;
    assert_eq!(before, ["r", "r/first-x1.2", "r/first-x1.2/first-x1.alone", "r/first-x1.alone"]);
    let refused = engine.remove_run(run.id()).await;
    assert!(
        matches!(&refused, Err(StoreError::InUse { run }) if run.as_str() == "r/first-x1.2/first-x1.alone")
    );
    assert_eq!(stored(&store).await, before);
    for id in ["r/first-x1.2/first-x1.alone", "r/first-x1.alone"] {
        engine.attach::<Waits>(id).await.unwrap().cancel("enough").await.unwrap();
    }
    assert!(engine.remove_run(run.id()).await.unwrap());
    assert!(stored(&store).await.is_empty());
}

#[tokio::test]
async fn an_old_handle_does_not_answer_for_the_next_run_of_its_id() {
    let store: Arc<MemoryStore> = Arc::default();
    let engine = Engine::builder().workflow(Waits).store(Arc::clone(&store));
    let engine = engine.unload_waiting_after(Duration::ZERO).build().unwrap();
    let old = start::<Waits>(&engine, "r", 0).await.cancel_on_drop("enough");
    old.cancel("first").await.unwrap();
    assert!(engine.remove_run(old.id()).await.unwrap());
    let new = start::<Waits>(&engine, "r", 0).await;
    new.settled().await;
    let late = tokio::time::timeout(Duration::from_mins(1), old.requests()).await.expect("it answers");
    assert!(matches!(late, Err(SendError::Ended { status: RunStatus::Cancelled, .. })));
    drop(old);
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    new.send(Note(1)).await.unwrap();
    assert_eq!(new.outcome().await.unwrap(), Done(11));
}

#[tokio::test]
async fn children_go_with_the_runs_that_no_rule_keeps() {
    let (store, contexts) = (Arc::default(), Kept::default());
    let engine = engine(&store, &contexts, false);
    let kept = start::<Nests>(&engine, "kept", 2).await;
    kept.outcome().await.unwrap();
    let run = start::<Copes>(&engine, "r", 0).await;
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    // The thread belonged to this run alone, and its child wrote to it.
    assert!(contexts.scopes().await.is_empty(), "{:?}", contexts.scopes().await);
    // The child failed, but the rule does not keep it.
    let rules = Retention::none().failed();
    assert_eq!(engine.retain(&rules.clone().workflow("Copes")).await.unwrap(), 2);
    assert_eq!(stored(&store).await, ["kept", "kept/first-x1.1", "kept/first-x1.1/first-x1.1"]);
    assert_eq!(engine.retain(&rules).await.unwrap(), 3);
    let again = start::<Copes>(&engine, "r", 0).await;
    assert_eq!(again.outcome().await.unwrap(), Done(1));
}

/// The store of a process that was killed when its runs had ended, with their contexts.
fn left() -> (Arc<MemoryStore>, Kept) {
    let (store, contexts) = (Arc::default(), Kept::default());
    killed(&store, &contexts, async |engine| {
        let in_thread = RunOptions::new().id("shared").thread("user-4");
        engine.start_with::<Nests>(Begin(0), in_thread).await.unwrap();
        start::<Nests>(engine, "alone", 0).await;
        // Its own contexts have nothing: its child writes to the thread that is its own.
        start::<Fails>(engine, "fails", 0).await;
    });
    let threads = [(&store, &contexts)].map(|(_, contexts)| {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(contexts.scopes())
    });
    assert!(threads[0].len() == 6, "three runs and three threads: {threads:?}");
    (store, contexts)
}

#[test]
fn nothing_is_left_of_runs_that_have_ended_once_runs_are_resumed() {
    let (store, contexts) = left();
    let next = Builder::new_current_thread().enable_all().build().unwrap();
    next.block_on(async {
        let engine = engine(&store, &contexts, false);
        // An open run, and one that the store does not know.
        let open = start::<Waits>(&engine, "open", 0).await;
        until(async || open.status() == RunStatus::Waiting).await;
        let unknown = ContextScope::Run("unknown".into());
        contexts.set(&unknown, "count", Some(ContextValue::new(1))).await.unwrap();
        let other = self::engine(&store, &contexts, false);
        for engine in [&other, &engine] {
            engine.resume_open_runs().await.unwrap();
            // The run that failed can be redriven.
            let fails = engine.attach::<Fails>("fails").await.unwrap();
            let threads = [&open.thread(), &fails.thread()].map(|thread| format!("thread {thread}"));
            let mut left = vec!["run fails", "run open", "run unknown", "thread user-4"];
            left.extend(threads.iter().map(String::as_str));
            left.sort_unstable();
            assert_eq!(contexts.scopes().await, left);
        }
    });
}

#[test]
fn nothing_is_left_of_runs_that_have_ended_once_the_store_forgets_some() {
    let (store, contexts) = left();
    let next = Builder::new_current_thread().enable_all().build().unwrap();
    next.block_on(async {
        let engine = engine(&store, &contexts, false);
        assert_eq!(engine.retain(&Retention::none().last(1)).await.unwrap(), 2);
        // The run that failed is the latest, and can be redriven.
        let fails = engine.attach::<Fails>("fails").await.unwrap();
        let thread = format!("thread {}", fails.thread());
        assert_eq!(contexts.scopes().await, ["run fails", &*thread, "thread user-4"]);
        assert_eq!(engine.retain(&Retention::none()).await.unwrap(), 1);
        assert_eq!(contexts.scopes().await, ["thread user-4"]);
    });
}

/// Lists what is in its context.
struct Lists;

#[workflow]
impl Lists {
    #[step]
    async fn first(
        &self,
        _begin: &Begin,
        run: &RunContext,
        thread: &ThreadContext,
    ) -> Result<Done, StepError> {
        thread.set("k", 1).await?;
        assert!(run.list(None, 1).await?.is_empty());
        run.set("k", 1).await?;
        let listed = [run.list(None, 1).await?, run.list(None, 9).await?, thread.list(None, 9).await?];
        Ok(Done(u32::try_from(listed.iter().flatten().filter(|(key, _)| key == "k").count()).unwrap()))
    }
}

#[tokio::test]
async fn steps_do_not_see_what_the_engine_notes_in_a_context() {
    let engine = Engine::builder().workflow(Lists).store(MemoryStore::default()).build().unwrap();
    assert_eq!(engine.start::<Lists>(Begin(0)).await.unwrap().outcome().await.unwrap(), Done(3));
}
