//! Children of an earlier process that their parents find again. Their journals count, independent of which engine
//! resumes them first, and their parents display their items (S25, S31, S39).

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::Semaphore;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, Record, RunQuery, StoreError, Write};
use workflow_core::{DisplayItem, DisplayStream, RunHandle, RunOptions, RunStatus, StartError};
use workflow_testkit::{Fault, FaultyStore, StoreCall};

use crate::fixtures::{Begin, Done, Item, Note, until};
use crate::shapes::Asks;

/// The id of the only child.
const CHILD: &str = "r/first-x1.1";

/// The configuration of a child.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Setting {
    factor: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Heard(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Word(u32);

/// Displays every word, and the note that it waits for.
struct Listens;

#[workflow]
impl Listens {
    #[step]
    async fn begin(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note, setting: &Config<Setting>, display: &Display) -> Done {
        display.show(Heard(note.0));
        Done(100 * item.0 + setting.factor * note.0)
    }

    #[step]
    async fn echo(&self, word: &Word, display: &Display) {
        display.show(Heard(word.0));
    }
}

/// Takes longer than any timeout.
struct Sleeps;

#[workflow]
impl Sleeps {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        tokio::time::sleep(Duration::from_hours(100)).await;
        Done(begin.0)
    }
}

/// The behaviour of a parent in one process.
#[derive(Debug, Clone)]
enum Does {
    /// Nothing at all.
    Hangs,
    Runs(Begin, RunOptions),
    RunsOther,
    /// By name, with this data.
    RunsJson(serde_json::Value),
    RunsSleeper(Duration),
    /// Starts it, and leaves it alone.
    Starts,
    /// Starts it and waits for it.
    StartsAndWaits,
    /// Starts it, waits for it, and fails.
    StartsAndFails,
}

/// A parent with the given behaviour in this process, once its gate opens.
#[derive(Debug, Clone)]
struct Parent {
    does: Does,
    gates: Gates,
}

/// Gates for the parent, and whether it has its started child.
#[derive(Debug, Clone)]
struct Gates {
    goes: Arc<Semaphore>,
    has_child: Arc<Semaphore>,
}

impl Gates {
    fn new(goes: usize) -> Self {
        Self { goes: Arc::new(Semaphore::new(goes)), has_child: Arc::new(Semaphore::new(0)) }
    }

    /// Lets the parent continue until it has its child.
    async fn open(&self) {
        self.goes.add_permits(1);
        until(async || self.has_child.available_permits() > 0).await;
    }
}

#[workflow]
impl Parent {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Result<Item, StepError> {
        let _goes = self.gates.goes.acquire().await;
        Ok(Item(match self.does.clone() {
            Does::Hangs => std::future::pending().await,
            Does::Runs(begin, options) => children.run_with::<Listens>(begin, options).await?.0,
            Does::RunsOther => children.run::<Asks>(begin.clone()).await?.0,
            Does::RunsJson(data) => {
                let ended = children.run_json("Listens", "Begin", data, RunOptions::new()).await?;
                ended.downcast_ref::<Done>().map_or(0, |done| done.0)
            }
            Does::RunsSleeper(timeout) => {
                let options = RunOptions::new().timeout(timeout);
                children.run_with::<Sleeps>(begin.clone(), options).await?.0
            }
            Does::Starts => {
                children.start::<Listens>(begin.clone()).await?;
                1
            }
            Does::StartsAndWaits => {
                let child = children.start::<Listens>(begin.clone()).await?;
                self.gates.has_child.add_permits(1);
                child.outcome().await?.0
            }
            Does::StartsAndFails => {
                let child = children.start::<Listens>(begin.clone()).await?;
                self.gates.has_child.add_permits(1);
                child.outcome().await?;
                return Err(StepError::permanent("enough"));
            }
        }))
    }

    #[step]
    async fn end(&self, item: &Item, _note: &Note) -> Done {
        Done(item.0)
    }
}

fn engine(does: Does, store: impl EventStore) -> Engine {
    gated(does, store, &Gates::new(1))
}

/// An engine whose parent continues when its gate opens.
fn gated(does: Does, store: impl EventStore, gates: &Gates) -> Engine {
    let parent = Parent { does, gates: gates.clone() };
    let engine = Engine::builder().workflow(parent).workflow(Listens).workflow(Sleeps).workflow(Asks);
    let engine = engine.workflow_named("tenant-1", Listens);
    engine.config(Setting { factor: 1 }).store(store).build().unwrap()
}

/// A copy of a store's present content, read back from bytes.
pub(crate) async fn copy(store: &MemoryStore) -> Arc<MemoryStore> {
    let copy = MemoryStore::default();
    for stored in store.runs(&RunQuery::new().at_most(10_000)).await.unwrap() {
        let records = store.read(&stored.id, Position(0), usize::MAX).await.unwrap();
        let bytes = serde_json::to_vec(&records).unwrap();
        let records: Vec<Record> = serde_json::from_slice(&bytes).unwrap();
        copy.append(&stored.id, Position(0), Write { records, run: stored.run }).await.unwrap();
    }
    Arc::new(copy)
}

/// The store of a process that died when the parent and its child, if any, were waiting.
async fn left_by(does: Does) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::default());
    let has_child = !matches!(does, Does::Hangs);
    let engine = engine(does, Arc::clone(&store));
    engine.start_with::<Parent>(Begin(3), RunOptions::new().id("r")).await.unwrap();
    let is_told = async |run: &str, is: fn(&Record) -> bool| {
        store.read(&run.into(), Position(0), usize::MAX).await.unwrap().iter().any(is)
    };
    until(async || {
        !has_child
            || is_told("r", |record| matches!(record, Record::ChildStarted { .. })).await
                && is_told(CHILD, |record| matches!(record, Record::EventLogged { .. })).await
    })
    .await;
    copy(&store).await
}

async fn child(engine: &Engine) -> RunHandle<Listens> {
    until(async || engine.running().contains(&CHILD.into())).await;
    engine.attach::<Listens>(CHILD).await.unwrap()
}

fn described(tenant: &str, factor: u32) -> RunOptions {
    RunOptions::new().metadata("tenant", tenant).thread(tenant).config::<Setting>(Setting { factor })
}

// S39
#[tokio::test]
async fn a_child_that_is_found_is_what_its_journal_says_and_not_what_it_is_asked_for_with() {
    let store = left_by(Does::Runs(Begin(3), described("before", 7))).await;
    let engine = engine(Does::Runs(Begin(4), described("now", 9)), store);
    let parent = engine.attach::<Parent>("r").await.unwrap();
    let child = child(&engine).await;
    child.send(Note(5)).await.unwrap();
    parent.send(Note(0)).await.unwrap();
    assert_eq!(parent.outcome().await.unwrap(), Done(100 * 3 + 7 * 5));
    let report = child.report().await.unwrap();
    assert_eq!(report.metadata["tenant"], "before");
    assert_eq!(report.thread.as_str(), "before");
    assert_eq!(parent.report().await.unwrap().children.len(), 1);
}

// S32, S39
#[tokio::test]
async fn a_child_that_is_found_has_the_time_that_it_was_given_first() {
    let store = left_by(Does::RunsSleeper(Duration::from_millis(50))).await;
    let engine = engine(Does::RunsSleeper(Duration::from_hours(1)), store);
    let parent = engine.attach::<Parent>("r").await.unwrap();
    let error = parent.outcome().await.unwrap_err();
    let RunError::StepFailed { source, .. } = &error else { panic!("{error:?}") };
    let timed_out = source.downcast_ref::<RunError>();
    let Some(RunError::TimedOut { after, .. }) = timed_out else { panic!("{error:?}") };
    assert_eq!(*after, Duration::from_millis(50));
}

/// Why the parent could not start its child.
fn refusal(error: &RunError) -> &StartError {
    let RunError::StepFailed { source, .. } = error else { panic!("{error:?}") };
    match source.downcast_ref::<RunError>() {
        Some(RunError::Start(error)) => error,
        _ => source.downcast_ref::<StartError>().unwrap_or_else(|| panic!("{error:?}")),
    }
}

async fn refused(does: Does, store: Arc<MemoryStore>) -> StartError {
    let parent = engine(does, store).attach::<Parent>("r").await.unwrap();
    refusal(&parent.outcome().await.unwrap_err()).clone()
}

// S39
#[tokio::test]
async fn a_child_of_another_workflow_than_is_asked_for_is_refused() {
    let store = left_by(Does::Runs(Begin(3), RunOptions::new())).await;
    let error = refused(Does::RunsOther, store).await;
    assert_eq!(
        error.to_string(),
        "child run `r/first-x1.1` was begun as one of workflow `Listens`, and is asked for as one of `Asks` now: \
         give another id to the child, or let the step begin what it began before"
    );
    assert!(matches!(error, StartError::WrongWorkflow { .. }));
}

// S39, S55
#[tokio::test]
async fn a_child_keeps_the_name_of_its_workflow_and_is_refused_under_another() {
    let named = |name| Does::Runs(Begin(3), RunOptions::new().workflow(name));
    let store = left_by(named("tenant-1")).await;
    let refused = refused(named("Listens"), copy(&store).await).await;
    let StartError::WrongWorkflow { workflow, asked, .. } = refused else { panic!("{refused:?}") };
    assert_eq!((&*workflow, &*asked), ("tenant-1", "Listens"));

    // The journal has the name, so the call need not repeat it.
    let engine = engine(Does::Runs(Begin(3), RunOptions::new()), store);
    let parent = engine.attach::<Parent>("r").await.unwrap();
    child(&engine).await.send(Note(5)).await.unwrap();
    parent.send(Note(0)).await.unwrap();
    assert_eq!(parent.outcome().await.unwrap(), Done(305));
    assert_eq!(parent.report().await.unwrap().children[0].child.workflow.as_ref(), "tenant-1");
}

// S39, S56
#[tokio::test]
async fn a_child_that_is_found_by_name_needs_no_start_event() {
    let store = left_by(Does::RunsJson(serde_json::json!(3))).await;
    let engine = engine(Does::RunsJson(serde_json::json!("unfit")), store);
    let parent = engine.attach::<Parent>("r").await.unwrap();
    child(&engine).await.send(Note(5)).await.unwrap();
    parent.send(Note(0)).await.unwrap();
    assert_eq!(parent.outcome().await.unwrap(), Done(305));
}

// S39
#[tokio::test]
async fn a_root_run_or_another_kind_of_child_is_refused() {
    let store = left_by(Does::Hangs).await;
    let other = engine(Does::Hangs, Arc::clone(&store));
    other.start_with::<Listens>(Begin(1), RunOptions::new().id(CHILD)).await.unwrap();
    let before = store.read(&CHILD.into(), Position(0), usize::MAX).await.unwrap().len();
    let error = refused(Does::Runs(Begin(3), RunOptions::new()), copy(&store).await).await;
    assert!(matches!(&error, StartError::DuplicateRun { run } if run.as_str() == CHILD), "{error}");
    assert_eq!(store.read(&CHILD.into(), Position(0), usize::MAX).await.unwrap().len(), before);

    let store = left_by(Does::StartsAndWaits).await;
    let error = refused(Does::Runs(Begin(3), RunOptions::new()), store).await;
    assert!(matches!(&error, StartError::DuplicateRun { run } if run.as_str() == CHILD), "{error}");
}

// S38, S39
#[tokio::test]
async fn a_parent_stops_whose_child_has_no_beginning() {
    let store = left_by(Does::Hangs).await;
    let whole = left_by(Does::Runs(Begin(3), RunOptions::new())).await;
    let records = whole.read(&CHILD.into(), Position(0), 1).await.unwrap();
    let listed = whole.runs(&RunQuery::new()).await.unwrap().pop().unwrap();
    assert_eq!(listed.id.as_str(), CHILD);
    store.append(&CHILD.into(), Position(0), Write { records, run: listed.run }).await.unwrap();
    let engine = engine(Does::Runs(Begin(3), RunOptions::new()), store);
    let parent = engine.attach::<Parent>("r").await.unwrap();
    let error = parent.outcome().await.unwrap_err();
    let RunError::Store { source: StoreError::Corrupt { run, .. } } = &error else { panic!("{error:?}") };
    assert_eq!(run.as_str(), CHILD);
    let text = error.to_string();
    assert!(text.starts_with("the engine cannot drive the run because of its store; "), "{text}");
}

/// The child's items that the parent's viewer receives until the parent has ended, with retractions.
async fn seen(mut shown: DisplayStream) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(item) = shown.next().await {
        match &item {
            DisplayItem::Child { path, .. } => {
                let Some(Heard(number)) = item.event() else { continue };
                seen.push(format!("{} heard {number}", path[0].run));
            }
            DisplayItem::Retracted { step, attempt, .. } => seen.push(format!("{step} {attempt} is void")),
            _ => {}
        }
    }
    seen
}

// S25
#[tokio::test]
async fn items_of_a_started_child_appear_at_its_parent_when_both_resume() {
    for does in [Does::Starts, Does::StartsAndWaits] {
        let engine = engine(does.clone(), left_by(does).await);
        let resumed = engine.resume_open_runs().await.unwrap();
        assert_eq!(resumed.runs, ["r".into(), CHILD.into()]);
        let parent = engine.attach::<Parent>("r").await.unwrap();
        let shown = parent.display();
        let child = child(&engine).await;
        child.send(Note(5)).await.unwrap();
        child.outcome().await.unwrap();
        parent.send(Note(0)).await.unwrap();
        parent.outcome().await.unwrap();
        assert_eq!(seen(shown).await, ["r/first-x1.1 heard 5"]);
    }
}

// S25
#[tokio::test]
async fn items_of_a_child_before_its_parent_asks_for_it_appear_once_and_are_retracted_with_its_attempt() {
    let store = left_by(Does::StartsAndFails).await;
    let gates = Gates::new(0);
    let engine = gated(Does::StartsAndFails, store, &gates);
    engine.resume_open_runs().await.unwrap();
    let parent = engine.attach::<Parent>("r").await.unwrap();
    let shown = parent.display();
    let child = child(&engine).await;
    let mut heard = child.display();
    child.send(Word(1)).await.unwrap();
    assert!(heard.next().await.unwrap().event::<Heard>().is_some());
    gates.open().await;
    child.cancel("enough").await.unwrap();
    parent.outcome().await.unwrap_err();
    assert_eq!(seen(shown).await, ["r/first-x1.1 heard 1", "first 1 is void"]);
}

// S31, S40
#[tokio::test]
async fn a_child_resumed_before_its_parent_asked_for_it_is_detached_with_its_parent() {
    let store = left_by(Does::Runs(Begin(3), RunOptions::new())).await;
    let engine = engine(Does::Runs(Begin(3), RunOptions::new()), Arc::clone(&store));
    let child = engine.attach::<Listens>(CHILD).await.unwrap();
    child.settled().await;
    let parent = engine.attach::<Parent>("r").await.unwrap();
    until(async || {
        let children = &parent.report_so_far().await.unwrap().children;
        children.iter().any(|child| child.status == RunStatus::Waiting)
    })
    .await;
    // Another writer appends to the parent, which notices at its next write.
    let listed = store.runs(&RunQuery::new()).await.unwrap();
    let stored = listed.into_iter().find(|stored| stored.id.as_str() == "r").unwrap();
    let kept = Record::RunKept { at: std::time::SystemTime::now() };
    store.append(&stored.id, stored.end, Write { records: vec![kept], run: stored.run }).await.unwrap();
    parent.send(Note(0)).await.unwrap_err();
    assert!(matches!(parent.outcome().await, Err(RunError::Conflict { .. })));
    assert!(matches!(child.outcome().await, Err(RunError::Detached)));
    let journal = store.read(&CHILD.into(), Position(0), usize::MAX).await.unwrap();
    assert!(!journal.iter().any(|record| matches!(record, Record::RunEnded { .. })));
}

// S25
#[tokio::test]
async fn items_of_a_child_resumed_before_its_parent_appear_when_the_parent_asks_for_it() {
    let store = left_by(Does::StartsAndWaits).await;
    let gates = Gates::new(0);
    let engine = gated(Does::StartsAndWaits, store, &gates);
    let child = engine.attach::<Listens>(CHILD).await.unwrap();
    let mut heard = child.display();
    child.send(Word(1)).await.unwrap();
    assert!(heard.next().await.unwrap().event::<Heard>().is_some());
    let parent = engine.attach::<Parent>("r").await.unwrap();
    let shown = parent.display();
    gates.open().await;
    child.send(Note(5)).await.unwrap();
    parent.send(Note(0)).await.unwrap();
    assert_eq!(parent.outcome().await.unwrap(), Done(305));
    assert_eq!(seen(shown).await, ["r/first-x1.1 heard 1", "r/first-x1.1 heard 5"]);
}

/// Resumes a parent and its started child, and returns their outcome.
async fn goes_on(engine: &Engine) {
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.refused.is_empty() && resumed.error.is_none(), "{resumed:?}");
    let parent = engine.attach::<Parent>("r").await.unwrap();
    parent.send(Note(0)).await.unwrap();
    child(engine).await.send(Note(5)).await.unwrap();
    let outcome = tokio::time::timeout(Duration::from_mins(2), parent.outcome()).await.unwrap();
    assert_eq!(outcome.unwrap(), Done(305));
    assert_eq!(parent.report().await.unwrap().children[0].status, RunStatus::Completed);
}

// S31, S39: one caller resumes the child because it is open, the other because it asks for it.
#[tokio::test]
async fn two_callers_that_find_a_child_at_the_same_time_both_get_it() {
    let left = left_by(Does::StartsAndWaits).await;
    for read in 1..=12 {
        for polls in [0, 1, 2, 3, 5, 8, 13, 21, 34] {
            let store = copy(&left).await;
            let store = FaultyStore::new(store).fail(StoreCall::Read, read, Fault::Late(polls));
            goes_on(&engine(Does::StartsAndWaits, store)).await;
        }
    }
}

// S31, S39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_callers_that_find_a_child_on_two_threads_both_get_it() {
    let left = left_by(Does::StartsAndWaits).await;
    for _ in 0..100 {
        goes_on(&engine(Does::StartsAndWaits, copy(&left).await)).await;
    }
}

// S39
#[tokio::test]
async fn resumed_runs_are_reported_although_the_list_of_runs_breaks_off() {
    const RUNS: usize = 1_001;
    let store = Arc::new(MemoryStore::default());
    let before = engine(Does::Hangs, Arc::clone(&store));
    for run in 0..RUNS {
        let options = RunOptions::new().id(format!("r-{run:04}"));
        before.start_with::<Listens>(Begin(1), options).await.unwrap();
    }
    let copied = copy(&store).await;
    let page = RunQuery::new().page();
    let faulty = FaultyStore::new(Arc::clone(&copied)).fail(StoreCall::Runs, 2, Fault::Refused);
    let after = engine(Does::Hangs, faulty);
    let resumed = after.resume_open_runs().await.unwrap();
    assert!(matches!(resumed.error, Some(StoreError::Unavailable { .. })), "{:?}", resumed.error);
    assert_eq!(resumed.runs.len(), page);
    assert_eq!(after.running().len(), page);
    let resumed = after.resume_open_runs().await.unwrap();
    assert!(resumed.error.is_none());
    assert_eq!(resumed.runs, ["r-1000".into()], "{resumed:?}");

    let faulty = FaultyStore::new(copied).fail(StoreCall::Runs, 1, Fault::Refused);
    let after = engine(Does::Hangs, faulty);
    assert!(matches!(after.resume_open_runs().await, Err(StoreError::Unavailable { .. })));
    assert!(after.running().is_empty());
}
