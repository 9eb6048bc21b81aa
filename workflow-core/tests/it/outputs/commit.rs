//! What executions leave behind, and what failed ones do not (S23, S26, S27, S29).

use std::sync::Arc;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_testkit::Scenario;

use crate::fixtures::{Alive, Begin, Close, Done, Item, Part, Saw, saw, started};

struct FailsHalfway;

#[workflow]
impl FailsHalfway {
    #[step]
    async fn fail(&self, begin: &Begin, items: &Emitter<Item>) -> Result<Part, StepError> {
        items.emit(Item(begin.0))?;
        tokio::task::yield_now().await;
        Err(StepError::rejected("no answer"))
    }

    #[step]
    async fn end(&self, item: &Item, _part: &Part) -> Done {
        Done(item.0)
    }
}

// S23, S29
#[tokio::test]
async fn a_failed_execution_leaves_nothing_in_the_log_and_ends_the_run() {
    let run = Scenario::new(FailsHalfway).start(Begin(1)).await;
    assert_eq!(
        run.transcript(),
        "#1 Begin from outside: 1\nx1 fail by #1: failed (rejected): no answer\nfailed by x1\n"
    );
    run.assert_quality(Quality::Failed);
}

// S29
#[tokio::test]
async fn the_error_of_a_failed_run_names_the_step_the_execution_and_the_class() {
    let error = FailsHalfway.run(Begin(1)).await.unwrap_err();
    assert_eq!(error.to_string(), "step `fail` failed (x1, rejected): no answer");
}

struct GoesOn;

#[workflow]
impl GoesOn {
    #[step(on_error = "continue")]
    async fn fragile(&self, begin: &Begin) -> Result<Item, StepError> {
        Err(StepError::permanent(format!("attempt {}", begin.0)))
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
async fn a_tolerated_failure_is_recorded_and_its_siblings_continue() {
    let run = Scenario::new(GoesOn).start(Begin(1)).await;
    run.assert_output(&Done(101));
    assert_eq!(
        run.transcript(),
        "\
#1 Begin from outside: 1
x1 fragile by #1 starts
x2 sibling by #1 starts
x1 fragile: failed (permanent): attempt 1
x2 sibling: succeeded
#2 Part of x2: 1
x3 end by #2: succeeded
#3 Done of x3: 101
completed with #3, degraded
"
    );
}

// S34
#[tokio::test]
async fn a_run_in_which_nothing_failed_is_clean() {
    let run = Scenario::new(Plain).start(Begin(1)).await;
    run.assert_output(&Done(1));
    run.assert_quality(Quality::Clean);
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
    let run = Scenario::new(Panicky(Alive::default())).start(Begin(13)).await;
    let expected =
        "#1 Begin from outside: 13\nx1 work by #1: failed (permanent): it panicked: unlucky\nfailed by x1\n";
    assert_eq!(run.transcript(), expected);
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
        tokio::time::sleep(Duration::from_secs(1)).await;
        Done(begin.0)
    }
}

// S27
#[tokio::test]
async fn a_panic_is_a_failure_like_any_other_wherever_it_happens() {
    let run = Scenario::new(PanicsAtOnce).start(Begin(1)).await;
    assert_eq!(
        run.transcript(),
        "\
#1 Begin from outside: 1
x1 here by #1 starts
x2 elsewhere by #1 starts
x3 end by #1 starts
x1 here: failed (permanent): it panicked: before the first await
x2 elsewhere: failed (permanent): it panicked: in a task of its own
x3 end: succeeded
#2 Done of x3: 1
completed with #2, degraded
"
    );
}

struct DropsSiblings(Alive);

#[workflow]
impl DropsSiblings {
    #[step]
    async fn sleep(&self, begin: &Begin) -> Item {
        let _guard = self.0.guard();
        std::future::pending::<()>().await;
        Item(begin.0)
    }

    #[step]
    async fn fail(&self, _begin: &Begin) -> Result<Done, StepError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err(StepError::permanent(format!("{} asleep", self.0.count())))
    }
}

// S29
#[tokio::test]
async fn a_failure_that_ends_the_run_drops_what_still_runs() {
    let alive = Alive::default();
    let run = Scenario::new(DropsSiblings(alive.clone())).start(Begin(1)).await;
    assert_eq!(alive.count(), 0);
    assert_eq!(
        run.transcript(),
        "\
#1 Begin from outside: 1
x1 sleep by #1 starts
x2 fail by #1: failed (permanent): 1 asleep
x1 sleep: dropped
failed by x2
"
    );
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
    Scenario::new(WritesThenFails).send(Close).start(Begin(5)).await.assert_output(&Done(5));
}

struct Atomic;

#[workflow]
impl Atomic {
    #[step]
    async fn batch(&self, begin: &Begin) -> (Item, Part) {
        (Item(begin.0), Part(begin.0))
    }

    #[step(reruns)]
    async fn look(&self, _item: &Item, part: Option<&Part>) -> Saw {
        Saw(format!("{}", part.is_some()))
    }

    #[step]
    async fn never(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S12, S23
#[tokio::test]
async fn a_batch_enters_the_log_at_once_and_is_still_evaluated_event_by_event() {
    let run = Scenario::new(Atomic).send(Close).start(Begin(1)).await;
    assert_eq!(saw(&run), ["false", "true"]);
    assert_eq!(
        run.transcript(),
        "\
#1 Begin from outside: 1
x1 batch by #1: succeeded
#2 Item of x1: 1
#3 Part of x1: 1
x2 look by #2 starts
x3 look by #3 with #2 starts
x2 look: succeeded
#4 Saw of x2: \"false\"
x3 look: succeeded
#5 Saw of x3: \"true\"
waits
#6 Close from outside
x4 never by #6: succeeded
#7 Done of x4: 0
completed with #7
"
    );
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

struct Mined(Alive);

#[workflow]
impl Mined {
    #[step]
    async fn first(&self, _begin: &Begin) -> Item {
        let (_guard, _grenade) = (self.0.guard(), Grenade);
        std::future::pending().await
    }

    #[step]
    async fn second(&self, _begin: &Begin) -> Part {
        let (_guard, _grenade) = (self.0.guard(), Grenade);
        std::future::pending().await
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(u32::try_from(self.0.count()).unwrap())
    }
}

// S27, S28
#[tokio::test]
async fn executions_that_panic_when_they_are_dropped_do_not_harm_their_run() {
    let alive = Alive::default();
    let scenario = Scenario::new(Mined(alive.clone())).send_after(Duration::from_secs(1), Close);
    scenario.start(Begin(1)).await.assert_output(&Done(2));
    assert_eq!(alive.count(), 0);
}
