//! What an execution leaves behind, and what a failed one does not (S23, S26, S27, S29).

use std::sync::Arc;

use tokio::sync::oneshot;
use workflow_core::prelude::*;
use workflow_core::{ErrorClass, ExecutionOutcome, Quality, RunStatus};

use crate::fixtures::{
    Alive, Begin, Close, Done, Gate, Item, Part, Seen, log_of, outcomes_of, report_of, report_when_settled,
    started, until,
};

struct FailsHalfway;

#[workflow]
impl FailsHalfway {
    #[step]
    async fn fail(&self, begin: &Begin, items: &Emitter<Item>) -> Result<Part, StepError> {
        items.emit(Item(begin.0))?;
        tokio::task::yield_now().await;
        Err(StepError::tool("no answer"))
    }

    #[step]
    async fn end(&self, item: &Item, _part: &Part) -> Done {
        Done(item.0)
    }
}

// S23, S29
#[tokio::test]
async fn a_failed_execution_leaves_nothing_in_the_log_and_ends_the_run() {
    let report = report_of(FailsHalfway, 1).await;
    assert_eq!(log_of(&report), ["Begin"]);
    assert_eq!((report.status, report.quality), (RunStatus::Failed, Quality::Failed));
    let failed = ExecutionOutcome::Failed { class: ErrorClass::Tool, error: "no answer".into() };
    assert_eq!(outcomes_of(&report, "fail"), [&failed]);
}

// S29
#[tokio::test]
async fn the_error_of_a_failed_run_names_the_step_the_execution_and_the_class() {
    let error = FailsHalfway.run(Begin(1)).await.unwrap_err();
    assert_eq!(error.to_string(), "step `fail` failed (x1, tool): no answer");
}

struct GoesOn;

#[workflow]
impl GoesOn {
    #[step(on_error = "continue")]
    async fn fragile(&self, begin: &Begin) -> Result<Item, StepError> {
        Err(StepError::transient(format!("attempt {}", begin.0)))
    }

    #[step]
    async fn sibling(&self, begin: &Begin) -> Part {
        tokio::task::yield_now().await;
        Part(begin.0)
    }

    #[step(reruns)]
    async fn end(&self, part: &Part, item: Option<&Item>) -> Done {
        Done(part.0 + item.map_or(100, |item| item.0))
    }
}

// S29, S34
#[tokio::test]
async fn a_failure_that_may_continue_is_recorded_and_its_siblings_go_on() {
    let run = started(GoesOn, 1).await;
    assert_eq!(run.outcome().await.unwrap(), Done(101));
    let report = run.report().await.unwrap();
    assert_eq!((report.status, report.quality), (RunStatus::Completed, Quality::Degraded));
    assert!(matches!(outcomes_of(&report, "fragile")[..], [ExecutionOutcome::Failed { .. }]));
    assert_eq!(log_of(&report), ["Begin", "Part", "Done"]);
}

// S34
#[tokio::test]
async fn a_run_in_which_nothing_failed_is_clean() {
    let report = report_of(Plain, 1).await;
    assert_eq!((report.status, report.quality), (RunStatus::Completed, Quality::Clean));
}

struct Plain;

#[workflow]
impl Plain {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

struct Panicky(Alive);

#[workflow]
impl Panicky {
    #[step]
    async fn work(&self, begin: &Begin, items: &Emitter<Item>) -> Result<Done, StepError> {
        let _guard = self.0.guard();
        items.emit(Item(0))?;
        tokio::task::yield_now().await;
        assert!(begin.0 != 13, "unlucky");
        Ok(Done(begin.0))
    }
}

// S27
#[tokio::test]
async fn a_panic_fails_its_run_and_leaves_engine_and_other_runs_alone() {
    let alive = Alive::default();
    let engine = Engine::builder().workflow(Panicky(alive.clone())).build().unwrap();
    let before = engine.start::<Panicky>(Begin(1)).await.unwrap();
    let unlucky = engine.start::<Panicky>(Begin(13)).await.unwrap();
    let error = unlucky.outcome().await.unwrap_err();
    let RunError::StepFailed { step, source, .. } = &error else { panic!("{error}") };
    assert_eq!(&**step, "work");
    assert_eq!(source.to_string(), "it panicked: unlucky");
    assert_eq!(before.outcome().await.unwrap(), Done(1));
    let after = engine.start::<Panicky>(Begin(2)).await.unwrap();
    assert_eq!(after.outcome().await.unwrap(), Done(2));
    assert_eq!(alive.count(), 0);
}

// S23, S27
#[tokio::test]
async fn a_panic_leaves_nothing_in_the_log() {
    let report = report_of(Panicky(Alive::default()), 13).await;
    assert_eq!(log_of(&report), ["Begin"]);
}

struct PanicsAtOnce;

#[workflow]
impl PanicsAtOnce {
    #[step(on_error = "continue")]
    async fn here(&self, _begin: &Begin) -> Item {
        panic!("before the first await")
    }

    #[step(on_error = "continue", spawn)]
    async fn elsewhere(&self, _begin: &Begin) -> Item {
        panic!("in a task of its own")
    }

    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        Done(begin.0)
    }
}

// S27
#[tokio::test]
async fn a_panic_is_a_failure_like_any_other_wherever_it_happens() {
    let report = report_of(PanicsAtOnce, 1).await;
    assert_eq!((report.status, report.quality), (RunStatus::Completed, Quality::Degraded));
    for (step, text) in [("here", "before the first await"), ("elsewhere", "in a task of its own")] {
        let [ExecutionOutcome::Failed { error, .. }] = outcomes_of(&report, step)[..] else {
            panic!("{step} did not fail")
        };
        assert!(error.contains(text), "{error}");
    }
}

struct DropsSiblings {
    alive: Alive,
    other_runs: tokio::sync::Mutex<Option<oneshot::Receiver<()>>>,
}

#[workflow]
impl DropsSiblings {
    #[step]
    async fn sleep(&self, begin: &Begin) -> Item {
        let _guard = self.alive.guard();
        std::future::pending::<()>().await;
        Item(begin.0)
    }

    #[step]
    async fn fail(&self, _begin: &Begin) -> Result<Done, StepError> {
        if let Some(released) = self.other_runs.lock().await.take() {
            released.await?;
        }
        Err(StepError::permanent("no"))
    }
}

// S29
#[tokio::test]
async fn a_failure_that_ends_the_run_drops_what_still_runs() {
    let alive = Alive::default();
    let (release, released) = oneshot::channel();
    let other_runs = tokio::sync::Mutex::new(Some(released));
    let run = started(DropsSiblings { alive: alive.clone(), other_runs }, 1).await;
    until(|| alive.count() == 1).await;
    release.send(()).unwrap();
    let report = run.report().await.unwrap();
    assert_eq!(alive.count(), 0);
    assert_eq!(outcomes_of(&report, "sleep"), [&ExecutionOutcome::Dropped]);
}

struct WritesThenFails;

#[workflow]
impl WritesThenFails {
    #[step(on_error = "continue")]
    async fn write(&self, begin: &Begin, context: &RunContext) -> Result<(), StepError> {
        context.set("written", begin.0).await?;
        Err(StepError::permanent("after the write"))
    }

    #[step]
    async fn read(&self, _close: &Close, context: &RunContext) -> Result<Done, StepError> {
        Ok(Done(context.get("written").await?.unwrap_or(0)))
    }
}

// S26
#[tokio::test]
async fn a_context_write_takes_effect_at_once_and_outlives_a_failure() {
    let run = started(WritesThenFails, 5).await;
    run.settled().await;
    run.send(Close).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(5));
}

struct Atomic(Seen);

#[workflow]
impl Atomic {
    #[step]
    async fn batch(&self, begin: &Begin) -> (Item, Part) {
        (Item(begin.0), Part(begin.0))
    }

    #[step(reruns)]
    async fn look(&self, _item: &Item, part: Option<&Part>) {
        self.0.note(format!("{}", part.is_some()));
    }

    #[step]
    async fn never(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S12, S23
#[tokio::test]
async fn a_batch_enters_the_log_at_once_and_is_still_evaluated_event_by_event() {
    let seen = Seen::default();
    let run = started(Atomic(seen.clone()), 1).await;
    let report = report_when_settled(&run).await;
    assert_eq!(log_of(&report), ["Begin", "Item", "Part"]);
    let executions: Vec<_> = report.log.iter().map(|logged| logged.execution).collect();
    assert_eq!(executions[1], executions[2]);
    assert_eq!(seen.lines(), ["false", "true"]);
}

struct SharesItsError;

#[workflow]
impl SharesItsError {
    #[step]
    async fn fail(&self, _begin: &Begin) -> Result<Done, Arc<std::io::Error>> {
        Err(Arc::new(std::io::Error::other("disk")))
    }
}

// S29
#[tokio::test]
async fn an_outcome_can_be_asked_for_any_number_of_times() {
    let run = started(SharesItsError, 0).await;
    let [first, second] = [run.outcome().await, run.outcome().await];
    assert_eq!(first.unwrap_err().to_string(), second.unwrap_err().to_string());
}

/// Panics when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "on drop");
    }
}

struct Mined {
    gate: Gate,
    alive: Alive,
}

#[workflow]
impl Mined {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        let _guard = self.alive.guard();
        let _grenade = Grenade;
        self.gate.pass().await;
        Item(begin.0)
    }

    #[step]
    async fn second(&self, begin: &Begin) -> Part {
        let _guard = self.alive.guard();
        let _grenade = Grenade;
        self.gate.pass().await;
        Part(begin.0)
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(1)
    }
}

// S27, S28
#[tokio::test]
async fn executions_that_panic_when_they_are_dropped_do_not_harm_their_run() {
    let alive = Alive::default();
    let run = started(Mined { gate: Gate::closed(), alive: alive.clone() }, 1).await;
    until(|| alive.count() == 2).await;
    run.send(Close).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    assert_eq!(alive.count(), 0);
}
