//! The journal of a run: its records, the times of its writes, and the effects of a failing store (S23, S38, S40).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use expect_test::expect;
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreError, StoreFuture,
    StoredRun, Write,
};
use workflow_core::{RunId, RunOptions, RunStatus, SendError, StartError};

use crate::fixtures::{Alive, Alpha, Begin, Close, Done, Gate, Item, Part, Seen, everyone_else, until};

mod attempts;

/// A store that a test can block or make fail, and that counts its batches. Clones are one store.
#[derive(Debug, Clone, Default)]
struct Shelf {
    kept: Arc<MemoryStore>,
    appends: Arc<AtomicUsize>,
    gate: Option<Gate>,
    broken: Arc<AtomicBool>,
}

impl Shelf {
    fn gated() -> Self {
        Self { gate: Some(Gate::closed()), ..Self::default() }
    }

    fn let_pass(&self, appends: usize) {
        self.gate.as_ref().unwrap().let_pass(appends);
    }

    fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }
}

impl EventStore for Shelf {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        // A record that a run waits may come at any time.
        if batch.records.iter().all(is_wait) {
            return self.kept.append(run, expected, batch);
        }
        self.appends.fetch_add(1, Ordering::SeqCst);
        let (held, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            if let Some(gate) = &held.gate {
                gate.pass().await;
            }
            if held.broken.load(Ordering::SeqCst) {
                return Err(StoreError::unavailable(std::io::Error::other("the disk is gone")));
            }
            held.kept.append(&run, expected, batch).await
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.kept.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.kept.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.kept.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.kept.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.kept.lease(engine, duration)
    }
}

/// The journal, one record per line.
fn is_wait(record: &Record) -> bool {
    matches!(record, Record::RunWaiting { .. })
}

async fn journal(store: &impl EventStore, run: &RunId) -> String {
    let records = store.read(run, Position(0), usize::MAX).await.unwrap();
    let lines = records.iter().filter(|record| !is_wait(record)).map(|record| match record {
        Record::RunStarted { workflow, .. } => format!("started {workflow}"),
        Record::EventLogged { seq, scope, cause, event, .. } => {
            let data = event.to_json().unwrap();
            format!("{seq} {scope} {} {data} by {cause:?}", event.name())
        }
        Record::FanOutGathered { seq, scope, fan_out, .. } => format!("{seq} {scope} {fan_out}"),
        Record::ExecutionSucceeded { execution, step, scope, trigger, .. } => {
            format!("{execution} {step} in {scope} by {trigger}")
        }
        Record::ExecutionFailed { execution, step, error, class, .. } => {
            format!("{execution} {step} failed: {error} ({class})")
        }
        Record::RunEnded { status, .. } => format!("ended {status}"),
        other => panic!("{other:?} is new"),
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn engine<W: Workflow>(workflow: W, store: impl EventStore) -> Engine {
    Engine::builder().workflow(workflow).store(store).build().unwrap()
}

fn named(id: &str) -> RunOptions {
    RunOptions::new().id(id)
}

/// Splits, works in branches, and joins them.
struct Branches(Seen);

#[workflow]
impl Branches {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 == 2 { Err(StepError::rejected("no such part")) } else { Ok(Part(item.0 * 10)) }
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        self.0.note("joined");
        Done(parts.ok().map(|part| part.0).sum())
    }
}

#[tokio::test]
async fn a_journal_holds_everything_that_entered_the_log_and_how_executions_ended() {
    let store = Shelf::default();
    let run = engine(Branches(Seen::default()), store.clone())
        .start_with::<Branches>(Begin(2), named("r"))
        .await
        .unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(10));
    expect![[r"
        started Branches
        #1 scope 0 Begin 2 by Outside
        x1 split in scope 0 by #1
        #2 scope 1 Item 1 by Execution(ExecutionId(1))
        #3 scope 2 Item 2 by Execution(ExecutionId(1))
        x2 work in scope 1 by #2
        #4 scope 1 Part 10 by Execution(ExecutionId(2))
        x3 work failed: no such part (rejected)
        #5 scope 0 split.Item.gathered
        x4 join in scope 0 by #5
        #6 scope 0 Done 10 by Execution(ExecutionId(4))
        ended completed
    "]]
    .assert_eq(&journal(&store, run.id()).await);
}

// S38
#[tokio::test]
async fn nothing_that_depends_on_a_batch_starts_before_the_store_has_it() {
    let (store, seen) = (Shelf::gated(), Seen::default());
    let engine = engine(Branches(seen.clone()), store.clone());
    let starting = tokio::spawn(async move { engine.start::<Branches>(Begin(0)).await.unwrap() });
    until(|| store.appends() == 1).await;
    everyone_else().await;
    assert!(!starting.is_finished());
    store.let_pass(1);
    let run = starting.await.unwrap();
    // The empty fan-out is opened and gathered; the join waits until the store has both.
    until(|| store.appends() == 2).await;
    everyone_else().await;
    assert_eq!(seen.lines(), [""; 0]);
    store.let_pass(1);
    until(|| store.appends() == 3).await;
    assert_eq!(seen.lines(), ["joined"]);
    everyone_else().await;
    assert_eq!(run.status(), RunStatus::Running);
    store.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(0));
}

/// Three steps that wait for each other at a gate.
struct Together(Gate);

#[workflow]
impl Together {
    #[step]
    async fn one(&self, _: &Begin) -> Item {
        self.0.pass().await;
        Item(1)
    }

    #[step]
    async fn two(&self, _: &Begin) -> Item {
        self.0.pass().await;
        Item(2)
    }

    #[step]
    async fn three(&self, _: &Begin) -> Item {
        self.0.pass().await;
        Item(3)
    }

    #[step]
    async fn end(&self, items: FixedList<Item, 3>) -> Done {
        Done(items.iter().map(|item| item.0).sum())
    }
}

// S38
#[tokio::test]
async fn batches_due_together_share_one_write() {
    let (store, gate) = (Shelf::default(), Gate::closed());
    let engine = engine(Together(gate.clone()), store.clone());
    let run = engine.start::<Together>(Begin(0)).await.unwrap();
    everyone_else().await;
    gate.let_pass(3);
    assert_eq!(run.outcome().await.unwrap(), Done(6));
    // The start, the three items, the end.
    assert_eq!(store.appends(), 3);
}

/// Waits for an outside event.
struct Patient;

#[workflow]
impl Patient {
    #[step]
    async fn note(&self, alpha: &Alpha) -> Item {
        Item(alpha.0)
    }

    #[step(reruns)]
    async fn end(&self, _: &Begin, items: List<Item>, _: &Close) -> Done {
        Done(u32::try_from(items.len()).unwrap())
    }
}

#[tokio::test]
async fn a_sent_event_is_in_the_store_when_the_sender_gets_its_answer() {
    let store = Shelf::gated();
    store.let_pass(1);
    let run = engine(Patient, store.clone()).start::<Patient>(Begin(0)).await.unwrap();
    let sender = run.clone();
    let sending = tokio::spawn(async move { sender.send(Alpha(1)).await });
    until(|| store.appends() == 2).await;
    everyone_else().await;
    assert!(!sending.is_finished());
    assert!(!journal(&store, run.id()).await.contains("Alpha"));
    store.let_pass(1);
    sending.await.unwrap().unwrap();
    assert!(journal(&store, run.id()).await.contains("Alpha 1 by Outside"));
}

// S40
#[tokio::test]
async fn a_run_that_another_engine_writes_stops_without_effect() {
    let store = Shelf::default();
    let run = engine(Patient, store.clone()).start::<Patient>(Begin(0)).await.unwrap();
    let stored = || async { store.runs(&RunQuery::new()).await.unwrap().remove(0) };
    let waits = async {
        while stored().await.run.status != RunStatus::Waiting {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waits).await.expect("it says that it waits");
    let stored = stored().await;
    let foreign = Record::RunEnded {
        status: RunStatus::Cancelled,
        error: None,
        step: None,
        deadline: None,
        origin: None,
        at: std::time::SystemTime::now(),
    };
    store.append(run.id(), stored.end, Write { records: vec![foreign], run: stored.run }).await.unwrap();
    let before = journal(&store, run.id()).await;
    assert!(matches!(run.send(Alpha(1)).await, Err(SendError::Stopped { .. })));
    assert!(matches!(run.outcome().await, Err(RunError::Conflict { .. })));
    assert_eq!(journal(&store, run.id()).await, before);
    assert_eq!(run.report().await.unwrap().log.len(), 1);
}

#[tokio::test]
async fn a_store_that_fails_ends_the_run_that_it_fails_and_no_other() {
    let store = Shelf::default();
    let engine = engine(Patient, store.clone());
    let [lost, kept] = [engine.start::<Patient>(Begin(0)).await, engine.start::<Patient>(Begin(0)).await];
    let (lost, kept) = (lost.unwrap(), kept.unwrap());
    store.broken.store(true, Ordering::SeqCst);
    assert!(lost.send(Alpha(1)).await.is_err());
    store.broken.store(false, Ordering::SeqCst);
    let error = lost.outcome().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the engine cannot drive the run because of its store; once the store works, `Engine::resume_open_runs` or \
         `Engine::attach` continues it: the event store is unavailable: the disk is gone"
    );
    kept.send(Alpha(1)).await.unwrap();
    kept.send(Close).await.unwrap();
    assert_eq!(kept.outcome().await.unwrap(), Done(1));
    let open = engine.runs(&RunQuery::new().open()).await.unwrap();
    assert_eq!(open.iter().map(|run| &run.id).collect::<Vec<_>>(), [lost.id()]);
}

#[tokio::test]
async fn ended_runs_are_removed_and_open_runs_stay() {
    let engine = engine(Patient, Shelf::default());
    let start = |id| engine.start_with::<Patient>(Begin(0), named(id));
    let (ended, open) = (start("ended").await.unwrap(), start("open").await.unwrap());
    ended.send(Alpha(1)).await.unwrap();
    ended.send(Close).await.unwrap();
    ended.outcome().await.unwrap();
    assert_eq!(engine.retain(&Retention::none().last(1)).await.unwrap(), 0);
    assert_eq!(engine.retain(&Retention::none()).await.unwrap(), 1);
    let left = engine.runs(&RunQuery::new()).await.unwrap();
    assert_eq!(left.iter().map(|run| &run.id).collect::<Vec<_>>(), [open.id()]);
    let without = Engine::builder().build().unwrap().retain(&Retention::none()).await;
    assert!(matches!(without, Err(StoreError::NoStore)));
}

#[tokio::test]
async fn a_run_whose_beginning_cannot_be_written_is_not_started() {
    let store = Shelf::default();
    store.broken.store(true, Ordering::SeqCst);
    let engine = engine(Patient, store);
    let refused = engine.start::<Patient>(Begin(0)).await.unwrap_err();
    assert!(matches!(refused, StartError::Store(StoreError::Unavailable { .. })), "{refused}");
    assert!(engine.running().is_empty());
}

#[tokio::test]
async fn the_id_of_a_stored_run_is_taken_until_the_run_is_removed() {
    let store = Arc::new(MemoryStore::default());
    let engine = engine(Patient, Shelf { kept: Arc::clone(&store), ..Shelf::default() });
    let run = engine.start_with::<Patient>(Begin(0), named("r")).await.unwrap();
    assert!(matches!(engine.remove_run(run.id()).await, Err(StoreError::InUse { .. })));
    run.send(Alpha(1)).await.unwrap();
    run.send(Close).await.unwrap();
    run.outcome().await.unwrap();
    let again = engine.start_with::<Patient>(Begin(0), named("r")).await;
    assert!(matches!(again, Err(StartError::DuplicateRun { .. })));
    assert!(engine.remove_run(run.id()).await.unwrap());
    assert!(!engine.remove_run(run.id()).await.unwrap());
    assert!(engine.history(run.id()).await.unwrap().is_empty());
    engine.start_with::<Patient>(Begin(0), named("r")).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_run_says_so_in_its_journal_and_nothing_follows() {
    let store = Shelf::default();
    let run = engine(Patient, store.clone()).start::<Patient>(Begin(0)).await.unwrap();
    run.cancel("enough").await.unwrap();
    let journal = journal(&store, run.id()).await;
    assert_eq!(journal.lines().last(), Some("ended cancelled"));
    assert_eq!(store.runs(&RunQuery::new()).await.unwrap()[0].run.status, RunStatus::Cancelled);
}

// S28: once the stop event is on its way to the store, the run ends by it.
#[tokio::test]
async fn a_cancel_that_comes_while_the_stop_event_is_written_is_too_late() {
    let store = Shelf::gated();
    store.let_pass(3);
    let run = engine(Patient, store.clone()).start::<Patient>(Begin(0)).await.unwrap();
    run.send(Alpha(1)).await.unwrap();
    let closing = run.clone();
    let closed = tokio::spawn(async move { closing.send(Close).await });
    until(|| store.appends() == 4).await;
    store.let_pass(1);
    closed.await.unwrap().unwrap();
    until(|| store.appends() == 5).await;
    let cancelling = run.clone();
    let cancelled = tokio::spawn(async move { cancelling.cancel("too late").await });
    everyone_else().await;
    store.let_pass(1);
    assert!(matches!(cancelled.await.unwrap(), Err(SendError::Ended { status: RunStatus::Completed, .. })));
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    assert_eq!(journal(&store, run.id()).await.lines().last(), Some("ended completed"));
}

// S31: the log has everything given to the store before the cancel, and nothing later.
#[tokio::test]
async fn a_cancel_waits_for_what_is_being_written() {
    let store = Shelf::gated();
    store.let_pass(1);
    let run = engine(Patient, store.clone()).start::<Patient>(Begin(0)).await.unwrap();
    let sender = run.clone();
    let sending = tokio::spawn(async move { sender.send(Alpha(1)).await });
    until(|| store.appends() == 2).await;
    let cancelling = run.clone();
    let cancelled = tokio::spawn(async move { cancelling.cancel("enough").await });
    everyone_else().await;
    store.let_pass(2);
    sending.await.unwrap().unwrap();
    cancelled.await.unwrap().unwrap();
    let written = journal(&store, run.id()).await;
    assert_eq!(
        written.lines().skip(2).collect::<Vec<_>>(),
        ["#2 scope 0 Alpha 1 by Outside", "ended cancelled"]
    );
    assert_eq!(run.report().await.unwrap().log.len(), 2);
}

/// Ends and fails at once.
struct EndsAndFails;

#[workflow]
impl EndsAndFails {
    #[step]
    async fn end(&self, _: &Begin) -> Done {
        Done(0)
    }

    #[step]
    async fn fail(&self, _: &Begin) -> Result<Item, StepError> {
        Err(StepError::permanent("too late to matter"))
    }
}

#[tokio::test]
async fn nothing_follows_the_end_in_a_journal() {
    let store = Shelf::default();
    let run = engine(EndsAndFails, store.clone()).start::<EndsAndFails>(Begin(0)).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(journal(&store, run.id()).await.lines().last(), Some("ended completed"));
    assert_eq!(store.appends(), 2);
}

/// A store that panics without fault of its callers.
#[derive(Debug, Default)]
struct Panics(AtomicUsize, usize);

impl EventStore for Panics {
    fn append(&self, _: &RunId, _: Position, _: Write) -> StoreFuture<()> {
        if self.0.fetch_add(1, Ordering::SeqCst) == self.1 {
            return StoreFuture::new(async { panic!("a bug in a store") });
        }
        StoreFuture::ready(Ok(()))
    }

    fn read(&self, _: &RunId, _: Position, _: usize) -> StoreFuture<Vec<Record>> {
        StoreFuture::ready(Ok(Vec::new()))
    }

    fn runs(&self, _: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        StoreFuture::ready(Ok(Vec::new()))
    }

    fn remove(&self, _: &RunId) -> StoreFuture<bool> {
        StoreFuture::ready(Ok(false))
    }

    fn retain(&self, _: &Retention) -> StoreFuture<u64> {
        StoreFuture::ready(Ok(0))
    }

    fn lease(&self, _: &EngineId, _: Duration) -> StoreFuture<Vec<EngineId>> {
        StoreFuture::ready(Ok(Vec::new()))
    }
}

#[tokio::test]
async fn a_store_that_panics_ends_the_run_like_one_that_fails() {
    let first = engine(Patient, Panics::default()).start::<Patient>(Begin(0)).await;
    assert!(matches!(first, Err(StartError::Store(StoreError::Unavailable { .. }))));
    let second = engine(Patient, Panics(AtomicUsize::new(0), 1)).start::<Patient>(Begin(0)).await.unwrap();
    assert!(second.send(Alpha(1)).await.is_err());
    let RunError::Store { source } = second.outcome().await.unwrap_err() else { panic!("the store failed") };
    let cause = std::error::Error::source(&source).unwrap().to_string();
    assert_eq!(cause, "it panicked: a bug in a store");
}

/// Holds a guard while it runs.
struct Holds(Alive);

#[workflow]
impl Holds {
    #[step]
    async fn hold(&self, _: &Begin) -> Done {
        let _guard = self.0.guard();
        std::future::pending().await
    }
}

// S31
#[tokio::test]
async fn running_executions_are_dropped_before_the_end_is_written() {
    let (store, alive) = (Shelf::gated(), Alive::default());
    store.let_pass(1);
    let run = engine(Holds(alive.clone()), store.clone()).start::<Holds>(Begin(0)).await.unwrap();
    until(|| alive.count() == 1).await;
    let cancelling = run.clone();
    let cancelled = tokio::spawn(async move { cancelling.cancel("enough").await });
    until(|| store.appends() == 2).await;
    assert_eq!(alive.count(), 0);
    store.let_pass(1);
    cancelled.await.unwrap().unwrap();
}

/// Counts its calls in its context.
struct Counts;

#[workflow]
impl Counts {
    #[step]
    async fn count(&self, _: &Alpha, context: &RunContext) -> Result<Item, StepError> {
        context.increment("calls", 1).await?;
        Ok(Item(0))
    }

    #[step(reruns)]
    async fn end(&self, _: &Begin, _: &Close, _: List<Item>) -> Done {
        Done(0)
    }
}

// S40
#[tokio::test]
async fn a_run_that_stops_for_another_writer_leaves_its_context_to_it() {
    let (store, contexts) = (Shelf::default(), Arc::new(workflow_core::store::MemoryContexts::default()));
    let engine = Engine::builder()
        .workflow(Counts)
        .store(store.clone())
        .contexts(Arc::clone(&contexts))
        .build()
        .unwrap();
    let run = engine.start_with::<Counts>(Begin(0), named("r")).await.unwrap();
    run.send(Alpha(1)).await.unwrap();
    run.settled().await;
    store.remove(run.id()).await.unwrap();
    assert!(run.send(Alpha(2)).await.is_err());
    run.outcome().await.unwrap_err();
    let scope = workflow_core::store::ContextScope::Run("r".into());
    let calls = workflow_core::store::ContextStore::get(&*contexts, &scope, "calls").await.unwrap();
    assert_eq!(calls.unwrap().get::<u32>().unwrap(), 1);
}

#[tokio::test]
async fn observers_hear_nothing_of_a_run_that_did_not_begin() {
    let (store, heard) = (Arc::new(MemoryStore::default()), Seen::default());
    let told = heard.clone();
    let engine = Engine::builder()
        .workflow(EndsAndFails)
        .store(Arc::clone(&store))
        .observer(Hears(told))
        .build()
        .unwrap();
    let run = engine.start_with::<EndsAndFails>(Begin(0), named("r")).await.unwrap();
    run.outcome().await.unwrap();
    assert!(engine.start_with::<EndsAndFails>(Begin(0), named("r")).await.is_err());
    engine.cancel_all("the engine is shutting down", std::time::Duration::from_secs(10)).await;
    assert_eq!(heard.lines(), ["began", "ended completed"]);
}

/// Records beginnings and ends.
struct Hears(Seen);

impl workflow_core::observe::Observer for Hears {
    fn observe(&self, observation: &workflow_core::observe::Observation) {
        match &observation.what {
            workflow_core::observe::Observed::RunStarted => self.0.note("began"),
            workflow_core::observe::Observed::RunEnded { status } => self.0.note(format!("ended {status}")),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_run_that_waits_for_its_permit_accepts_events() {
    let engine = Engine::builder()
        .workflow(Patient)
        .workflow(Holds(Alive::default()))
        .max_concurrent_runs(1)
        .build()
        .unwrap();
    let waiting = engine.start::<Patient>(Begin(0)).await.unwrap();
    waiting.settled().await;
    let busy = engine.start::<Holds>(Begin(0)).await.unwrap();
    waiting.send(Alpha(1)).await.unwrap();
    waiting.send(Alpha(2)).await.unwrap();
    busy.cancel("make room").await.unwrap();
    waiting.send(Close).await.unwrap();
    assert_eq!(waiting.outcome().await.unwrap(), Done(2));
}

#[tokio::test]
async fn an_engine_without_a_store_says_so() {
    let engine = Engine::builder().workflow(Patient).build().unwrap();
    let error = engine.runs(&RunQuery::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "the engine keeps no journals: give it a store with `.store(…)`");
}
