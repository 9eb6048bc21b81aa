//! Permits of active runs, per engine and workflow: waiting for them, or refusal.

use workflow_core::errors::BuildProblem;
use workflow_core::prelude::*;
use workflow_core::{RunHandle, RunId, RunOptions, RunStatus, StartError, WhenFull};

use crate::fixtures::{Alpha, Begin, Done, Gate, everyone_else};

/// With input 0, waits for an outside event; otherwise waits at its gate.
struct Left(Gate);

#[workflow]
impl Left {
    #[step]
    async fn work(&self, begin: &Begin) -> Option<Done> {
        if begin.0 == 0 {
            return None;
        }
        self.0.pass().await;
        Some(Done(begin.0))
    }

    #[step]
    async fn end(&self, alpha: &Alpha) -> Done {
        self.0.pass().await;
        Done(alpha.0)
    }
}

struct Right(Gate);

#[workflow]
impl Right {
    #[step]
    async fn work(&self, begin: &Begin) -> Done {
        self.0.pass().await;
        Done(begin.0)
    }
}

/// Two workflows, and the gates at which their runs wait.
struct Both {
    left: Gate,
    right: Gate,
}

impl Both {
    fn closed() -> Self {
        Self { left: Gate::closed(), right: Gate::closed() }
    }

    fn engine(&self) -> workflow_core::EngineBuilder {
        Engine::builder().workflow(Left(self.left.clone())).workflow(Right(self.right.clone()))
    }
}

/// A start in a task of its own.
type Starting<W> = tokio::task::JoinHandle<Result<RunHandle<W>, StartError>>;

fn starting<W: Workflow>(engine: &Engine, id: &str, begin: u32) -> Starting<W> {
    let (engine, options) = (engine.clone(), RunOptions::new().id(id));
    tokio::spawn(async move { engine.start_with::<W>(Begin(begin), options).await })
}

async fn started<W: Workflow>(engine: &Engine, id: &str, begin: u32) -> RunHandle<W> {
    starting(engine, id, begin).await.unwrap().unwrap()
}

fn ids(ids: &[&str]) -> Vec<RunId> {
    ids.iter().map(|id| RunId::new(*id)).collect()
}

// S21
#[tokio::test]
async fn starts_wait_visibly_in_order_for_a_permit_of_their_workflow() {
    let gates = Both::closed();
    let engine = gates.engine().max_concurrent_runs_of::<Left>(2).build().unwrap();
    let runs = ["a", "b", "c", "d"].map(|id| starting::<Left>(&engine, id, 1));
    everyone_else().await;
    assert_eq!(engine.queued(), ids(&["c", "d"]));
    assert_eq!(engine.running().len(), 4);
    gates.left.let_pass(1);
    everyone_else().await;
    assert_eq!(engine.queued(), ids(&["d"]));
    gates.left.let_pass(3);
    for run in runs {
        assert_eq!(run.await.unwrap().unwrap().outcome().await.unwrap(), Done(1));
    }
    assert_eq!(engine.queued(), []);
}

// S21
#[tokio::test]
async fn the_runs_of_a_full_workflow_hold_no_permit_that_others_need() {
    let gates = Both::closed();
    let engine = gates.engine().max_concurrent_runs(2).max_concurrent_runs_of::<Left>(1).build().unwrap();
    let _lefts: Vec<_> = (1..50).map(|n| starting::<Left>(&engine, &format!("left {n}"), n)).collect();
    everyone_else().await;
    assert_eq!(engine.queued().len(), 48);
    gates.right.let_pass(20);
    for n in 1..=20 {
        let right = started::<Right>(&engine, &format!("right {n}"), n).await;
        assert_eq!(right.outcome().await.unwrap(), Done(n));
    }
    assert_eq!(engine.queued().len(), 48);
}

// S21
#[tokio::test]
async fn two_limits_hold_together_and_everyone_gets_to_the_end() {
    let gates = Both::closed();
    let limited = gates.engine().max_concurrent_runs(2);
    let engine =
        limited.max_concurrent_runs_of::<Left>(1).max_concurrent_runs_of::<Right>(2).build().unwrap();
    let lefts: Vec<_> = (1..=20).map(|n| starting::<Left>(&engine, &format!("left {n}"), n)).collect();
    let rights: Vec<_> = (1..=20).map(|n| starting::<Right>(&engine, &format!("right {n}"), n)).collect();
    for _ in 0..20 {
        gates.left.let_pass(1);
        gates.right.let_pass(1);
        everyone_else().await;
        let unfinished = engine.running().len();
        assert_eq!(engine.queued().len(), unfinished.saturating_sub(2));
    }
    for (run, n) in lefts.into_iter().zip(1..) {
        assert_eq!(run.await.unwrap().unwrap().outcome().await.unwrap(), Done(n));
    }
    for (run, n) in rights.into_iter().zip(1..) {
        assert_eq!(run.await.unwrap().unwrap().outcome().await.unwrap(), Done(n));
    }
}

// S21, S30
#[tokio::test]
async fn a_run_that_waits_for_an_outside_event_gives_up_both_permits_and_queues_again() {
    let gates = Both::closed();
    let limited = gates.engine().max_concurrent_runs(2).when_full(WhenFull::Refuse);
    let engine = limited.max_concurrent_runs_of::<Left>(1).build().unwrap();
    let waiting = started::<Left>(&engine, "waiting", 0).await;
    assert_eq!(waiting.settled().await, RunStatus::Waiting);
    let left = started::<Left>(&engine, "left", 1).await;
    let right = started::<Right>(&engine, "right", 1).await;
    everyone_else().await;
    // A started run is never refused later.
    waiting.send(Alpha(7)).await.unwrap();
    everyone_else().await;
    assert_eq!(engine.queued(), ids(&["waiting"]));
    gates.left.let_pass(1);
    assert_eq!(left.outcome().await.unwrap(), Done(1));
    everyone_else().await;
    assert_eq!(engine.queued(), []);
    gates.left.let_pass(1);
    assert_eq!(waiting.outcome().await.unwrap(), Done(7));
    gates.right.let_pass(1);
    assert_eq!(right.outcome().await.unwrap(), Done(1));
}

// S21, S31
#[tokio::test]
async fn a_run_cancelled_in_the_queue_leaves_the_queue() {
    let gates = Both::closed();
    let engine = gates.engine().max_concurrent_runs(1).build().unwrap();
    let waiting = started::<Left>(&engine, "waiting", 0).await;
    waiting.settled().await;
    let _working = started::<Left>(&engine, "working", 1).await;
    waiting.send(Alpha(7)).await.unwrap();
    everyone_else().await;
    assert_eq!(engine.queued(), ids(&["waiting"]));
    waiting.cancel("enough").await.unwrap();
    assert_eq!(engine.queued(), []);
}

// S21
#[tokio::test]
async fn a_dropped_start_leaves_the_queue_and_holds_no_permit() {
    let gates = Both::closed();
    let engine = gates.engine().max_concurrent_runs(1).max_concurrent_runs_of::<Right>(1).build().unwrap();
    let working = started::<Left>(&engine, "working", 1).await;
    // This start holds its workflow's permit and waits for the engine's.
    let given_up = starting::<Right>(&engine, "given up", 1);
    everyone_else().await;
    assert_eq!(engine.queued(), ids(&["given up"]));
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    assert_eq!((engine.queued(), engine.running()), (vec![], ids(&["working"])));
    gates.left.let_pass(1);
    working.outcome().await.unwrap();
    gates.right.let_pass(1);
    assert_eq!(started::<Right>(&engine, "next", 2).await.outcome().await.unwrap(), Done(2));
}

#[tokio::test]
async fn a_full_engine_refuses_starts_if_configured_so() {
    let gates = Both::closed();
    let engine = gates.engine().max_concurrent_runs(1).when_full(WhenFull::Refuse).build().unwrap();
    let working = started::<Left>(&engine, "working", 1).await;
    let refused = starting::<Right>(&engine, "refused", 1).await.unwrap().unwrap_err();
    assert!(matches!(refused, StartError::Full { limit: 1, workflow: None, .. }), "{refused:?}");
    assert_eq!(
        refused.to_string(),
        "the engine has 1 permit for runs (`max_concurrent_runs`): run `working` has it; start it later, or raise the limit"
    );
    assert_eq!((engine.queued(), engine.running()), (vec![], ids(&["working"])));
    gates.left.let_pass(1);
    working.outcome().await.unwrap();
    gates.right.let_pass(1);
    assert_eq!(started::<Right>(&engine, "refused", 2).await.outcome().await.unwrap(), Done(2));
}

#[tokio::test]
async fn a_full_workflow_refuses_starts_and_holds_no_permit_of_the_engine() {
    let gates = Both::closed();
    let limited = gates.engine().max_concurrent_runs(2).max_concurrent_runs_of::<Left>(1);
    let engine = limited.when_full(WhenFull::Refuse).build().unwrap();
    let _left = started::<Left>(&engine, "left", 1).await;
    let refused = starting::<Left>(&engine, "another", 1).await.unwrap().unwrap_err();
    let StartError::Full { limit: 1, workflow: Some(workflow), .. } = refused else { panic!("{refused:?}") };
    assert_eq!(&*workflow, "Left");
    let _right = started::<Right>(&engine, "right", 1).await;
    let refused = starting::<Right>(&engine, "one more", 1).await.unwrap().unwrap_err();
    assert!(matches!(refused, StartError::Full { limit: 2, workflow: None, .. }), "{refused:?}");
}

#[test]
fn a_limit_of_a_workflow_that_is_not_hosted_is_a_problem() {
    let error = Engine::builder().max_concurrent_runs_of::<Left>(1).build().unwrap_err();
    let [BuildProblem::LimitOfUnknown { workflow }] = &error.problems[..] else { panic!("{error}") };
    assert_eq!(&**workflow, "Left");
}
