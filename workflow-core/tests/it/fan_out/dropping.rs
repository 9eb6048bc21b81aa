//! Dropped branches: what runs in them is dropped with them, and nothing of them is left (S47, S49).

use std::sync::Arc;
use std::sync::Mutex;

use workflow_core::prelude::*;
use workflow_core::{
    EngineBuilder, ExecutionOutcome, Observation, Observed, Observer, Quality, RunHandle, RunStatus,
};

use super::Gates;
use crate::fixtures::{Alive, Begin, Done, Gate, Item, Part, everyone_else, log_of, outcomes_of, started};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// Two branches; the first fans out again, and there the item 1 fails when its gate opens.
struct Nested {
    gates: Gates,
    other: Gate,
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
        self.gates.pass(item.0).await;
        if item.0 == 1 { Err(StepError::permanent("broken")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn join(&self, outer: &Outer, _parts: &Gather<Part>) -> Joined {
        self.other.pass().await;
        Joined(outer.0)
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        let failures: Vec<String> =
            joined.failed().map(|branch| branch.failure().unwrap().to_string()).collect();
        assert_eq!(failures, ["step `work` failed: broken"]);
        Done(joined.ok().map(|joined| joined.0).sum())
    }
}

async fn nested() -> (RunHandle<Nested>, Gates, Gate, Alive) {
    let (gates, other, alive) = (Gates::closed(3), Gate::closed(), Alive::default());
    let workflow = Nested { gates: gates.clone(), other: other.clone(), alive: alive.clone() };
    (started(workflow, 2).await, gates, other, alive)
}

// S49
#[tokio::test]
async fn a_nested_fan_out_that_fails_is_a_failure_of_the_branch_that_opened_it() {
    let (run, gates, other, alive) = nested().await;
    everyone_else().await;
    assert_eq!(alive.count(), 3);
    gates.open(1);
    everyone_else().await;
    // The run goes on; what ran beside the failure is gone.
    assert_eq!((alive.count(), run.status()), (0, RunStatus::Running));
    other.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    let report = run.report().await.unwrap();
    assert_eq!(report.quality, Quality::Degraded);
    assert_eq!(report.executions("join"), 1);
    let outcomes = outcomes_of(&report, "work");
    assert_eq!([outcomes[0], outcomes[2]], [&ExecutionOutcome::Dropped; 2]);
}

// S49
#[tokio::test]
async fn what_ended_before_its_branch_was_dropped_stays_in_the_log_and_is_not_gathered() {
    let (run, gates, other, _) = nested().await;
    for place in [0, 1, 2] {
        gates.open(place);
        everyone_else().await;
    }
    other.let_pass(1);
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    let report = run.report().await.unwrap();
    assert_eq!(log_of(&report).iter().filter(|event| **event == "Part").count(), 1);
    assert_eq!(report.executions("join"), 1);
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

#[derive(Debug, Clone, Default)]
struct Ends(Arc<Mutex<Vec<&'static str>>>);

impl Observer for Ends {
    fn observe(&self, observation: &Observation) {
        let end = match &observation.what {
            Observed::ExecutionSucceeded { step, .. } if &**step == "work" => "succeeded",
            Observed::ExecutionFailed { step, .. } if &**step == "work" => "failed",
            Observed::ExecutionDropped { step, .. } if &**step == "work" => "dropped",
            _ => return,
        };
        self.0.lock().unwrap().push(end);
    }
}

// S34, S49
#[tokio::test]
async fn an_execution_that_returned_while_its_branch_was_dropped_counts_as_dropped_only() {
    let ends = Ends::default();
    let engine: EngineBuilder = Engine::builder().workflow(Immediate).observer(ends.clone());
    let run = engine.build().unwrap().start::<Immediate>(Begin(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    let report = run.report().await.unwrap();
    let outcomes = outcomes_of(&report, "work");
    assert!(matches!(outcomes[0], ExecutionOutcome::Failed { .. }));
    assert_eq!([outcomes[1], outcomes[2]], [&ExecutionOutcome::Dropped; 2]);
    assert!(!log_of(&report).contains(&"Part"));
    assert_eq!(report.branches.iter().filter(|branch| branch.failed).count(), 1);
}

/// The first inner branch waits for a precondition when the second one fails.
struct LateAnswer {
    asked: Gate,
    failing: Gate,
    last: Gate,
}

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
        self.asked.pass().await;
        Err(StepError::permanent("too late to matter"))
    }

    #[step]
    async fn fail(&self, item: &Item) -> Result<(), StepError> {
        if item.0 == 0 {
            return Ok(());
        }
        self.failing.pass().await;
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
        self.last.pass().await;
        Err(StepError::permanent("the last word"))
    }
}

// S18, S49
#[tokio::test]
async fn a_precondition_that_fails_after_its_branch_was_dropped_does_not_matter() {
    let (asked, failing, last) = (Gate::closed(), Gate::closed(), Gate::closed());
    let workflow = LateAnswer { asked: asked.clone(), failing: failing.clone(), last: last.clone() };
    let run = started(workflow, 1).await;
    everyone_else().await;
    failing.let_pass(1);
    everyone_else().await;
    asked.let_pass(1);
    everyone_else().await;
    assert_eq!(run.status(), RunStatus::Running);
    last.let_pass(1);
    let error = run.outcome().await.unwrap_err();
    let RunError::PreconditionFailed { precondition, source, .. } = error else { panic!("{error}") };
    assert_eq!((&*precondition, source.to_string().as_str()), ("at_last", "the last word"));
}
