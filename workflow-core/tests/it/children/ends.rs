//! Children that are no longer needed end, and do so before their parent (S31).

use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt as _;
use workflow_core::prelude::*;
use workflow_core::{RunHandle, RunStatus, StartError};
use workflow_testkit::{Scenario, explore};

use crate::fixtures::{Alive, Begin, Close, Done, Gate, Item, everyone_else, until};

/// Lives for an hour, or runs another one that does.
struct Living(Alive);

#[workflow]
impl Living {
    #[step]
    async fn live(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let _alive = self.0.guard();
        tokio::task::yield_now().await;
        if let Some(deeper) = begin.0.checked_sub(1) {
            return children.run::<Self>(Begin(deeper)).await;
        }
        tokio::time::sleep(Duration::from_hours(1)).await;
        Ok(Done(begin.0))
    }
}

/// Has two children that it awaits and one that it only starts, in two steps.
struct Bearing(Alive);

#[workflow]
impl Bearing {
    #[step(spawn)]
    async fn elsewhere(&self, _begin: &Begin, children: &Children) -> Result<(), StepError> {
        let _alive = self.0.guard();
        children.start::<Living>(Begin(1)).await?;
        children.run::<Living>(Begin(1)).await?;
        Ok(())
    }

    #[step]
    async fn here(&self, _begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let _alive = self.0.guard();
        children.run::<Living>(Begin(1)).await
    }

    #[step]
    async fn stop(&self, _close: &Close) -> Done {
        Done(7)
    }
}

async fn bearing(alive: &Alive) -> (Engine, RunHandle<Bearing>) {
    let engine = Engine::builder().workflow(Bearing(alive.clone())).workflow(Living(alive.clone()));
    let engine = engine.build().unwrap();
    let run = engine.start::<Bearing>(Begin(0)).await.unwrap();
    (engine, run)
}

// S31
#[tokio::test(start_paused = true)]
async fn wherever_a_parent_is_cancelled_no_child_is_alive_after_its_end() {
    let mut most = 0;
    for point in 0..40 {
        let alive = Alive::default();
        let (engine, run) = bearing(&alive).await;
        for _ in 0..point {
            tokio::task::yield_now().await;
        }
        most = most.max(alive.count());
        run.cancel("enough").await.unwrap();
        assert_eq!(engine.running(), [], "cancelled after {point} yields");
        // The runtime stops a step in a task of its own at that task's next turn.
        until(|| alive.count() == 0).await;
        let report = run.report().await.unwrap();
        assert!(report.children.iter().all(|child| child.status == RunStatus::Cancelled));
    }
    // Two steps, three children, and one more below each.
    assert_eq!(most, 8);
}

// S31
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_several_threads_too_no_child_continues_after_the_end_of_its_parent() {
    for point in 0..200 {
        let alive = Alive::default();
        let (engine, run) = bearing(&alive).await;
        for _ in 0..point {
            tokio::task::yield_now().await;
        }
        run.cancel("enough").await.unwrap();
        assert_eq!(engine.running(), []);
        until(|| alive.count() == 0).await;
    }
}

// S28
#[tokio::test(start_paused = true)]
async fn when_a_parent_completes_awaited_children_end_and_started_ones_continue() {
    let alive = Alive::default();
    let (engine, run) = bearing(&alive).await;
    everyone_else().await;
    run.send(Close).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(7));
    let mut left: Vec<String> = engine.running().iter().map(ToString::to_string).collect();
    left.sort_unstable();
    let started = format!("{}/elsewhere-x1.1", run.id());
    assert_eq!(left, [started.clone(), format!("{started}/live-x1.1")]);
    let children = &run.report().await.unwrap().children;
    let statuses: Vec<_> = children.iter().map(|child| (child.child.awaited, child.status)).collect();
    assert!(statuses.contains(&(false, RunStatus::Running)));
    assert_eq!(statuses.iter().filter(|status| **status == (true, RunStatus::Cancelled)).count(), 2);
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!((engine.running().len(), alive.count()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_shut_down_ends_children_too() {
    let alive = Alive::default();
    let (engine, run) = bearing(&alive).await;
    everyone_else().await;
    engine.cancel_all("the engine is shutting down", Duration::ZERO).await;
    assert_eq!((engine.running(), run.status()), (vec![], RunStatus::Cancelled));
    until(|| alive.count() == 0).await;
}

// S31
#[tokio::test(start_paused = true)]
async fn a_parent_whose_task_is_dropped_takes_its_children_along() {
    let alive = Alive::default();
    let mut run = Box::pin(Living(alive.clone()).run(Begin(2)));
    while alive.count() < 3 {
        assert!((&mut run).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    drop(run);
    until(|| alive.count() == 0).await;
}

/// Drops the future of a child half-way.
struct Impatient(Alive);

#[workflow]
impl Impatient {
    #[step]
    async fn hurry(&self, begin: &Begin, children: &Children) -> Done {
        let minute = Duration::from_mins(1);
        assert!(tokio::time::timeout(minute, children.run::<Living>(Begin(0))).await.is_err());
        until(|| self.0.count() == 0).await;
        Done(begin.0)
    }
}

// S31
#[tokio::test]
async fn a_child_whose_future_is_dropped_is_cancelled_while_its_parent_continues() {
    let alive = Alive::default();
    let run = Scenario::new(Impatient(alive.clone())).host(Living(alive)).start(Begin(3)).await;
    let expected = "\
#1 Begin from outside: 3
x1 hurry by #1: succeeded
   runs scenario/hurry-x1.1 of Living
   scenario/hurry-x1.1 cancelled
#2 Done of x1: 3
completed with #2
";
    assert_eq!(run.transcript(), expected);
}

struct Branching(Alive);

#[workflow]
impl Branching {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item, children: &Children) -> Result<Done, StepError> {
        if item.0 == 0 {
            until(|| self.0.count() == 2).await;
            return Err(StepError::permanent("no"));
        }
        Ok(children.run::<Living>(Begin(0)).await?)
    }
}

// S31, S49
#[tokio::test]
async fn the_children_of_a_branch_that_is_dropped_have_ended_before_the_run() {
    let alive = Alive::default();
    let scenario = Scenario::new(Branching(alive.clone())).host(Living(alive.clone()));
    let run = scenario.start(Begin(3)).await;
    assert_eq!((run.status(), alive.count()), (RunStatus::Failed, 0));
    let statuses: Vec<_> = run.report().children.iter().map(|child| child.status).collect();
    assert_eq!(statuses, [RunStatus::Cancelled; 2]);
}

/// Passes its `Children`, and a child's future, to other code.
struct Careless(Mutex<Option<Children>>, Gate);

#[workflow]
impl Careless {
    #[step]
    async fn leak(&self, _begin: &Begin, children: &Children) -> Item {
        *self.0.lock().unwrap() = Some(children.clone());
        let child = tokio::spawn(children.run::<Living>(Begin(0)));
        self.1.pass().await;
        drop(child);
        Item(0)
    }

    #[step]
    async fn late(&self, _item: &Item) -> Done {
        let children = self.0.lock().unwrap().take().unwrap();
        let refused = children.run::<Living>(Begin(0)).await.unwrap_err();
        assert!(matches!(refused, RunError::Start(StartError::ParentEnded { .. })), "{refused}");
        let refused = children.start::<Living>(Begin(0)).await.unwrap_err();
        assert_eq!(refused.to_string(), "the execution in run `r` that was to start the child has ended");
        Done(0)
    }
}

// S31
#[tokio::test(start_paused = true)]
async fn no_child_outlives_the_execution_that_waits_for_it_wherever_its_future_is() {
    let (alive, gate) = (Alive::default(), Gate::closed());
    let engine = Engine::builder().workflow(Careless(Mutex::default(), gate.clone()));
    let engine = engine.workflow(Living(alive.clone())).build().unwrap();
    let options = workflow_core::RunOptions::new().id("r");
    let run = engine.start_with::<Careless>(Begin(0), options).await.unwrap();
    until(|| alive.count() == 1).await;
    gate.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    assert_eq!((alive.count(), engine.running()), (0, vec![]));
}

/// Runs a child on a runtime that shuts down.
struct Bereaved(Mutex<Option<tokio::runtime::Runtime>>);

#[workflow]
impl Bereaved {
    #[step]
    async fn lose(&self, begin: &Begin, children: &Children) -> Done {
        let mut child = children.run::<Living>(Begin(0));
        let runtime = self.0.lock().unwrap().take().unwrap();
        {
            let _entered = runtime.enter();
            assert!((&mut child).now_or_never().is_none());
        }
        runtime.shutdown_background();
        assert!(matches!(child.await, Err(RunError::Detached)));
        Done(begin.0)
    }
}

// S31
#[tokio::test]
async fn a_child_whose_task_is_gone_blocks_no_run() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let bereaved = Bereaved(Mutex::new(Some(runtime)));
    let run = Scenario::new(bereaved).host(Living(Alive::default())).start(Begin(3)).await;
    run.assert_output(&Done(3));
    assert!(run.report().children[0].report.is_none());
}

/// Runs children and fails at once, the first time.
struct Hasty(Alive);

#[workflow]
impl Hasty {
    #[step]
    async fn ask(&self, begin: &Begin, children: &Children, info: &RunInfo) -> Result<Done, StepError> {
        assert_eq!(self.0.count(), 0, "the children of the attempt before have ended");
        if info.attempt() == 2 {
            return Ok(Done(begin.0));
        }
        let all = futures::future::join_all((0..3).map(|depth| children.run::<Living>(Begin(depth % 2))));
        tokio::select! {
            _ = all => unreachable!("they live for an hour"),
            () = until(|| self.0.count() == 4) => Err(StepError::tool("they take too long")),
        }
    }
}

// S31, S35
#[test]
fn the_next_attempt_begins_when_the_children_of_the_one_before_have_ended() {
    let explored = explore(|| {
        let alive = Alive::default();
        Scenario::new(Hasty(alive.clone())).host(Living(alive)).start(Begin(3))
    });
    let explored = explored.assert(|run| run.assert_output(&Done(3)));
    assert!(explored.is_exhaustive(), "{explored}");
}
