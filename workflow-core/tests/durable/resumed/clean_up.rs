//! A clean-up that is interrupted: detached, claimed by another engine's writes, or continued with a changed table
//! (S31, S39–S41).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use workflow_core::prelude::*;
use workflow_core::report::{CleanUpResult, Ending};
use workflow_core::store::{EventStore, MemoryStore, Position, Record, RunQuery};
use workflow_core::{RecordedRun, RunError, RunHandle, RunId, RunOptions, RunStatus, StepFailed};

use super::found::copy;
use super::held::Held;
use crate::fixtures::{Begin, Done, Item, Note, Part, Waits, until};

/// What steps did. Clones share the lines.
#[derive(Clone)]
struct Seen {
    lines: Arc<Mutex<Vec<String>>>,
    /// The permits of clean-up steps.
    gate: Arc<Semaphore>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { lines: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }
}

impl Seen {
    async fn undo(&self, what: &str, info: &RunInfo) {
        let ending = info.ending().map(Ending::to_string).unwrap_or_default();
        self.lines.lock().unwrap().push(format!("{what}: {ending}"));
        self.gate.acquire().await.unwrap().forget();
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

/// Books two things and hangs.
struct Books(Seen);

#[workflow(name = "Books")]
impl Books {
    #[step]
    async fn item(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn part(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn end(&self, part: &Part) -> Result<Done, StepError> {
        if part.0 == 0 { Err(StepError::permanent("no money")) } else { std::future::pending().await }
    }

    #[step(on_end)]
    async fn undo_item(&self, _item: &Item, info: &RunInfo) {
        self.0.undo("item", info).await;
    }

    #[step(on_end)]
    async fn undo_part(&self, _part: &Part, info: &RunInfo) {
        self.0.undo("part", info).await;
    }
}

/// The same with a further clean-up step, which comes between the two.
struct BooksMore(Seen);

#[workflow(name = "Books")]
impl BooksMore {
    #[step]
    async fn item(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn part(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn end(&self, part: &Part) -> Result<Done, StepError> {
        if part.0 == 0 { Err(StepError::permanent("no money")) } else { std::future::pending().await }
    }

    #[step(on_end)]
    async fn undo_item(&self, _item: &Item, info: &RunInfo) {
        self.0.undo("item", info).await;
    }

    #[step(on_end)]
    async fn undo_more(&self, _item: &Item, info: &RunInfo) {
        self.0.undo("more", info).await;
    }

    #[step(on_end)]
    async fn undo_part(&self, _part: &Part, info: &RunInfo) {
        self.0.undo("part", info).await;
    }
}

async fn begun(begin: u32, store: &Arc<MemoryStore>, seen: &Seen) -> (Engine, RunHandle<Books>) {
    let engine = Engine::builder().workflow(Books(seen.clone())).store(Arc::clone(store)).build().unwrap();
    let options = RunOptions::new().id("b-1");
    let run = engine.start_with::<Books>(Begin(begin), options).await.unwrap();
    (engine, run)
}

async fn records(store: &MemoryStore) -> Vec<Record> {
    store.read(&"b-1".into(), Position(0), usize::MAX).await.unwrap()
}

fn count(records: &[Record], is_one: fn(&Record) -> bool) -> usize {
    records.iter().filter(|record| is_one(record)).count()
}

fn begins(record: &Record) -> bool {
    matches!(record, Record::CleanUpStarted { .. })
}

/// Interrupts the clean-up after its first step. Returns the store.
async fn interrupted(begin: u32) -> (Arc<MemoryStore>, Seen) {
    let (store, seen) = (Arc::new(MemoryStore::default()), Seen::default());
    let (engine, run) = begun(begin, &store, &seen).await;
    if begin > 0 {
        until(async || records(&store).await.len() > 5).await;
        let cancelled = run.clone();
        tokio::spawn(async move { cancelled.cancel("enough").await });
    }
    until(async || seen.lines().len() == 1).await;
    seen.gate.add_permits(1);
    until(async || seen.lines().len() == 2).await;
    assert_eq!(run.status(), RunStatus::CleaningUp);
    let listed = engine.runs(&RunQuery::new().open()).await.unwrap();
    assert_eq!(listed[0].run.status, RunStatus::CleaningUp);
    engine.shut_down(Duration::ZERO).await;
    assert!(matches!(run.outcome().await, Err(RunError::Detached)));
    (store, seen)
}

// S31 S39
#[tokio::test]
async fn a_clean_up_that_was_detached_continues_and_repeats_nothing() {
    for (begin, why) in [(0, "failed: step `end` failed (x3, permanent): no money"), (1, "cancelled: enough")]
    {
        let (store, seen) = interrupted(begin).await;
        assert_eq!(seen.lines(), [format!("part: {why}"), format!("item: {why}")]);
        let found = records(&store).await;
        assert_eq!(count(&found, |record| matches!(record, Record::RunEnded { .. })), 0);
        let recorded = RecordedRun::of(&RunId::from("b-1"), &found).unwrap();
        assert_eq!(recorded.status(), RunStatus::CleaningUp);
        let results: Vec<_> =
            recorded.report().clean_up.as_ref().unwrap().steps.iter().map(|it| &it.result).collect();
        assert!(
            matches!(results[..], [CleanUpResult::Executed(_), CleanUpResult::Executed(_)]),
            "{results:?}"
        );

        let again = Seen::default();
        again.gate.add_permits(9);
        let engine =
            Engine::builder().workflow(Books(again.clone())).store(Arc::clone(&store)).build().unwrap();
        assert_eq!(engine.resume_open_runs().await.unwrap().runs.len(), 1);
        let run = engine.attach::<Books>("b-1").await.unwrap();
        let outcome = run.outcome().await.unwrap_err();
        assert_eq!(again.lines(), [format!("item: {why}")]);
        let found = records(&store).await;
        assert_eq!((count(&found, begins), found.len()), (1, found.len()));
        assert!(matches!(found.last(), Some(Record::RunEnded { .. })));
        // The outcome is the same from the journal alone.
        let engine = Engine::builder().workflow(Books(again)).store(store).build().unwrap();
        let past = engine.attach::<Books>("b-1").await.unwrap();
        assert_eq!(past.outcome().await.unwrap_err().to_string(), outcome.to_string());
        assert_eq!(past.report().await.unwrap().clean_up, run.report().await.unwrap().clean_up);
    }
}

// S31 S41
#[tokio::test]
async fn a_clean_up_continues_with_the_steps_of_its_journal() {
    let (store, _) = interrupted(0).await;
    let seen = Seen::default();
    seen.gate.add_permits(9);
    let engine = Engine::builder().workflow(BooksMore(seen.clone())).store(store).build().unwrap();
    let run = engine.attach::<BooksMore>("b-1").await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::StepFailed { .. })));
    assert_eq!(seen.lines().len(), 1, "{:?}", seen.lines());
    let text = run.explain().await.unwrap().to_string();
    let new =
        "`undo_more` did not run at this end: the workflow had no such clean-up step when the run ended";
    assert!(text.contains(new), "{text}");
}

// S31 S41: a run that ended before its workflow had clean-up steps has nothing to clean up.
#[tokio::test]
async fn a_run_that_has_ended_is_not_cleaned_up_later() {
    let (store, seen) = (Arc::new(MemoryStore::default()), Seen::default());
    seen.gate.add_permits(9);
    let (_engine, run) = begun(0, &store, &seen).await;
    run.outcome().await.unwrap_err();
    let again = Seen::default();
    let engine = Engine::builder().workflow(BooksMore(again.clone())).store(store).build().unwrap();
    assert!(engine.resume_open_runs().await.unwrap().runs.is_empty());
    let run = engine.attach::<BooksMore>("b-1").await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::StepFailed { .. })));
    assert!(again.lines().is_empty());
}

// S31 S40: another writer takes the run while it cleans up.
#[tokio::test]
async fn a_run_that_another_engine_resumes_in_its_clean_up_stops_without_effect() {
    let (store, seen) = (Arc::new(MemoryStore::default()), Seen::default());
    let (_first, run) = begun(0, &store, &seen).await;
    until(async || seen.lines().len() == 1).await;
    let again = Seen::default();
    again.gate.add_permits(9);
    let engine = Engine::builder().workflow(Books(again.clone())).store(Arc::clone(&store)).build().unwrap();
    let resumed = engine.attach::<Books>("b-1").await.unwrap();
    assert!(matches!(resumed.outcome().await, Err(RunError::StepFailed { .. })));
    seen.gate.add_permits(9);
    assert!(matches!(run.outcome().await, Err(RunError::Conflict { .. })));
    assert_eq!((seen.lines().len(), again.lines().len()), (1, 2));
    assert_eq!(count(&records(&store).await, begins), 1);
}

/// Loops for ever, and undoes the loop before the rest.
struct Loops(Seen);

#[workflow]
impl Loops {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(loops)]
    async fn again(&self, item: &Item) -> (Item, Option<Done>) {
        (Item(item.0 + 1), None)
    }

    #[step(on_end)]
    async fn undo_all(&self, _begin: &Begin, info: &RunInfo) {
        self.0.undo("all", info).await;
    }

    #[step(on_end)]
    async fn undo(&self, items: List<Item>, info: &RunInfo) {
        self.0.undo(&format!("{} items as {}", items.len(), info.execution()), info).await;
    }
}

// S31 S39: the next engine may have another limit than the one that ended the run.
#[tokio::test]
async fn a_clean_up_at_a_limit_continues_whatever_the_limit_is_now() {
    for limit in [4, 3, 100] {
        let (store, seen) = (Arc::new(MemoryStore::default()), Seen::default());
        let engine = |seen: &Seen, limit| {
            let engine = Engine::builder().workflow(Loops(seen.clone())).store(Arc::clone(&store));
            engine.max_executions_per_run(limit).build().unwrap()
        };
        let first = engine(&seen, 4);
        let run = first.start_with::<Loops>(Begin(0), RunOptions::new().id("b-1")).await.unwrap();
        until(async || seen.lines().len() == 1).await;
        assert!(
            seen.lines()[0].starts_with("4 items as x5: failed: the run had 4 executions"),
            "{:?}",
            seen.lines()
        );
        seen.gate.add_permits(1);
        until(async || seen.lines().len() == 2).await;
        first.shut_down(Duration::ZERO).await;
        drop(run);
        let again = Seen::default();
        again.gate.add_permits(9);
        let next = engine(&again, limit);
        let run = next.attach::<Loops>("b-1").await.unwrap();
        assert!(matches!(run.outcome().await, Err(RunError::TooManyExecutions { limit: 4, .. })));
        assert!(again.lines().len() == 1 && again.lines()[0].starts_with("all: "), "{:?}", again.lines());
        assert_eq!(run.report().await.unwrap().executions("again"), 3);
    }
}

/// The same as [`Books`], but for the ends at which it cleans up.
struct BooksFailed(Seen);

#[workflow(name = "Books")]
impl BooksFailed {
    #[step]
    async fn item(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn part(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn end(&self, part: &Part) -> Result<Done, StepError> {
        if part.0 == 0 { Err(StepError::permanent("no money")) } else { std::future::pending().await }
    }

    #[step(on_end = "failed")]
    async fn undo_item(&self, _item: &Item, info: &RunInfo) {
        self.0.undo("item", info).await;
    }

    #[step(on_end = "stalled")]
    async fn undo_part(&self, _part: &Part, info: &RunInfo) {
        self.0.undo("part", info).await;
    }
}

// S31 S41: the journal says which steps the clean-up has, whatever the ends at which they run by now.
#[tokio::test]
async fn a_clean_up_continues_though_its_steps_run_at_other_ends_now() {
    let (store, _) = interrupted(1).await;
    let seen = Seen::default();
    seen.gate.add_permits(9);
    let engine = Engine::builder().workflow(BooksFailed(seen.clone())).store(store).build().unwrap();
    let run = engine.attach::<BooksFailed>("b-1").await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
    assert_eq!(seen.lines(), ["item: cancelled: enough"]);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Delegate;

/// Runs a child that hangs.
struct Delegates(Seen);

#[workflow]
impl Delegates {
    #[step]
    async fn run_child(&self, _delegate: &Delegate, children: Children) -> Result<Done, RunError> {
        children.run::<Books>(Begin(1)).await
    }

    #[step(on_end)]
    async fn undo(&self, _delegate: &Delegate, info: &RunInfo) {
        self.0.undo("parent", info).await;
    }
}

// S31 S39: a cancel is in the journal before the children learn of it, and their clean-up comes first after a restart
// too.
#[tokio::test]
async fn a_cancel_survives_a_restart_while_children_clean_up_and_they_still_come_first() {
    let (store, seen) = (Arc::new(MemoryStore::default()), Seen::default());
    let engine = |seen: &Seen| {
        let engine = Engine::builder().workflow(Books(seen.clone())).workflow(Delegates(seen.clone()));
        engine.store(Arc::clone(&store)).build().unwrap()
    };
    let first = engine(&seen);
    let run = first.start_with::<Delegates>(Delegate, RunOptions::new().id("b-1")).await.unwrap();
    let booked = async || {
        let child =
            store.runs(&RunQuery::new()).await.unwrap().into_iter().find(|run| run.id.as_str() != "b-1");
        child.is_some_and(|child| child.end.0 > 5)
    };
    until(booked).await;
    let cancelled = run.clone();
    tokio::spawn(async move { cancelled.cancel("enough").await });
    until(async || seen.lines().len() == 1).await;
    assert!(seen.lines()[0].starts_with("part: cancelled"), "{:?}", seen.lines());
    assert_eq!(run.status(), RunStatus::CleaningUp);
    // Asked while the children clean up.
    let explanation = run.explain().await.unwrap().to_string();
    assert!(explanation.contains("`undo` has not run yet at this end"), "{explanation}");
    first.shut_down(Duration::ZERO).await;
    let again = Seen::default();
    again.gate.add_permits(9);
    let next = engine(&again);
    let run = next.attach::<Delegates>("b-1").await.unwrap();
    let outcome = run.outcome().await;
    assert!(matches!(&outcome, Err(RunError::Cancelled { reason }) if &**reason == "enough"), "{outcome:?}");
    let lines = again.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("part: ") && lines[1].starts_with("item: "), "{lines:?}");
    assert_eq!(lines[2], "parent: cancelled: enough");
}

/// A failure that is caught while the log has a place, and the booking that the clean-up undoes.
struct Catches(Seen);

#[workflow(name = "Catches")]
impl Catches {
    #[step]
    async fn item(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn pay(&self, _item: &Item) -> Result<Done, StepError> {
        Err(StepError::permanent("no money"))
    }

    #[step(catches = [pay])]
    async fn forgive(&self, _failed: &StepFailed) -> Done {
        Done(0)
    }

    #[step(on_end)]
    async fn undo_item(&self, _item: &Item, info: &RunInfo) {
        self.0.undo("item", info).await;
    }
}

// S31 S39: a full log has no place for the failure that a step would catch; a log without the limit has.
#[tokio::test]
async fn a_clean_up_at_a_full_log_continues_without_what_the_log_had_no_place_for() {
    let (store, seen) = (Arc::new(MemoryStore::default()), Seen::default());
    let engine = Engine::builder().workflow(Catches(seen.clone())).store(Arc::clone(&store));
    let first = engine.max_events_per_run(2).build().unwrap();
    let run = first.start_with::<Catches>(Begin(1), RunOptions::new().id("b-1")).await.unwrap();
    until(async || seen.lines().len() == 1).await;
    first.shut_down(Duration::ZERO).await;
    drop(run);
    assert!(seen.lines()[0].starts_with("item: failed"), "{:?}", seen.lines());
    let found = records(&store).await;
    assert_eq!(RecordedRun::of(&RunId::from("b-1"), &found).unwrap().status(), RunStatus::CleaningUp);

    let again = Seen::default();
    again.gate.add_permits(9);
    let engine = Engine::builder().workflow(Catches(again.clone())).store(store).build().unwrap();
    let run = engine.attach::<Catches>("b-1").await.unwrap();
    let outcome = run.outcome().await;
    assert!(matches!(&outcome, Err(RunError::LogFull { limit: 2, .. })), "{outcome:?}");
    assert_eq!(again.lines(), seen.lines());
    assert_eq!(run.report().await.unwrap().log.len(), 2);
}

struct Guards;

#[workflow]
impl Guards {
    #[step]
    async fn work(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run_with::<Waits>(Begin(begin.0), RunOptions::new().id("c")).await
    }

    #[step(on_end)]
    async fn undo(&self, _begin: &Begin) {}
}

/// A run whose clean-up is held by its store, with its child.
async fn held_in_clean_up(store: &Held) -> (RunHandle<Guards>, RunHandle<Waits>) {
    let engine = Engine::builder().store(store.clone()).workflow(Guards).workflow(Waits).build().unwrap();
    let run = engine.start_with::<Guards>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let child = "r/work-x1.c";
    until(async || engine.find(&child.into()).is_some_and(|run| run.status() == RunStatus::Waiting)).await;
    let child = engine.attach::<Waits>(child).await.unwrap();
    store.hold("r");
    tokio::spawn({
        let run = run.clone();
        async move { run.cancel("enough").await }
    });
    until(async || run.status() == RunStatus::CleaningUp).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(child.status(), RunStatus::Waiting);
    (run, child)
}

/// A process that ends before leaves a run that goes on, with its child.
// S31, S38
#[tokio::test]
async fn children_learn_of_a_clean_up_once_the_store_has_that_it_began() {
    let store = Held::default();
    let (run, child) = held_in_clean_up(&store).await;
    store.release();
    assert!(matches!(child.outcome().await, Err(RunError::Cancelled { .. })));
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
}

// S31, S38
#[tokio::test]
async fn a_child_goes_on_if_the_store_fails_as_the_clean_up_begins() {
    let store = Held::default();
    let (run, child) = held_in_clean_up(&store).await;
    store.fail("r");
    assert!(matches!(run.outcome().await, Err(RunError::Store { .. })));
    assert!(matches!(child.outcome().await, Err(RunError::Detached)));
    store.recover();
    let engine = Engine::builder().store(store).workflow(Guards).workflow(Waits).build().unwrap();
    let run = engine.attach::<Guards>("r").await.unwrap();
    engine.attach::<Waits>("r/work-x1.c").await.unwrap().send(Note(2)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3));
}

/// Books, fails to pay, and gives the money back in a child run, once the gate lets it.
struct Refunds(Seen);

#[workflow(name = "Refunds")]
impl Refunds {
    #[step]
    async fn book(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn pay(&self, _item: &Item) -> Result<Done, StepError> {
        Err(StepError::permanent("no money"))
    }

    #[step(on_end)]
    async fn undo(&self, item: &Item, info: &RunInfo, children: &Children) -> Result<(), RunError> {
        self.0.undo("item", info).await;
        children.run_with::<Waits>(Begin(item.0), RunOptions::new().id("c")).await.map(drop)
    }
}

fn refunding(store: Held, seen: &Seen) -> Engine {
    Engine::builder().store(store).workflow(Refunds(seen.clone())).workflow(Waits).build().unwrap()
}

/// A process that ends, or whose store fails, after the first write of the child and before the parent's journal has it.
// S31, S39
#[tokio::test]
async fn a_child_of_the_clean_up_goes_on_although_the_journal_of_its_parent_lacks_it() {
    for (fails, attaches_first) in [(false, false), (true, false), (false, true)] {
        let (store, seen, child) = (Held::default(), Seen::default(), RunId::from("r/undo-x3.c"));
        let engine = refunding(store.clone(), &seen);
        let run = engine.start_with::<Refunds>(Begin(1), RunOptions::new().id("r")).await.unwrap();
        until(async || seen.lines().len() == 1).await;
        store.hold("r");
        seen.gate.add_permits(1);
        let is_there = async || !store.kept.read(&child, Position(0), 1).await.unwrap().is_empty();
        until(is_there).await;
        let left = if fails {
            store.fail("r");
            assert!(matches!(run.outcome().await, Err(RunError::Store { .. })));
            store.recover();
            store
        } else {
            Held::over(copy(&store.kept).await)
        };
        let journal = left.kept.read(&"r".into(), Position(0), 100).await.unwrap();
        assert!(!journal.iter().any(|record| matches!(record, Record::ChildStarted { .. })), "{journal:?}");
        let again = Seen::default();
        again.gate.add_permits(9);
        let engine = refunding(left, &again);
        if attaches_first {
            engine.attach::<Waits>(child.as_str()).await.unwrap();
        }
        let run = engine.attach::<Refunds>("r").await.unwrap();
        until(async || again.lines().len() == 1).await;
        let refund = engine.attach::<Waits>(child.as_str()).await.unwrap();
        refund.send(Note(2)).await.unwrap();
        assert_eq!(refund.outcome().await.unwrap(), Done(3));
        assert!(matches!(run.outcome().await, Err(RunError::StepFailed { .. })));
        let report = run.report().await.unwrap();
        let undone = &report.trace.iter().find(|traced| &*traced.step == "undo").unwrap().outcome;
        assert!(matches!(undone, workflow_core::report::ExecutionOutcome::Succeeded), "{undone:?}");
    }
}
