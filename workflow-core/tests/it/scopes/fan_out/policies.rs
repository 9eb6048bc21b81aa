//! Policies for failed branches: `fail_all`, `continue_others` and `wait_all`, each with failures first, in the middle,
//! last and everywhere (S49).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Quality};
use workflow_core::{ErrorClass, FanOutPolicy};
use workflow_testkit::{Scenario, Start, TestRun, explore};

use super::{Told, told};
use crate::fixtures::{Alive, Begin, Done, Item, Part, outcomes_of};

const ITEMS: u32 = 5;

/// Which of the items fail.
const CASES: [&[u32]; 4] = [&[0], &[2], &[4], &[0, 1, 2, 3, 4]];

struct Fragile {
    policy: FanOutPolicy,
    fail: &'static [u32],
}

#[workflow]
impl Fragile {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items: FanOut<Item> = (0..begin.0).map(Item).collect();
        match self.policy {
            FanOutPolicy::ContinueOthers => items.continue_others(),
            FanOutPolicy::WaitAll => items.wait_all(),
            _ => items.fail_all(),
        }
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        if self.fail.contains(&item.0) {
            return Err(StepError::rejected(format!("item {} is broken", item.0)));
        }
        Ok(Part(item.0))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Told {
        told(parts.branches().map(|branch| {
            let item = branch.item::<Item>().unwrap().0;
            let parts: Vec<u32> = branch.events().map(|part| part.0).collect();
            let failure = branch.failure().map(|failure| format!(" {} {}", failure.step(), failure.error()));
            format!("{item} {parts:?}{}", failure.unwrap_or_default())
        }))
    }
}

fn fragile(policy: FanOutPolicy, fail: &'static [u32]) -> Start<Fragile> {
    Scenario::new(Fragile { policy, fail }).start(Begin(ITEMS))
}

/// Lets the branches of every case end in every order.
fn explore_cases(policy: FanOutPolicy, holds: impl Fn(&'static [u32], &TestRun<Fragile>)) {
    for fail in CASES {
        let explored = explore(|| fragile(policy, fail)).assert(|run| holds(fail, run));
        assert!(explored.is_exhaustive());
    }
}

// S49
#[test]
fn fail_all_drops_the_other_branches_and_fails_the_run_with_the_first_failure() {
    explore_cases(FanOutPolicy::FailAll, |_, run| {
        let Err(RunError::StepFailed { step, class, source, .. }) = run.outcome() else {
            panic!("it went well")
        };
        assert_eq!((&**step, *class), ("work", ErrorClass::Rejected));
        let outcomes = outcomes_of(run.report(), "work");
        let is_failed = |item: &usize| matches!(outcomes[*item], ExecutionOutcome::Failed { .. });
        let failed: Vec<usize> = (0..5).filter(is_failed).collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(source.to_string(), format!("item {} is broken", failed[0]));
        let those = |what| outcomes.iter().filter(|outcome| ***outcome == what).count();
        let (succeeded, dropped) = (those(ExecutionOutcome::Succeeded), those(ExecutionOutcome::Dropped));
        assert_eq!(succeeded + 1 + dropped, 5);
        run.assert_emitted::<Part>(succeeded);
        run.assert_quality(Quality::Failed);
        run.assert_executions("end", 0);
    });
}

// S49
#[tokio::test]
async fn a_result_simultaneous_with_the_failure_is_dropped_with_its_branch() {
    let run = fragile(FanOutPolicy::FailAll, &[1, 3]).await;
    let outcomes = outcomes_of(run.report(), "work");
    assert_eq!(outcomes[0], &ExecutionOutcome::Succeeded);
    assert!(matches!(outcomes[1], ExecutionOutcome::Failed { .. }));
    assert_eq!(outcomes[2..], [&ExecutionOutcome::Dropped; 3]);
    assert!(run.report().violations.is_empty());
}

// S49
#[tokio::test]
async fn executions_in_other_branches_are_dropped_with_them() {
    let alive = Alive::default();
    let guards = alive.clone();
    let work = move |item: Item| {
        let guard = guards.guard();
        async move {
            tokio::time::sleep(Duration::from_secs(item.0.into())).await;
            drop(guard);
            if item.0 == 1 { Err(StepError::rejected("broken")) } else { Ok(Part(item.0)) }
        }
    };
    let fragile = Fragile { policy: FanOutPolicy::FailAll, fail: &[] };
    let run = Scenario::new(fragile).replace("work", work).start(Begin(ITEMS)).await;
    assert_eq!(outcomes_of(run.report(), "work")[2..], [&ExecutionOutcome::Dropped; 3]);
    assert_eq!(alive.count(), 0);
}

// S49
#[test]
fn continue_others_hands_each_failure_to_the_gather_and_degrades_the_run() {
    explore_cases(FanOutPolicy::ContinueOthers, |fail, run| {
        run.assert_quality(Quality::Degraded);
        let line = |item| {
            if fail.contains(&item) {
                format!("{item} [] work item {item} is broken")
            } else {
                format!("{item} [{item}]")
            }
        };
        run.assert_output(&told((0..ITEMS).map(line)));
    });
}

// S49
#[test]
fn wait_all_runs_every_branch_to_its_end_and_then_fails_with_every_error() {
    explore_cases(FanOutPolicy::WaitAll, |fail, run| {
        let errors: Vec<String> = match run.outcome().unwrap_err() {
            RunError::StepFailed { source, .. } => vec![source.to_string()],
            RunError::BranchesFailed { failures } => {
                assert!(failures.iter().all(|failure| failure.step() == "work"));
                failures.iter().map(|failure| failure.error().to_string()).collect()
            }
            error => panic!("{error}"),
        };
        let expected: Vec<String> = fail.iter().map(|item| format!("item {item} is broken")).collect();
        assert_eq!(errors, expected);
        assert!(!outcomes_of(run.report(), "work").contains(&&ExecutionOutcome::Dropped));
        run.assert_executions("end", 0);
        run.assert_emitted::<Part>(5 - fail.len());
    });
}

// S49
#[tokio::test]
async fn the_error_of_wait_all_prints_every_failure() {
    let run = fragile(FanOutPolicy::WaitAll, &[1, 3]).await;
    let error = run.outcome().unwrap_err().to_string();
    assert!(error.contains("item 1 is broken") && error.contains("item 3 is broken"), "{error}");
}

// S49
#[tokio::test]
async fn a_fan_out_without_failures_is_gathered_under_any_policy() {
    for policy in [FanOutPolicy::FailAll, FanOutPolicy::ContinueOthers, FanOutPolicy::WaitAll] {
        let run = fragile(policy, &[]).await;
        run.assert_quality(Quality::Clean);
        run.assert_executions("end", 1);
    }
}

struct Panicking;

#[workflow]
impl Panicking {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        assert_ne!(item.0, 1, "one is too many");
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        let failure = parts.branch_of(&Item(1)).unwrap().failure().unwrap();
        assert!(failure.to_string().contains("one is too many"), "{failure}");
        Done(u32::try_from(parts.failed().count()).unwrap())
    }
}

// S27, S49
#[tokio::test]
async fn a_panic_in_a_branch_is_a_failure_of_that_branch() {
    Scenario::new(Panicking).start(Begin(3)).await.assert_output(&Done(1));
}

struct Tolerant;

#[workflow]
impl Tolerant {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(on_error = "continue")]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 == 1 { Err(StepError::permanent("no")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        assert_eq!(parts.failed().count(), 0);
        Done(u32::try_from(parts.ok().count()).unwrap())
    }
}

// S29, S49
#[tokio::test]
async fn a_step_with_tolerated_errors_does_not_fail_its_branch() {
    let run = Scenario::new(Tolerant).start(Begin(3)).await;
    run.assert_output(&Done(2));
    run.assert_quality(Quality::Degraded);
}

/// A branch in which one step fails and another continues.
struct TwoSteps;

#[workflow]
impl TwoSteps {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn fails(&self, item: &Item) -> Result<(), StepError> {
        Err(StepError::permanent(format!("no {}", item.0)))
    }

    #[step]
    async fn goes_on(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        // The gather has the events of failed branches, but not among the successful ones.
        assert!(parts.branches().all(|branch| branch.event().is_some() && branch.failure().is_some()));
        assert_eq!((parts.ok().count(), parts.failed().count()), (0, 2));
        Done(0)
    }
}

// S47, S49
#[test]
fn a_failed_branch_settles_when_its_other_steps_have_ended() {
    let explored = explore(|| Scenario::new(TwoSteps).start(Begin(2))).assert(|run| {
        run.assert_output(&Done(0));
        run.assert_executions("end", 1);
    });
    assert!(explored.is_exhaustive());
}
