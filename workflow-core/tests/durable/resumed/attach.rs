//! Handles on runs that are active, wait in a store, or have ended; and run ownership (S33, S40, S42).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::RwLock;
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreError, StoreFuture,
    StoredRun, Write,
};
use workflow_core::{DisplayItem, ResumeError, RunError, RunId, RunOptions, RunStatus, SendError};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note, Part, until};
use crate::shapes::{Ask, Asks, Joins, Loops, Retries, Waits};

/// A store that records its batches. Clones are one store.
#[derive(Debug, Clone, Default)]
struct Batches {
    kept: Arc<MemoryStore>,
    given: Arc<Mutex<Vec<(RunId, Position, Write)>>>,
    /// The run whose next batch it refuses.
    refuses: Arc<Mutex<Option<RunId>>>,
    /// An exclusive lock delays batches.
    taking: Arc<RwLock<()>>,
}

impl Batches {
    fn len(&self) -> usize {
        self.given.lock().unwrap().len()
    }

    /// A store with the first batches, read back from bytes.
    async fn first(&self, batches: usize) -> Self {
        let given: Vec<_> = self.given.lock().unwrap().iter().take(batches).cloned().collect();
        let store = Self::default();
        for (run, position, Write { records, run: summary, .. }) in given {
            let records = records.iter().map(reread).collect();
            store.kept.append(&run, position, Write { records, run: summary }).await.unwrap();
        }
        store
    }

    /// A store with the batches before the first such record.
    async fn before(&self, is_it: fn(&Record) -> bool) -> Self {
        let given: Vec<_> = self.given.lock().unwrap().clone();
        let store = Self::default();
        for (run, position, Write { records, run: summary, .. }) in given {
            let kept: Vec<Record> = records.iter().take_while(|record| !is_it(record)).map(reread).collect();
            let is_whole = kept.len() == records.len();
            store.kept.append(&run, position, Write { records: kept, run: summary }).await.unwrap();
            if !is_whole {
                break;
            }
        }
        store
    }

    async fn journal(&self, run: &RunId) -> Vec<Record> {
        self.kept.read(run, Position(0), usize::MAX).await.unwrap()
    }
}

/// The record as it comes back from a store that keeps bytes.
fn reread(record: &Record) -> Record {
    serde_json::from_slice(&serde_json::to_vec(record).unwrap()).unwrap()
}

impl EventStore for Batches {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        if self.refuses.lock().unwrap().take_if(|refused| refused == run).is_some() {
            return StoreFuture::ready(Err(StoreError::unavailable(std::io::Error::other(
                "the disk is full",
            ))));
        }
        if self.taking.try_read().is_err() {
            let (store, run) = (self.clone(), run.clone());
            return StoreFuture::new(async move {
                drop(store.taking.read().await);
                store.append(&run, expected, batch).await
            });
        }
        self.given.lock().unwrap().push((run.clone(), expected, batch.clone()));
        self.kept.append(run, expected, batch)
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

#[tokio::test]
async fn an_active_run_is_found_by_its_id() {
    let engine = Engine::builder().workflow(Asks).workflow(Joins).build().unwrap();
    let run = engine.start_with::<Asks>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    run.settled().await;
    let found = engine.attach::<Asks>("r").await.unwrap();
    let request = found.requests().await.unwrap()[0].id::<Ask>().unwrap();
    found.reply(request, 5).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), found.outcome().await.unwrap());
    let error = engine.attach::<Joins>("r").await.unwrap_err();
    assert!(matches!(error, ResumeError::UnknownRun { .. }), "it has ended, and there is no store: {error}");
}

#[tokio::test]
async fn what_is_not_there_or_is_of_another_workflow_is_refused() {
    let store = Batches::default();
    let engine = Engine::builder().workflow(Asks).workflow(Joins).store(store.clone()).build().unwrap();
    engine.start_with::<Asks>(Begin(1), RunOptions::new().id("r")).await.unwrap().settled().await;
    let text = |error: ResumeError| error.to_string();
    assert_eq!(text(engine.attach::<Asks>("s").await.unwrap_err()), "there is no run `s`");
    let wrong = "run `r` is of workflow `Asks`, not of `Joins`";
    assert_eq!(text(engine.attach::<Joins>("r").await.unwrap_err()), wrong);
    let other = Engine::builder().workflow(Joins).store(store).build().unwrap();
    // The type of a workflow that is not hosted is unknown.
    let unhosted =
        "run `r` is of workflow `Asks`, which the engine does not host: add it with `.workflow(…)`";
    assert_eq!(text(other.attach::<Joins>("r").await.unwrap_err()), unhosted);
    let resumed = other.resume_open_runs().await.unwrap();
    assert!(resumed.runs.is_empty());
    assert_eq!(resumed.refused[0].1.to_string(), unhosted);
}

/// Makes its request in a child.
struct Delegates;

#[workflow]
impl Delegates {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run::<Asks>(begin.clone()).await
    }
}

// S33
#[tokio::test]
async fn a_caller_that_attaches_to_a_child_can_answer_its_request() {
    let engine = Engine::builder().workflow(Delegates).workflow(Asks).build().unwrap();
    let run = engine.start_with::<Delegates>(Begin(2), RunOptions::new().id("r")).await.unwrap();
    until(async || engine.running().len() == 2).await;
    let child = engine.attach::<Asks>("r/delegate-x1.1").await.unwrap();
    child.settled().await;
    for request in child.requests().await.unwrap() {
        child.reply(request.id::<Ask>().unwrap(), 3).await.unwrap();
    }
    assert_eq!(run.outcome().await.unwrap(), Done(3));
}

// S40
#[tokio::test]
async fn resuming_a_run_fences_off_its_previous_owner() {
    let store = Batches::default();
    let engine = || Engine::builder().workflow(Asks).store(store.clone()).build().unwrap();
    let (first, second) = (engine(), engine());
    let before = first.start_with::<Asks>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    before.settled().await;
    let after = second.attach::<Asks>("r").await.unwrap();
    after.settled().await;
    let request = before.requests().await.unwrap()[0].id::<Ask>().unwrap();
    let late = before.reply(request, 1).await.unwrap_err();
    assert!(matches!(late, SendError::Stopped { .. }), "{late}");
    assert!(matches!(before.outcome().await, Err(RunError::Conflict { .. })));
    after.reply(request, 7).await.unwrap();
    assert_eq!(after.outcome().await.unwrap(), Done(0));
}

/// Two engines read a run before either has written that it resumes it.
async fn two_go_on_with_a_run() {
    let store = Batches::default();
    let engine = || Engine::builder().workflow(Asks).store(store.clone()).build().unwrap();
    engine().start_with::<Asks>(Begin(1), RunOptions::new().id("r")).await.unwrap().settled().await;
    // The first owner has written everything.
    until(async || store.runs(&RunQuery::new()).await.unwrap()[0].run.status == RunStatus::Waiting).await;
    let engines = [engine(), engine()];
    let held = store.taking.write().await;
    let handles =
        [engines[0].attach::<Asks>("r").await.unwrap(), engines[1].attach::<Asks>("r").await.unwrap()];
    drop(held);
    let statuses = [handles[0].settled().await, handles[1].settled().await];
    assert!(
        statuses == [RunStatus::Waiting, RunStatus::Failed]
            || statuses == [RunStatus::Failed, RunStatus::Waiting],
        "{statuses:?}"
    );
    let claims = store.journal(&"r".into()).await;
    let claims = claims.iter().filter(|record| matches!(record, Record::RunResumed { .. }));
    assert_eq!(claims.count(), 1);
}

// S40
#[tokio::test]
async fn only_one_of_two_engines_resumes_a_run() {
    two_go_on_with_a_run().await;
}

// S40
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_two_engines_on_two_threads_resumes_a_run() {
    for _ in 0..50 {
        two_go_on_with_a_run().await;
    }
}

/// Makes a request in a child, beside an outside event.
struct Interrupted;

#[workflow]
impl Interrupted {
    #[step]
    async fn ask(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run::<Asks>(begin.clone()).await
    }

    #[step]
    async fn note(&self, note: &Note) -> Item {
        Item(note.0)
    }
}

// S38, S40
#[tokio::test]
async fn the_children_of_a_run_whose_write_fails_stay_unchanged_too() {
    let store = Batches::default();
    let engine = || {
        let engine = Engine::builder().workflow(Interrupted).workflow(Asks).store(store.clone());
        engine.build().unwrap()
    };
    let first = engine();
    let run = first.start_with::<Interrupted>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let child = RunId::new("r/ask-x1.1");
    until(async || first.attach::<Asks>(child.clone()).await.is_ok()).await;
    first.attach::<Asks>(child.clone()).await.unwrap().settled().await;
    *store.refuses.lock().unwrap() = Some("r".into());
    run.send(Note(1)).await.unwrap_err();
    assert!(matches!(run.outcome().await, Err(RunError::Store { .. })));
    assert!(first.running().is_empty());
    let left = store.journal(&child).await;
    assert!(!left.iter().any(|record| matches!(record, Record::RunEnded { .. })), "{left:?}");

    let second = engine();
    let run = second.attach::<Interrupted>("r").await.unwrap();
    until(async || second.running().contains(&child)).await;
    let asks = second.attach::<Asks>(child.clone()).await.unwrap();
    until(async || !asks.requests().await.unwrap().is_empty()).await;
    let request = asks.requests().await.unwrap()[0].id::<Ask>().unwrap();
    asks.reply(request, 7).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    let claimed = store.journal(&child).await;
    assert!(claimed.iter().any(|record| matches!(record, Record::RunResumed { .. })), "{claimed:?}");
}

/// Gathers, and then needs an outside event.
struct Gathers;

#[workflow]
impl Gathers {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>, note: &Note) -> Done {
        Done(note.0 + parts.ok().map(|part| part.0).sum::<u32>())
    }
}

/// Takes the only permit and keeps it.
struct Blocks;

#[workflow]
impl Blocks {
    #[step]
    async fn never(&self, _begin: &Begin) -> Done {
        std::future::pending().await
    }
}

// S39: the gather was due before any other event.
#[tokio::test]
async fn a_run_resumed_without_a_permit_keeps_the_order_of_its_log() {
    let whole = Batches::default();
    let engine = Engine::builder().workflow(Gathers).store(whole.clone()).build().unwrap();
    let run = engine.start_with::<Gathers>(Begin(3), RunOptions::new().id("r")).await.unwrap();
    run.settled().await;
    let store = whole.before(|record| matches!(record, Record::FanOutGathered { .. })).await;

    let engine = Engine::builder().workflow(Gathers).workflow(Blocks).max_concurrent_runs(1);
    let engine = engine.store(store.clone()).build().unwrap();
    let blocks = engine.start::<Blocks>(Begin(0)).await.unwrap();
    let run = engine.attach::<Gathers>("r").await.unwrap();
    run.send(Note(10)).await.unwrap();
    let report = run.report_so_far().await.unwrap();
    let last: Vec<&str> = report.log.iter().rev().take(2).map(|logged| &*logged.event).collect();
    assert_eq!(last, ["Note", "open.Item.gathered"]);
    blocks.cancel("enough").await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(13));
    let engine = Engine::builder().workflow(Gathers).store(store).build().unwrap();
    assert_eq!(engine.attach::<Gathers>("r").await.unwrap().outcome().await.unwrap(), Done(13));
}

// S36, S42
#[tokio::test(start_paused = true)]
async fn timers_due_without_an_owner_fire_at_once_and_in_order() {
    let store = Batches::default();
    let clock = VirtualClock::new();
    let engine = Engine::builder().workflow(Waits).store(store.clone()).clock(clock.clone()).build().unwrap();
    engine.start_with::<Waits>(Begin(3), RunOptions::new().id("r")).await.unwrap().settled().await;
    let store = store.first(store.len()).await;
    tokio::time::sleep(Duration::from_secs(45)).await;
    let engine = Engine::builder().workflow(Waits).store(store.clone()).clock(clock).build().unwrap();
    let run = engine.attach::<Waits>("r").await.unwrap();
    run.settled().await;
    let report = run.report_so_far().await.unwrap();
    let log: Vec<&str> = report.log.iter().map(|logged| &*logged.event).collect();
    assert_eq!(log, ["Begin", "Ask", "Part", "Item"]);
    run.send(Note(5)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3 + 1 + 2 + 5));
}

// S36, S37
#[tokio::test(start_paused = true)]
async fn a_chosen_delay_continues_and_attempts_stay_counted() {
    let (store, clock) = (Batches::default(), VirtualClock::new());
    let host = |store: &Batches| {
        Engine::builder().workflow(Retries).store(store.clone()).clock(clock.clone()).build().unwrap()
    };
    let engine = host(&store);
    let run = engine.start_with::<Retries>(Begin(4), RunOptions::new().id("r")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let cut = store.first(store.len()).await;
    drop(run);
    let run = host(&cut).attach::<Retries>("r").await.unwrap();
    let since = tokio::time::Instant::now();
    assert_eq!(run.outcome().await.unwrap(), Done(43));
    // Six seconds were left of ten, and thirty are the second delay.
    assert_eq!(since.elapsed().as_secs(), 36);
    let attempts = &run.report().await.unwrap().trace[0].attempts;
    assert_eq!(attempts.iter().map(|failed| failed.retry_in.as_secs()).collect::<Vec<_>>(), [10, 30]);
}

// S31, S33
#[tokio::test]
async fn how_a_run_ended_is_known_from_its_journal() {
    let store = Arc::new(MemoryStore::default());
    let engine =
        || Engine::builder().workflow(Asks).workflow(Loops).store(Arc::clone(&store)).build().unwrap();
    let run = engine().start_with::<Asks>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    run.cancel("enough").await.unwrap();
    run.outcome().await.unwrap_err();
    let past = engine().attach::<Asks>("r").await.unwrap();
    assert!(matches!(past.outcome().await, Err(RunError::Cancelled { reason }) if &*reason == "enough"));
    let late =
        past.reply(workflow_core::report::RequestId::<Ask>::new(workflow_core::Seq(2)), 1).await.unwrap_err();
    assert!(matches!(late, SendError::Ended { status: RunStatus::Cancelled, .. }));
    assert!(past.explain().await.is_ok() && past.report().await.is_ok());
    let loops = engine().start_with::<Loops>(Begin(3), RunOptions::new().id("s")).await.unwrap();
    let expected = loops.report().await.unwrap();
    let found = engine().attach::<Loops>("s").await.unwrap().report().await.unwrap();
    let shape = |report: &workflow_core::report::RunReport| {
        report
            .trace
            .iter()
            .map(|trace| (trace.execution, trace.inputs.clone(), trace.emitted.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(shape(&found), shape(&expected));
}

mod earlier {
    use super::*;

    pub(super) struct Shop;

    #[workflow]
    impl Shop {
        #[step]
        async fn begin(&self, begin: &Begin) -> Item {
            Item(begin.0)
        }

        #[step]
        async fn end(&self, item: &Item, note: &Note) -> Done {
            Done(item.0 + note.0)
        }
    }
}

/// The same with an additional step and optional input.
mod later {
    use super::*;

    pub(super) struct Shop;

    #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    pub(super) struct Extra(pub(super) u32);

    #[workflow]
    impl Shop {
        #[step]
        async fn more(&self, begin: &Begin) -> Extra {
            Extra(100 * begin.0)
        }

        #[step]
        async fn begin(&self, begin: &Begin) -> Item {
            Item(begin.0)
        }

        #[step(precondition = has_all)]
        async fn end(&self, item: &Item, note: &Note, extra: Option<&Extra>) -> Done {
            Done(item.0 + note.0 + extra.map_or(0, |extra| extra.0))
        }

        #[precondition]
        fn has_all(extra: Option<&Extra>) -> bool {
            extra.is_some()
        }
    }
}

/// The same, with another name of its first step.
mod renamed {
    use super::*;

    pub(super) struct Shop;

    #[workflow]
    impl Shop {
        #[step]
        async fn start(&self, begin: &Begin) -> Item {
            Item(begin.0)
        }

        #[step]
        async fn end(&self, item: &Item, note: &Note) -> Done {
            Done(item.0 + note.0)
        }
    }
}

/// The same, with another required input of its first step.
mod narrower {
    use super::*;

    pub(super) struct Shop;

    #[workflow]
    impl Shop {
        #[step]
        async fn begin(&self, begin: &Begin, note: &Note) -> Item {
            Item(begin.0 + note.0)
        }

        #[step]
        async fn end(&self, item: &Item, note: &Note) -> Done {
            Done(item.0 + note.0)
        }
    }
}

async fn begun() -> Batches {
    let store = Batches::default();
    let engine = Engine::builder().workflow(earlier::Shop).store(store.clone()).build().unwrap();
    let run = engine.start_with::<earlier::Shop>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    run.settled().await;
    store.first(store.len()).await
}

// S41
#[tokio::test]
async fn steps_and_optional_inputs_may_be_added() {
    let store = begun().await;
    let engine = Engine::builder().workflow(later::Shop).store(store).build().unwrap();
    let run = engine.attach::<later::Shop>("r").await.unwrap();
    run.settled().await;
    run.send(Note(10)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(111));
}

// S41
#[tokio::test]
async fn a_workflow_that_contradicts_the_journal_is_refused_and_the_run_stays_unchanged() {
    let store = begun().await;
    let before = store.journal(&RunId::new("r")).await.len();
    let engine = Engine::builder().workflow(renamed::Shop).store(store.clone()).build().unwrap();
    assert_eq!(
        engine.attach::<renamed::Shop>("r").await.unwrap_err().to_string(),
        "run `r` cannot be resumed with the workflow as it is now: what its journal tells of has changed\n\
         - step `begin` is gone"
    );
    let engine = Engine::builder().workflow(narrower::Shop).store(store.clone()).build().unwrap();
    let error = engine.attach::<narrower::Shop>("r").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "run `r` cannot be resumed with the workflow as it is now: what its journal tells of has changed\n\
         - step `begin` takes `Note` as well now"
    );
    assert!(engine.running().is_empty());
    assert_eq!(store.journal(&RunId::new("r")).await.len(), before);
    let engine = Engine::builder().workflow(earlier::Shop).store(store).build().unwrap();
    let run = engine.attach::<earlier::Shop>("r").await.unwrap();
    run.send(Note(10)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(11));
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Trying(u32);

/// Fails its first attempt; the second one ends in the next process only.
struct Torn {
    hangs: bool,
}

#[workflow]
impl Torn {
    #[step]
    async fn talk(&self, begin: &Begin, display: &Display, info: &RunInfo) -> Result<Done, StepError> {
        display.show(Trying(info.attempt()));
        match info.attempt() {
            1 => Err(StepError::tool("torn")),
            _ if self.hangs => std::future::pending().await,
            _ => Ok(Done(begin.0)),
        }
    }
}

// S25, S39
#[tokio::test]
async fn a_resumed_run_shows_the_attempt_that_is_made_again_and_nothing_of_those_before() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(Torn { hangs: true }).store(Arc::clone(&store)).build().unwrap();
    let run = engine.start_with::<Torn>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let mut shown = run.display();
    let mut seen = Vec::new();
    while seen.last() != Some(&Some(2)) {
        seen.push(shown.next().await.unwrap().event::<Trying>().map(|trying| trying.0));
    }
    assert_eq!(seen, [Some(1), None, Some(2)]);
    engine.shut_down(Duration::from_secs(1)).await;
    let engine = Engine::builder().workflow(Torn { hangs: false }).store(store).build().unwrap();
    let run = engine.attach::<Torn>("r").await.unwrap();
    let items: Vec<DisplayItem> = run.display().collect().await;
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    let [DisplayItem::Shown { attempt: 2, .. }, DisplayItem::Ended { .. }] = &items[..] else {
        panic!("{items:?}")
    };
}
