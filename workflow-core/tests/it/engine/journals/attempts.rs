//! Attempts that fail while the store is slow (S28, S35, S38).

use std::sync::atomic::Ordering;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, RunHandle};
use workflow_testkit::VirtualClock;

use super::{Shelf, named};
use crate::fixtures::{Begin, Done, Gate, Seen, everyone_else};

/// One step ends the run; the attempts of the other fail, each when the test allows.
#[derive(Clone)]
struct Racing {
    class: ErrorClass,
    seen: Seen,
    fails: Gate,
    ends: Gate,
}

#[workflow]
impl Racing {
    #[step]
    async fn fail(&self, _begin: &Begin, info: &RunInfo) -> Result<(), StepError> {
        self.seen.note(format!("attempt {}", info.attempt()));
        self.fails.pass().await;
        Err(StepError::new(self.class, "torn"))
    }

    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        self.ends.pass().await;
        Done(begin.0)
    }
}

impl Racing {
    /// Starts the run; from then on its store blocks.
    async fn begun(class: ErrorClass) -> (Self, Shelf, RunHandle<Self>) {
        let racing = Self { class, seen: Seen::default(), fails: Gate::closed(), ends: Gate::closed() };
        let store = Shelf::gated();
        let engine = Engine::builder().workflow(racing.clone()).store(store.clone());
        let engine = engine.clock(VirtualClock::new()).build().unwrap();
        store.let_pass(1);
        let run = engine.start_with::<Self>(Begin(7), named("r")).await.unwrap();
        everyone_else().await;
        (racing, store, run)
    }
}

// S28, S38
#[tokio::test(start_paused = true)]
async fn no_attempt_begins_while_the_stop_event_is_written() {
    let (racing, store, run) = Racing::begun(ErrorClass::Tool).await;
    racing.ends.let_pass(1);
    everyone_else().await;
    assert_eq!(store.appends(), 2, "the stop event is on its way");
    racing.fails.let_pass(9);
    everyone_else().await;
    store.let_pass(9);
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    assert_eq!(racing.seen.lines(), ["attempt 1"]);
    assert!(run.report().await.unwrap().trace[0].attempts.is_empty());
}

// S28, S36, S38
#[tokio::test(start_paused = true)]
async fn no_attempt_begins_that_falls_due_while_the_stop_event_is_written() {
    let (racing, store, run) = Racing::begun(ErrorClass::Transient).await;
    racing.fails.let_pass(1);
    everyone_else().await;
    store.let_pass(1);
    everyone_else().await;
    racing.ends.let_pass(1);
    everyone_else().await;
    assert_eq!(store.appends(), 3, "the failed attempt is written, and the stop event on its way");
    tokio::time::sleep(Duration::from_mins(1)).await;
    store.let_pass(9);
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    assert_eq!(racing.seen.lines(), ["attempt 1"]);
}

// S28, S40
#[tokio::test(start_paused = true)]
async fn no_attempt_follows_when_the_stop_event_cannot_be_written() {
    let (racing, store, run) = Racing::begun(ErrorClass::Tool).await;
    racing.ends.let_pass(1);
    racing.fails.let_pass(1);
    everyone_else().await;
    store.broken.store(true, Ordering::SeqCst);
    store.let_pass(9);
    assert!(matches!(run.outcome().await, Err(RunError::Store { .. })));
    assert_eq!(racing.seen.lines(), ["attempt 1"]);
}

// S38, S39: the ids of an attempt's children contain the attempt's number, and are found by it.
#[tokio::test(start_paused = true)]
async fn an_attempt_waits_until_the_failed_one_is_written() {
    let (racing, store, run) = Racing::begun(ErrorClass::Tool).await;
    racing.fails.let_pass(2);
    everyone_else().await;
    assert_eq!(racing.seen.lines(), ["attempt 1"]);
    store.let_pass(1);
    everyone_else().await;
    assert_eq!(racing.seen.lines(), ["attempt 1", "attempt 2"]);
    store.let_pass(1);
    everyone_else().await;
    assert_eq!(racing.seen.lines(), ["attempt 1", "attempt 2", "attempt 3"]);
    racing.ends.let_pass(1);
    store.let_pass(9);
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    assert_eq!(run.report().await.unwrap().trace[0].attempts.len(), 2);
}
