//! Contexts that go with a store of journals: an engine uses them unless told otherwise, and refuses to keep contexts in
//! memory beside journals that outlive the process (S26).

use std::sync::Arc;
use std::time::Duration;

use workflow_core::errors::{BuildProblem, ContextError};
use workflow_core::prelude::*;
use workflow_core::signature::{InputSpec, Slot};
use workflow_core::store::{
    ContextScope, ContextStore, ContextValue, EngineId, EventStore, MemoryContexts, MemoryStore, Position,
    Record, Retention, RunQuery, StoreFuture, StoredRun, Write,
};
use workflow_core::{EngineBuilder, RunError, RunId, RunOptions, RunStatus, StepInput};

use crate::fixtures::{Begin, Done, Item, Note};

/// A store of journals only, or one that hands out the contexts of another.
#[derive(Clone, Default)]
struct Journals {
    store: Arc<MemoryStore>,
    contexts: Option<Arc<MemoryContexts>>,
}

impl EventStore for Journals {
    fn append(&self, run: &RunId, expected: Position, write: Write) -> StoreFuture<()> {
        self.store.append(run, expected, write)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.store.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.store.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.store.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.store.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.store.lease(engine, duration)
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        self.contexts.clone().map(|contexts| contexts as _)
    }
}

/// Counts at its start, and again after a note.
struct Counts;

#[workflow]
impl Counts {
    #[step]
    async fn first(&self, _: &Begin, context: &RunContext) -> Result<Item, StepError> {
        context.increment("count", 1).await?;
        Ok(Item(0))
    }

    #[step]
    async fn second(&self, _: &Item, _: &Note, context: &RunContext) -> Result<Done, StepError> {
        let count = context.increment("count", 1).await?;
        Ok(Done(u32::try_from(count)?))
    }
}

fn named(run: &str) -> RunOptions {
    RunOptions::new().id(run)
}

async fn count_over_a_restart(builder: impl Fn() -> EngineBuilder) -> u32 {
    let engine = builder().workflow(Counts).build().unwrap();
    let run = engine.start_with::<Counts>(Begin(0), named("r")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    drop(run);
    engine.shut_down(Duration::from_mins(1)).await;
    let engine = builder().workflow(Counts).build().unwrap();
    engine.resume_open_runs().await.unwrap();
    let run = engine.attach::<Counts>("r").await.unwrap();
    run.send(Note(0)).await.unwrap();
    run.outcome().await.unwrap().0
}

// S26
#[tokio::test]
async fn contexts_of_the_store_survive_a_restart_with_its_journals() {
    let store = Arc::new(MemoryStore::default());
    assert_eq!(count_over_a_restart(|| Engine::builder().store(Arc::clone(&store))).await, 2);
}

// S26
#[tokio::test]
async fn a_store_around_another_hands_out_its_contexts() {
    let contexts = Arc::new(MemoryContexts::default());
    let store = Journals { contexts: Some(Arc::clone(&contexts)), ..Journals::default() };
    assert_eq!(count_over_a_restart(|| Engine::builder().store(store.clone())).await, 2);
    let boxed: Arc<dyn EventStore> = Arc::new(workflow_testkit::FaultyStore::new(store));
    let ada = ContextScope::Thread("ada".into());
    let handed = boxed.contexts().unwrap();
    handed.set(&ada, "visits", Some(ContextValue::new(1))).await.unwrap();
    assert!(contexts.get(&ada, "visits").await.unwrap().is_some());
}

#[tokio::test]
async fn contexts_that_are_set_come_before_those_of_the_store() {
    let (store, contexts) = (Arc::new(MemoryStore::default()), Arc::new(MemoryContexts::default()));
    for builder in [
        Engine::builder().store(Arc::clone(&store)).contexts(Arc::clone(&contexts)),
        Engine::builder().contexts(Arc::clone(&contexts)).store(Arc::clone(&store)),
    ] {
        let engine = builder.workflow(Counts).build().unwrap();
        let run = engine.start::<Counts>(Begin(0)).await.unwrap();
        run.settled().await;
        let scope = ContextScope::Run(run.id().clone());
        assert!(contexts.get(&scope, "count").await.unwrap().is_some());
        assert!(store.contexts().unwrap().get(&scope, "count").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn contexts_that_a_restart_may_lose_are_lost_only_where_the_builder_says_so() {
    let store = Journals::default();
    let builder = || Engine::builder().store(store.clone()).contexts(MemoryContexts::forgetful());
    assert_eq!(count_over_a_restart(builder).await, 1);
}

/// Takes a context only by its precondition.
struct Asks;

#[workflow]
impl Asks {
    #[step(precondition = is_first)]
    async fn work(&self, _: &Begin) -> Done {
        Done(0)
    }

    #[precondition]
    async fn is_first(&self, thread: &ThreadContext) -> Result<bool, StepError> {
        Ok(thread.increment("runs", 1).await? == 1)
    }
}

/// Takes none.
struct Plain;

#[workflow]
impl Plain {
    #[step]
    async fn work(&self, _: &Begin) -> Done {
        Done(0)
    }
}

#[test]
fn a_context_beside_journals_without_contexts_does_not_build() {
    let builder = || Engine::builder().store(Journals::default());
    let error = builder().workflow(Counts).workflow(Asks).workflow(Plain).build().unwrap_err();
    let named: Vec<_> = error
        .problems
        .iter()
        .map(|problem| match problem {
            BuildProblem::ContextsWithoutStore { workflow, step, input } => (&**workflow, &**step, &**input),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(named, [("Counts", "first", "RunContext"), ("Asks", "work", "ThreadContext")]);
    assert_eq!(
        error.problems[0].to_string(),
        "step `first` of workflow `Counts` takes a `RunContext`, which a restart would lose: `.store(…)` keeps \
         journals and hands out no contexts, and `.contexts(…)` is not set; store them with `.contexts(store)`, or \
         lose them with `.contexts(MemoryContexts::forgetful())`"
    );
    builder().workflow(Plain).build().unwrap();
    builder().workflow(Counts).contexts(MemoryContexts::default()).build().unwrap();
    Engine::builder().workflow(Counts).build().unwrap();
}

/// Panics where it should hand out contexts.
struct Panics(Journals);

impl EventStore for Panics {
    fn append(&self, run: &RunId, expected: Position, write: Write) -> StoreFuture<()> {
        self.0.append(run, expected, write)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.0.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.0.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.0.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.0.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.0.lease(engine, duration)
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        panic!("on purpose")
    }
}

#[test]
fn a_store_that_panics_hands_out_no_contexts() {
    let error = Engine::builder().store(Panics(Journals::default())).workflow(Counts).build().unwrap_err();
    assert!(matches!(error.problems[..], [BuildProblem::ContextsWithoutStore { .. }]), "{error}");
}

/// A parameter of its own that uses a context.
struct Visits(RunContext);

impl StepInput for Visits {
    const SPEC: InputSpec = InputSpec::injected("Visits").using_context();
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Ok(Self(slot.run_context()))
    }
}

/// The same without saying so.
struct Secret(RunContext);

impl StepInput for Secret {
    const SPEC: InputSpec = InputSpec::injected("Secret");
    type Item<'a> = Self;

    fn fill(slot: Slot<'_>) -> Result<Self, StepError> {
        Ok(Self(slot.run_context()))
    }
}

struct Visitors;

#[workflow]
impl Visitors {
    #[step]
    async fn work(&self, _: &Begin, visits: Visits) -> Result<Done, StepError> {
        visits.0.increment("visits", 1).await?;
        Ok(Done(0))
    }
}

struct Secrets;

#[workflow]
impl Secrets {
    #[step]
    async fn work(&self, _: &Begin, secret: Secret) -> Result<Done, StepError> {
        assert_eq!(secret.0.get::<u32>("visits").await?, None);
        secret.0.increment("visits", 1).await?;
        Ok(Done(0))
    }
}

#[tokio::test]
async fn a_parameter_of_ones_own_declares_its_context_or_is_refused_by_it() {
    let error = Engine::builder().store(Journals::default()).workflow(Visitors).build().unwrap_err();
    let [BuildProblem::ContextsWithoutStore { input, .. }] = &error.problems[..] else { panic!("{error}") };
    assert_eq!(input, "Visits");

    let engine = Engine::builder().store(Journals::default()).workflow(Secrets).build().unwrap();
    let run = engine.start_with::<Secrets>(Begin(0), named("r")).await.unwrap();
    let Err(RunError::StepFailed { source, .. }) = run.outcome().await else { panic!() };
    assert!(matches!(source.source_as::<ContextError>(), Some(ContextError::NoStore)), "{source}");
    // Such an engine removes its runs as others do.
    assert!(engine.remove_run(&"r".into()).await.unwrap());
    engine.retain(&Retention::none()).await.unwrap();
}

// S26
#[tokio::test]
async fn a_store_in_memory_removes_the_contexts_of_runs_with_them() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(Plain).store(Arc::clone(&store)).build().unwrap();
    let run = engine.start_with::<Plain>(Begin(0), named("r")).await.unwrap();
    run.outcome().await.unwrap();
    let (contexts, scope) = (store.contexts().unwrap(), ContextScope::Run("r".into()));
    contexts.set(&scope, "left", Some(ContextValue::new(1))).await.unwrap();
    store.retain(&Retention::none()).await.unwrap();
    assert!(contexts.get(&scope, "left").await.unwrap().is_none());
}
