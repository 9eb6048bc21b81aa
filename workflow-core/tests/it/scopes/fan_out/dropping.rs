//! Dropped branches: their executions are dropped with them, and nothing remains (S47, S49).

use std::time::Duration;

use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Quality};
use workflow_testkit::{Scenario, Start, explore};

use crate::fixtures::{Alive, Begin, Done, Item, Part, log_of, outcomes_of};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// Two branches. The first fans out again, and its item 1 fails.
struct Nested {
    /// Whether the other items are slow.
    slow: bool,
    alive: Alive,
}

#[workflow]
impl Nested {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn again(&self, outer: &Outer) -> FanOut<Item> {
        let items = if outer.0 == 0 { 3 } else { 0 };
        (0..items).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        let _alive = self.alive.guard();
        tokio::task::yield_now().await;
        if item.0 == 1 {
            return Err(StepError::permanent("broken"));
        }
        if self.slow {
            sleep(Duration::from_hours(1)).await;
        }
        Ok(Part(item.0))
    }

    #[step]
    async fn join(&self, outer: &Outer, _parts: &Gather<Part>) -> Joined {
        Joined(outer.0)
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        // The run continues; executions beside the failure are gone.
        sleep(Duration::from_mins(1)).await;
        assert_eq!(self.alive.count(), 0);
        let failures: Vec<String> =
            joined.failed().map(|branch| branch.failure().unwrap().to_string()).collect();
        assert_eq!(failures, ["step `work` failed: broken"]);
        Done(joined.ok().map(|joined| joined.0).sum())
    }
}

fn nested(slow: bool) -> Start<Nested> {
    Scenario::new(Nested { slow, alive: Alive::default() }).start(Begin(2))
}

// S49
#[tokio::test]
async fn a_nested_fan_out_that_fails_is_a_failure_of_the_branch_that_opened_it() {
    let run = nested(true).await;
    run.assert_output(&Done(1));
    run.assert_quality(Quality::Degraded);
    run.assert_executions("join", 1);
    let outcomes = outcomes_of(run.report(), "work");
    assert_eq!([outcomes[0], outcomes[2]], [&ExecutionOutcome::Dropped; 2]);
}

// S49
#[test]
fn events_before_the_drop_of_their_branch_stay_in_the_log_and_are_not_gathered() {
    let explored = explore(|| nested(false)).assert(|run| {
        run.assert_output(&Done(1));
        run.assert_executions("join", 1);
        let outcomes = outcomes_of(run.report(), "work");
        let ended = outcomes.iter().filter(|outcome| ***outcome == ExecutionOutcome::Succeeded).count();
        assert_eq!(log_of(run.report()).iter().filter(|event| **event == "Part").count(), ended);
    });
    assert!(explored.is_exhaustive());
}

/// Everything ends at once; the first item fails.
struct Immediate;

#[workflow]
impl Immediate {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn again(&self, _outer: &Outer) -> FanOut<Item> {
        (0..3).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 == 1 { Ok(Part(item.0)) } else { Err(StepError::permanent("broken")) }
    }

    #[step]
    async fn join(&self, _parts: &Gather<Part>) -> Joined {
        Joined(0)
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        Done(u32::try_from(joined.failed().count()).unwrap())
    }
}

// S34, S49
#[tokio::test]
async fn an_execution_that_returned_while_its_branch_was_dropped_counts_as_dropped_only() {
    let run = Scenario::new(Immediate).start(Begin(1)).await;
    run.assert_output(&Done(1));
    let outcomes = outcomes_of(run.report(), "work");
    assert!(matches!(outcomes[0], ExecutionOutcome::Failed { .. }));
    assert_eq!([outcomes[1], outcomes[2]], [&ExecutionOutcome::Dropped; 2]);
    assert!(!log_of(run.report()).contains(&"Part"));
    assert_eq!(run.report().branches.iter().filter(|branch| branch.failed).count(), 1);
}

/// The first inner branch waits for a precondition when the second one fails.
struct LateAnswer;

#[workflow]
impl LateAnswer {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn again(&self, _outer: &Outer) -> FanOut<Item> {
        (0..2).map(Item).collect()
    }

    #[step(precondition = allowed)]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[precondition]
    async fn allowed(&self, item: &Item) -> Result<bool, StepError> {
        if item.0 > 0 {
            return Ok(false);
        }
        sleep(Duration::from_secs(2)).await;
        Err(StepError::permanent("too late to matter"))
    }

    #[step]
    async fn fail(&self, item: &Item) -> Result<(), StepError> {
        if item.0 == 0 {
            return Ok(());
        }
        sleep(Duration::from_secs(1)).await;
        Err(StepError::permanent("broken"))
    }

    #[step]
    async fn join(&self, _parts: &Gather<Part>) -> Joined {
        Joined(0)
    }

    #[step(precondition = at_last)]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        Done(u32::try_from(joined.len()).unwrap())
    }

    #[precondition]
    async fn at_last(&self, _joined: &Gather<Joined>) -> Result<bool, StepError> {
        sleep(Duration::from_secs(3)).await;
        Err(StepError::permanent("the last word"))
    }
}

// S18, S49
#[tokio::test]
async fn a_precondition_that_fails_after_its_branch_was_dropped_does_not_matter() {
    let run = Scenario::new(LateAnswer).start(Begin(1)).await;
    let error = run.outcome().unwrap_err();
    let RunError::PreconditionFailed { precondition, source, .. } = error else { panic!("{error}") };
    assert_eq!((&**precondition, source.to_string().as_str()), ("at_last", "the last word"));
}
