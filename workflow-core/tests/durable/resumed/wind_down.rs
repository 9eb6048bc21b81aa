//! An engine that shuts down lets executions end, and begins nothing more (S39). The next process continues from what
//! was committed.

use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, Record};
use workflow_core::{Retries, RetryPolicy, RunHandle, RunOptions, RunStatus};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note, Part};

const HOUR: Duration = Duration::from_hours(1);

/// What the steps of both processes did, and when they may end.
#[derive(Debug, Clone)]
struct Stage {
    seen: Arc<Mutex<Vec<&'static str>>>,
    may_end: Arc<Semaphore>,
    store: Arc<MemoryStore>,
}

impl Stage {
    fn new() -> Self {
        Self { seen: Arc::default(), may_end: Arc::new(Semaphore::new(0)), store: Arc::default() }
    }

    async fn works(&self, step: &'static str) {
        self.seen.lock().unwrap().push(step);
        self.may_end.acquire().await.unwrap().forget();
    }

    fn count(&self, step: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| **seen == step).count()
    }

    fn engine(&self) -> Engine {
        let engine = Engine::builder().workflow(Builds(self.clone())).workflow(Orders(self.clone()));
        let engine = engine.workflow(Follows).store(Arc::clone(&self.store));
        engine.clock(VirtualClock::new()).build().unwrap()
    }

    async fn journal(&self, run: &str) -> Vec<Record> {
        self.store.read(&run.into(), Position(0), usize::MAX).await.unwrap()
    }
}

/// Works, and ends with a note.
#[derive(Clone)]
struct Builds(Stage);

#[workflow]
impl Builds {
    #[step]
    async fn build(&self, begin: &Begin) -> Item {
        self.0.works("build").await;
        Item(begin.0)
    }

    #[step]
    async fn paint(&self, item: &Item) -> Part {
        self.0.works("paint").await;
        Part(item.0)
    }

    #[step]
    async fn deliver(&self, part: &Part, note: &Note) -> Done {
        Done(part.0 + note.0)
    }
}

/// Runs two children, one after the other.
#[derive(Clone)]
struct Orders(Stage);

#[workflow]
impl Orders {
    #[step]
    async fn order(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        self.0.seen.lock().unwrap().push("order");
        let first = children.run_with::<Builds>(Begin(begin.0), RunOptions::new().id("first")).await?;
        let second = children.run_with::<Builds>(Begin(begin.0), RunOptions::new().id("second")).await?;
        Ok(Done(first.0 + second.0))
    }
}

/// Starts a child and waits for it through its handle.
struct Follows;

#[workflow]
impl Follows {
    #[step]
    async fn follow(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        let child = children.start_with::<Builds>(Begin(begin.0), RunOptions::new().id("only")).await?;
        Ok(child.outcome().await?)
    }
}

async fn start<W: Workflow>(engine: &Engine, id: &str) -> RunHandle<W> {
    engine.start_with::<W>(Begin(1), RunOptions::new().id(id)).await.unwrap()
}

// S39
#[tokio::test(start_paused = true)]
async fn what_executes_is_committed_and_nothing_more_begins() {
    let stage = Stage::new();
    let engine = stage.engine();
    let run = start::<Builds>(&engine, "r").await;
    sleep(Duration::from_secs(1)).await;
    let mut shuts_down = pin!(engine.shut_down(HOUR));
    assert!(futures::poll!(shuts_down.as_mut()).is_pending());
    assert!(timeout(Duration::from_mins(30), shuts_down.as_mut()).await.is_err(), "it waits for `build`");
    stage.may_end.add_permits(1);
    timeout(Duration::from_mins(1), shuts_down).await.expect("nothing runs any more");
    assert!(matches!(run.outcome().await, Err(RunError::Detached)));
    assert_eq!((stage.count("build"), stage.count("paint")), (1, 0));
    let journal = stage.journal("r").await;
    assert!(journal.iter().any(|record| matches!(record, Record::ExecutionSucceeded { .. })), "{journal:?}");

    let next = stage.engine();
    stage.may_end.add_permits(9);
    let run = next.attach::<Builds>("r").await.unwrap();
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    assert_eq!((stage.count("build"), stage.count("paint")), (1, 1));
}

// S39
#[tokio::test(start_paused = true)]
async fn after_the_time_runs_are_detached_as_they_are() {
    let stage = Stage::new();
    let engine = stage.engine();
    let run = start::<Builds>(&engine, "r").await;
    sleep(Duration::from_secs(1)).await;
    let began = tokio::time::Instant::now();
    engine.shut_down(Duration::from_mins(1)).await;
    assert_eq!(began.elapsed(), Duration::from_mins(1));
    assert!(matches!(run.outcome().await, Err(RunError::Detached)));
    let next = stage.engine();
    stage.may_end.add_permits(9);
    let run = next.attach::<Builds>("r").await.unwrap();
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    assert_eq!(stage.count("build"), 2, "the dropped one runs again");
}

// S39, S42
#[tokio::test(start_paused = true)]
async fn messages_are_taken_while_something_executes_and_are_in_the_journal() {
    let stage = Stage::new();
    let engine = stage.engine();
    let (run, other) = (start::<Builds>(&engine, "r").await, start::<Builds>(&engine, "other").await);
    sleep(Duration::from_secs(1)).await;
    let mut shuts_down = pin!(engine.shut_down(HOUR));
    assert!(futures::poll!(shuts_down.as_mut()).is_pending());
    run.send(Note(7)).await.unwrap();
    other.cancel("enough").await.unwrap();
    stage.may_end.add_permits(1);
    timeout(Duration::from_mins(1), shuts_down).await.expect("nothing runs any more");
    assert!(run.send(Note(8)).await.is_err());
    assert!(matches!(other.outcome().await, Err(RunError::Cancelled { .. })));

    let next = stage.engine();
    stage.may_end.add_permits(9);
    assert_eq!(next.attach::<Builds>("r").await.unwrap().outcome().await.unwrap(), Done(8));
}

// S39
#[tokio::test(start_paused = true)]
async fn an_execution_that_waits_for_a_child_does_not_delay_the_end_and_the_work_of_the_child_counts() {
    let stage = Stage::new();
    let engine = stage.engine();
    let parent = start::<Orders>(&engine, "p").await;
    sleep(Duration::from_secs(1)).await;
    let mut shuts_down = pin!(engine.shut_down(HOUR));
    assert!(futures::poll!(shuts_down.as_mut()).is_pending());
    assert!(timeout(Duration::from_mins(30), shuts_down.as_mut()).await.is_err(), "the child works");
    stage.may_end.add_permits(1);
    timeout(Duration::from_mins(1), shuts_down).await.expect("nothing runs any more");
    assert!(matches!(parent.outcome().await, Err(RunError::Detached)));
    assert_eq!((stage.count("order"), stage.count("build"), stage.count("paint")), (1, 1, 0));

    let next = stage.engine();
    stage.may_end.add_permits(9);
    next.resume_open_runs().await.unwrap();
    let parent = next.attach::<Orders>("p").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    next.attach::<Builds>("p/order-x1.first").await.unwrap().send(Note(1)).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    next.attach::<Builds>("p/order-x1.second").await.unwrap().send(Note(1)).await.unwrap();
    assert_eq!(parent.outcome().await.unwrap(), Done(4));
    assert_eq!((stage.count("order"), stage.count("build"), stage.count("paint")), (2, 2, 2));
}

// S39
#[tokio::test(start_paused = true)]
async fn a_step_that_asks_for_a_child_meanwhile_gets_no_answer_and_runs_again() {
    let stage = Stage::new();
    let engine = stage.engine();
    let parent = start::<Orders>(&engine, "p").await;
    stage.may_end.add_permits(1);
    sleep(Duration::from_secs(1)).await;
    let first = engine.attach::<Builds>("p/order-x1.first").await.unwrap();
    first.send(Note(1)).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    // `paint` of the first child is under way.
    let mut shuts_down = pin!(engine.shut_down(HOUR));
    assert!(futures::poll!(shuts_down.as_mut()).is_pending());
    stage.may_end.add_permits(1);
    timeout(Duration::from_mins(1), shuts_down).await.expect("nothing runs any more");
    assert!(matches!(parent.outcome().await, Err(RunError::Detached)), "it is no failure of the step");
    assert!(stage.journal("p/order-x1.second").await.is_empty());
    let failed = |record: &Record| matches!(record, Record::ExecutionFailed { .. } | Record::RunEnded { .. });
    assert!(!stage.journal("p").await.iter().any(failed));
}

// S39
#[tokio::test(start_paused = true)]
async fn a_wait_through_a_handle_counts_as_work() {
    let stage = Stage::new();
    let engine = stage.engine();
    let run = start::<Follows>(&engine, "f").await;
    sleep(Duration::from_secs(1)).await;
    stage.may_end.add_permits(1);
    let began = tokio::time::Instant::now();
    engine.shut_down(Duration::from_mins(1)).await;
    assert_eq!(began.elapsed(), Duration::from_mins(1), "the child cannot end, and `follow` waits for it");
    assert!(matches!(run.outcome().await, Err(RunError::Detached)), "the detach of the child is no failure");
    let failed = |record: &Record| matches!(record, Record::ExecutionFailed { .. } | Record::RunEnded { .. });
    assert!(!stage.journal("f").await.iter().any(failed));
}

/// Fails once, and is retried after a day.
struct TriesLater(AtomicU32);

#[workflow]
impl TriesLater {
    #[step(retry = RetryPolicy::standard()
        .on(workflow_core::ErrorClass::Transient, Retries::fixed(3, Duration::from_hours(24))))]
    async fn attempt(&self, begin: &Begin) -> Result<Done, StepError> {
        let attempts = self.0.fetch_add(1, Ordering::SeqCst);
        if attempts == 0 { Err(StepError::transient("busy")) } else { Ok(Done(begin.0)) }
    }
}

// S36, S39
#[tokio::test(start_paused = true)]
async fn a_wait_for_a_retry_is_not_waited_for() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(TriesLater(AtomicU32::new(0))).store(store);
    let engine = engine.clock(VirtualClock::new()).build().unwrap();
    let run = start::<TriesLater>(&engine, "r").await;
    sleep(Duration::from_secs(1)).await;
    let began = tokio::time::Instant::now();
    engine.shut_down(HOUR).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(matches!(run.outcome().await, Err(RunError::Detached)));
}

/// Works, while a timer falls due.
#[derive(Clone)]
struct Reminds(Stage);

#[workflow]
impl Reminds {
    #[step]
    async fn remind(&self, begin: &Begin) -> Timer<Part> {
        Timer::after(Duration::from_mins(1), Part(begin.0))
    }

    #[step]
    async fn work(&self, begin: &Begin) -> Item {
        self.0.works("work").await;
        Item(begin.0)
    }

    #[step]
    async fn end(&self, part: &Part, _item: &Item) -> Done {
        self.0.seen.lock().unwrap().push("end");
        Done(part.0)
    }
}

// S32, S39
#[tokio::test(start_paused = true)]
async fn a_timer_that_falls_due_meanwhile_enters_the_log_and_triggers_nothing_yet() {
    let stage = Stage::new();
    let build = || {
        let engine = Engine::builder().workflow(Reminds(stage.clone())).store(Arc::clone(&stage.store));
        engine.clock(VirtualClock::new()).build().unwrap()
    };
    let engine = build();
    let run = start::<Reminds>(&engine, "r").await;
    sleep(Duration::from_secs(1)).await;
    let mut shuts_down = pin!(engine.shut_down(HOUR));
    assert!(timeout(Duration::from_mins(5), shuts_down.as_mut()).await.is_err());
    stage.may_end.add_permits(1);
    shuts_down.await;
    assert!(matches!(run.outcome().await, Err(RunError::Detached)));
    assert_eq!(stage.count("end"), 0);
    let fired =
        |record: &Record| matches!(record, Record::EventLogged { event, .. } if event.name() == "Part");
    assert!(stage.journal("r").await.iter().any(fired));
    let next = build();
    assert_eq!(next.attach::<Reminds>("r").await.unwrap().outcome().await.unwrap(), Done(1));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_asked_twice_shuts_down_once_and_a_dropped_call_can_be_repeated() {
    let stage = Stage::new();
    let engine = stage.engine();
    let run = start::<Builds>(&engine, "r").await;
    sleep(Duration::from_secs(1)).await;
    {
        let mut dropped = pin!(engine.shut_down(HOUR));
        assert!(futures::poll!(dropped.as_mut()).is_pending());
    }
    assert_eq!(run.status(), RunStatus::Running);
    stage.may_end.add_permits(1);
    let both = futures::future::join(engine.shut_down(HOUR), engine.shut_down(HOUR));
    timeout(Duration::from_mins(1), both).await.expect("nothing runs any more");
    assert!(matches!(run.outcome().await, Err(RunError::Detached)));
    assert_eq!((stage.count("build"), stage.count("paint")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn all_runs_are_cancelled_with_the_reason() {
    let stage = Stage::new();
    let engine = stage.engine();
    let run = start::<Builds>(&engine, "r").await;
    sleep(Duration::from_secs(1)).await;
    engine.cancel_all("the office closes", HOUR).await;
    assert!(
        matches!(run.outcome().await, Err(RunError::Cancelled { reason }) if &*reason == "the office closes")
    );
    let journal = stage.journal("r").await;
    assert!(
        matches!(journal.last(), Some(Record::RunEnded { status: RunStatus::Cancelled, error: Some(error), .. })
            if error == "the office closes"),
        "{journal:?}"
    );
}
