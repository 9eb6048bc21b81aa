//! The futures of the public API: where they may run, and the effect of dropping them.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use workflow_core::prelude::*;
use workflow_core::report::RequestId;
use workflow_core::{RunHandle, RunOptions, RunStatus, Seq};

use crate::fixtures::{
    Alive, Alpha, Begin, Close, Done, Gate, Item, Seen, everyone_else, log_of, started, until,
};

/// Accepts only futures that can be spawned.
fn spawnable<F: Future + Send + 'static>(future: F) -> F {
    future
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask;

struct Asking;

#[workflow]
impl Asking {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Ask {
        Ask
    }

    #[step]
    async fn note(&self, alpha: &Alpha) -> Item {
        Item(alpha.0)
    }

    #[step]
    async fn end(&self, answer: Reply<Ask>, _item: &Item) -> Done {
        Done(*answer)
    }
}

#[tokio::test]
async fn a_one_line_run_can_be_spawned() {
    let run = tokio::spawn(spawnable(Plain.run(Begin(3))));
    assert_eq!(run.await.unwrap().unwrap(), Done(3));
}

struct Plain;

#[workflow]
impl Plain {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

#[tokio::test]
async fn starting_and_shutting_down_can_be_spawned() {
    let engine = Engine::builder().workflow(Plain).build().unwrap();
    let starting = engine.clone();
    let start = spawnable(async move { starting.start::<Plain>(Begin(1)).await });
    let run = tokio::spawn(start).await.unwrap().unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    let starting = engine.clone();
    let start = spawnable(async move { starting.start_with::<Plain>(Begin(2), RunOptions::new()).await });
    let run = tokio::spawn(start).await.unwrap().unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    tokio::spawn(spawnable(async move {
        engine.cancel_all("the engine is shutting down", Duration::from_secs(1)).await;
    }))
    .await
    .unwrap();
}

#[tokio::test]
async fn everything_a_handle_is_asked_can_be_spawned() {
    let run = started(Asking, 0).await;
    let handle = run.clone();
    assert_eq!(spawned(async move { handle.settled().await }).await, RunStatus::Waiting);
    let handle = run.clone();
    spawned(async move { handle.send(Alpha(1)).await }).await.unwrap();
    let handle = run.clone();
    assert_eq!(spawned(async move { handle.requests().await }).await.unwrap().len(), 1);
    let handle = run.clone();
    spawned(async move { handle.explain().await }).await.unwrap();
    let mut viewer = run.display();
    let viewing = tokio::spawn(spawnable(async move { viewer.next().await }));
    let handle = run.clone();
    spawned(async move { handle.reply(RequestId::<Ask>::new(Seq(2)), 7).await }).await.unwrap();
    let handle = run.clone();
    assert_eq!(spawned(async move { handle.outcome().await }).await.unwrap(), Done(7));
    let handle = run.clone();
    assert_eq!(spawned(async move { handle.report().await }).await.unwrap().executions("end"), 1);
    assert!(spawned(async move { run.cancel("late").await }).await.is_err());
    assert!(viewing.await.unwrap().is_some());
}

async fn spawned<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    tokio::spawn(spawnable(future)).await.unwrap()
}

fn shared_between_threads<T: Send + Sync + 'static>() {}

#[test]
fn what_programs_keep_can_be_shared_between_threads() {
    shared_between_threads::<Engine>();
    shared_between_threads::<RunHandle<Asking>>();
    shared_between_threads::<RequestId<Ask>>();
    shared_between_threads::<workflow_core::report::RunReport>();
    shared_between_threads::<RunError>();
    shared_between_threads::<workflow_core::DisplayItem>();
    shared_between_threads::<Arc<workflow_core::explain::Explanation>>();
}

struct Asleep {
    alive: Alive,
    gate: Gate,
}

#[workflow]
impl Asleep {
    #[step]
    async fn here(&self, begin: &Begin) -> Item {
        let _guard = self.alive.guard();
        self.gate.pass().await;
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

fn asleep() -> (Alive, Gate, Asleep) {
    let (alive, gate) = (Alive::default(), Gate::closed());
    (alive.clone(), gate.clone(), Asleep { alive, gate })
}

// S31
#[tokio::test]
async fn dropping_a_one_line_run_drops_its_running_steps() {
    let (alive, _gate, workflow) = asleep();
    let mut run = Box::pin(workflow.run(Begin(1)));
    assert!(futures::poll!(&mut run).is_pending());
    assert_eq!(alive.count(), 1);
    drop(run);
    assert_eq!(alive.count(), 0);
}

// S31
#[tokio::test]
async fn a_one_line_run_does_nothing_before_it_is_awaited() {
    let (alive, _gate, workflow) = asleep();
    let run = workflow.run(Begin(1));
    everyone_else().await;
    assert_eq!(alive.count(), 0);
    drop(run);
}

struct AsleepElsewhere(Alive);

#[workflow]
impl AsleepElsewhere {
    #[step(spawn)]
    async fn elsewhere(&self, begin: &Begin) -> Done {
        let _guard = self.0.guard();
        std::future::pending::<()>().await;
        Done(begin.0)
    }
}

// S31
#[tokio::test]
async fn dropping_a_one_line_run_drops_steps_in_tasks_of_their_own_too() {
    let alive = Alive::default();
    let mut run = Box::pin(AsleepElsewhere(alive.clone()).run(Begin(1)));
    assert!(futures::poll!(&mut run).is_pending());
    until(|| alive.count() == 1).await;
    drop(run);
    until(|| alive.count() == 0).await;
}

// S31
#[tokio::test]
async fn dropping_an_outcome_leaves_the_run_alone() {
    let (alive, gate, workflow) = asleep();
    let run = started(workflow, 5).await;
    assert!(run.outcome().now_or_never().is_none());
    assert!(run.report().now_or_never().is_none());
    assert!(run.settled().now_or_never().is_none());
    until(|| alive.count() == 1).await;
    assert_eq!(run.status(), RunStatus::Running);
    gate.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(5));
}

// S21
#[tokio::test]
async fn dropping_a_start_that_waits_for_a_permit_takes_none() {
    let (_alive, gate, workflow) = asleep();
    let engine = Engine::builder().workflow(workflow).max_concurrent_runs(1).build().unwrap();
    let first = engine.start::<Asleep>(Begin(1)).await.unwrap();
    let mut second = Box::pin(engine.start::<Asleep>(Begin(2)));
    assert!(futures::poll!(&mut second).is_pending());
    gate.let_pass(2);
    first.outcome().await.unwrap();
    everyone_else().await;
    drop(second);
    let third = engine.start::<Asleep>(Begin(3)).await.unwrap();
    assert_eq!(third.outcome().await.unwrap(), Done(3));
    until(|| engine.running().is_empty()).await;
}

struct Noting(Seen);

#[workflow]
impl Noting {
    #[step]
    async fn note(&self, alpha: &Alpha) {
        self.0.note(alpha.0.to_string());
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S33
#[tokio::test]
async fn dropping_a_send_takes_the_event_once_or_not_at_all() {
    let seen = Seen::default();
    let run = started(Noting(seen.clone()), 0).await;
    run.settled().await;
    drop(run.send(Alpha(1)));
    assert!(run.send(Alpha(2)).now_or_never().is_none());
    run.send(Alpha(3)).await.unwrap();
    run.send(Close).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(seen.lines(), ["2", "3"]);
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin", "Alpha", "Alpha", "Close", "Done"]);
}

// S31
#[tokio::test]
async fn dropping_a_cancel_that_was_sent_still_cancels() {
    let (alive, _gate, workflow) = asleep();
    let run = started(workflow, 1).await;
    until(|| alive.count() == 1).await;
    assert!(run.cancel("gone").now_or_never().is_none());
    assert!(matches!(run.outcome().await, Err(RunError::Cancelled { .. })));
    assert_eq!(alive.count(), 0);
}

#[tokio::test]
async fn dropping_a_viewer_leaves_the_run_alone() {
    let (_alive, gate, workflow) = asleep();
    let run = started(workflow, 1).await;
    let mut viewer = run.display();
    assert!(viewer.next().now_or_never().is_none());
    drop(viewer);
    gate.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}

#[tokio::test]
async fn a_run_can_be_one_of_several_futures_of_a_task() {
    let (_alive, gate, workflow) = asleep();
    let winner = tokio::select! {
        biased;
        outcome = workflow.run(Begin(1)) => outcome.map(|done| done.0).unwrap(),
        () = everyone_else() => 0,
    };
    assert_eq!(winner, 0);
    drop(gate);
}
