//! Cancels that the store does not take (S31, S38, S62): none of them is acknowledged, and the run goes on elsewhere.

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::store::{EventStore as _, Position, Record, RunQuery};
use workflow_core::{Origin, RunHandle, RunId, RunOptions, RunStatus, SendError};

use super::held::Held;
use crate::fixtures::{Begin, Done, Note, Waits, until};

/// Waits for a note, and has a clean-up step.
struct Tidies;

#[workflow]
impl Tidies {
    #[step]
    async fn work(&self, begin: &Begin, note: &Note) -> Done {
        Done(begin.0 + note.0)
    }

    #[step(on_end)]
    async fn tidy(&self, _begin: &Begin) {}
}

/// Waits for a note. Its clean-up hangs, or the store fails in it.
struct Hangs(Option<Held>);

#[workflow]
impl Hangs {
    #[step]
    async fn work(&self, begin: &Begin, note: &Note) -> Done {
        Done(begin.0 + note.0)
    }

    #[step(on_end)]
    async fn tidy(&self, _begin: &Begin) {
        match &self.0 {
            Some(store) => store.fail("r"),
            None => std::future::pending().await,
        }
    }
}

fn engine(store: Held) -> Engine {
    Engine::builder().workflow(Waits).workflow(Tidies).store(store).build().unwrap()
}

fn hanging(store: &Held, fails: bool) -> Engine {
    let hangs = Hangs(fails.then(|| store.clone()));
    Engine::builder().workflow(hangs).store(store.clone()).build().unwrap()
}

async fn waiting<W: Workflow>(engine: &Engine, id: &str) -> RunHandle<W> {
    let run = engine.start_with::<W>(Begin(1), RunOptions::new().id(id)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    run
}

/// How often the journal says that the run has ended.
async fn ends(store: &Held, run: &str) -> usize {
    let records = store.kept.read(&RunId::from(run), Position(0), 100).await.unwrap();
    records.iter().filter(|record| matches!(record, Record::RunEnded { .. })).count()
}

async fn is_refused_by_its_store<W: Workflow<Output = Done>>() {
    let store = Held::default();
    let run = waiting::<W>(&engine(store.clone()), "r").await;
    store.fail("r");
    let origin = Origin::new().id("c");
    let refused = run.with_origin(origin.clone()).cancel("enough").await;
    assert!(matches!(refused, Err(SendError::Stopped { .. })), "{refused:?}");
    assert_eq!(ends(&store, "r").await, 0);
    store.recover();
    let run = engine(store.clone()).attach::<W>("r").await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let by = run.with_origin(origin);
    by.cancel("enough").await.unwrap();
    by.cancel("enough").await.unwrap();
    assert_eq!(run.status(), RunStatus::Cancelled);
    assert_eq!(ends(&store, "r").await, 1);
}

// S31, S62
#[tokio::test]
async fn a_cancel_that_the_store_does_not_take_is_refused() {
    is_refused_by_its_store::<Waits>().await;
    is_refused_by_its_store::<Tidies>().await;
}

// S31
#[tokio::test]
async fn a_cancel_of_many_runs_says_which_ones_stopped_before() {
    let store = Held::default();
    let engine = engine(store.clone());
    for id in ["a", "b"] {
        waiting::<Waits>(&engine, id).await;
    }
    store.fail("a");
    let mut results = engine.cancel_where(&RunQuery::new(), "enough").unwrap();
    let mut told = Vec::new();
    while let Some(result) = results.next().await {
        let result = result.unwrap();
        told.push((result.run.to_string(), result.result.is_ok()));
    }
    told.sort();
    assert_eq!(told, [("a".to_owned(), false), ("b".to_owned(), true)]);
}

// S31, S38
#[tokio::test]
async fn a_run_that_another_engine_continues_is_not_cancelled_by_the_first_one() {
    let store = Held::default();
    let lost = waiting::<Waits>(&engine(store.clone()), "r").await;
    let other = engine(store.clone());
    let run = other.attach::<Waits>("r").await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let refused = lost.cancel("enough").await;
    assert!(matches!(refused, Err(SendError::Stopped { .. })), "{refused:?}");
    run.send(Note(2)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3));
}

// S31, S38
#[tokio::test]
async fn an_engine_that_cancels_all_runs_says_which_journals_lack_it() {
    let store = Held::default();
    let cancels = engine(store.clone());
    let mut runs = Vec::new();
    for id in ["a", "b", "c"] {
        runs.push(waiting::<Tidies>(&cancels, id).await);
    }
    store.fail("a");
    store.fail("c");
    let lack_it = cancels.cancel_all("the office closes", Duration::from_secs(5)).await;
    assert_eq!(lack_it, [RunId::from("a"), "c".into()]);
    for (run, ends_in_journal) in runs.iter().zip([0, 1, 0]) {
        assert!(run.outcome().await.is_err());
        assert_eq!(ends(&store, run.id().as_str()).await, ends_in_journal);
    }
    store.recover();
    let next = engine(store).resume_open_runs().await.unwrap();
    assert_eq!(next.runs, lack_it);
}

// S31, S62
#[tokio::test]
async fn a_cancel_of_many_runs_succeeds_for_one_whose_journal_has_its_clean_up() {
    let store = Held::default();
    let engine = hanging(&store, true);
    waiting::<Hangs>(&engine, "r").await;
    let mut results = engine.cancel_where(&RunQuery::new(), "enough").unwrap();
    let result = results.next().await.unwrap().unwrap();
    assert!(result.result.is_ok(), "{result:?}");
    assert!(cleans_up(&store).await);
    assert_eq!(ends(&store, "r").await, 0);
}

/// Whether the journal says that the run cleans up.
async fn cleans_up(store: &Held) -> bool {
    let records = store.kept.read(&RunId::from("r"), Position(0), 100).await.unwrap();
    records.iter().any(|record| matches!(record, Record::CleanUpStarted { .. }))
}

// S31, S62
#[tokio::test]
async fn a_cancel_succeeds_if_the_journal_has_its_clean_up_when_the_run_stops_here() {
    for has_origin in [false, true] {
        let store = Held::default();
        let first = hanging(&store, false);
        let run = waiting::<Hangs>(&first, "r").await;
        let run = if has_origin { run.with_origin(Origin::new().id("c")) } else { run };
        let cancelled = tokio::spawn(async move { run.cancel("enough").await });
        until(async || cleans_up(&store).await).await;
        first.shut_down(Duration::ZERO).await;
        let cancelled = cancelled.await.unwrap();
        assert!(cancelled.is_ok(), "origin: {has_origin}: {cancelled:?}");
        // The next process continues the clean-up, and no other end.
        let next = hanging(&store, false).attach::<Hangs>("r").await.unwrap();
        until(async || next.status() == RunStatus::CleaningUp).await;
    }
}

// S31
#[tokio::test]
async fn a_journal_with_the_clean_up_of_a_cancel_does_not_lack_it() {
    let store = Held::default();
    let first = hanging(&store, true);
    let run = waiting::<Hangs>(&first, "r").await;
    let lack_it = first.cancel_all("the office closes", Duration::from_secs(5)).await;
    assert!(matches!(run.outcome().await, Err(RunError::Store { .. })));
    assert!(cleans_up(&store).await);
    assert_eq!(ends(&store, "r").await, 0);
    assert!(lack_it.is_empty(), "{lack_it:?}");
    // It goes on with the clean-up in another process, and in one that cancels it there.
    store.recover();
    let second = hanging(&store, true);
    second.attach::<Hangs>("r").await.unwrap();
    assert!(second.cancel_all("the office closes", Duration::from_secs(5)).await.is_empty());
}
