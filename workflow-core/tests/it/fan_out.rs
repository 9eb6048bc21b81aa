//! Map and gather, as a program sees them (S7, S44, S45, S48–S50).

use workflow_core::prelude::*;
use workflow_core::{Quality, RunStatus};

use crate::fixtures::{
    Alive, Begin, Done, Gate, Item, Part, Seen, everyone_else, outcomes_of, report_of, started, until,
};

struct Doubling(Seen);

#[workflow]
impl Doubling {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn double(&self, item: &Item) -> Part {
        // The first items take the longest.
        for _ in item.0..10 {
            tokio::task::yield_now().await;
        }
        Part(item.0 * 2)
    }

    #[step]
    async fn check(&self, item: &Item, part: &Part, begin: &Begin) {
        self.0.note(format!("{} {} of {}", item.0, part.0, begin.0));
    }

    #[step]
    async fn end(&self, parts: Gather<Part>, begin: &Begin) -> Done {
        assert_eq!(parts.len(), begin.0 as usize);
        let items: Vec<u32> = parts.ok().map(|part| part.0).collect();
        self.0.note(format!("{items:?}"));
        Done(items.iter().sum())
    }
}

// S44, S48
#[tokio::test]
async fn branches_are_gathered_once_in_the_order_of_their_items() {
    let seen = Seen::default();
    let report = report_of(Doubling(seen.clone()), 3).await;
    assert_eq!(report.executions("end"), 1);
    assert_eq!(seen.lines().last().unwrap(), "[2, 4, 6]");
}

// S45
#[tokio::test]
async fn a_step_in_a_branch_pairs_what_is_of_that_branch() {
    let seen = Seen::default();
    report_of(Doubling(seen.clone()), 3).await;
    let mut pairs = seen.lines();
    pairs.pop();
    pairs.sort();
    assert_eq!(pairs, ["1 2 of 3", "2 4 of 3", "3 6 of 3"]);
}

// S48
#[tokio::test]
async fn an_empty_fan_out_is_gathered_too() {
    assert_eq!(Doubling(Seen::default()).run(Begin(0)).await.unwrap(), Done(0));
}

/// What a branch's failure means.
#[derive(Clone, Copy)]
enum Policy {
    FailAll,
    ContinueOthers,
    WaitAll,
}

struct Failing {
    policy: Policy,
    alive: Alive,
}

#[workflow]
impl Failing {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items: FanOut<Item> = (1..=begin.0).map(Item).collect();
        match self.policy {
            Policy::FailAll => items.fail_all(),
            Policy::ContinueOthers => items.continue_others(),
            Policy::WaitAll => items.wait_all(),
        }
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        let _guard = self.alive.guard();
        for _ in 0..item.0 {
            tokio::task::yield_now().await;
        }
        if item.0.is_multiple_of(2) {
            Err(StepError::tool(format!("item {}", item.0)))
        } else {
            Ok(Part(item.0))
        }
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        let failed: Vec<&Item> = parts.failed().filter_map(|branch| branch.item()).collect();
        assert!(failed.iter().all(|item| item.0.is_multiple_of(2)));
        Done(parts.ok().map(|part| part.0).sum::<u32>() * 100 + u32::try_from(failed.len()).unwrap())
    }
}

fn failing(policy: Policy) -> (Alive, Failing) {
    let alive = Alive::default();
    (alive.clone(), Failing { policy, alive })
}

// S49
#[tokio::test]
async fn by_default_the_first_failure_drops_the_other_branches_and_fails_the_run() {
    let (alive, workflow) = failing(Policy::FailAll);
    let run = started(workflow, 5).await;
    let error = run.outcome().await.unwrap_err();
    assert!(matches!(&error, RunError::StepFailed { step, .. } if &**step == "work"), "{error}");
    assert_eq!(alive.count(), 0);
    assert_eq!(run.status(), RunStatus::Failed);
}

// S49
#[tokio::test]
async fn failures_may_be_handed_to_the_gather_and_degrade_the_run() {
    let (_, workflow) = failing(Policy::ContinueOthers);
    let run = started(workflow, 5).await;
    assert_eq!(run.outcome().await.unwrap(), Done(902));
    assert_eq!(run.report().await.unwrap().quality, Quality::Degraded);
}

// S49
#[tokio::test]
async fn a_fan_out_that_waits_for_all_fails_with_every_error() {
    let (_, workflow) = failing(Policy::WaitAll);
    let run = started(workflow, 5).await;
    let error = run.outcome().await.unwrap_err();
    let RunError::BranchesFailed { failures } = &error else { panic!("{error}") };
    let texts: Vec<String> = failures.iter().map(|failure| failure.error().to_string()).collect();
    assert_eq!(texts, ["item 2", "item 4"]);
    assert_eq!(outcomes_of(&run.report().await.unwrap(), "work").len(), 5);
}

struct Bounded {
    gate: Gate,
    seen: Seen,
}

#[workflow]
impl Bounded {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect::<FanOut<_>>().concurrency(2)
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        self.seen.note(item.0.to_string());
        self.gate.pass().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: Gather<Part>) -> Done {
        Done(u32::try_from(parts.branches().len()).unwrap())
    }
}

// S50
#[tokio::test]
async fn no_more_branches_are_open_than_a_fan_out_says() {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let run = started(Bounded { gate: gate.clone(), seen: seen.clone() }, 4).await;
    until(|| seen.lines().len() == 2).await;
    everyone_else().await;
    assert_eq!(seen.lines(), ["1", "2"]);
    gate.let_pass(4);
    assert_eq!(run.outcome().await.unwrap(), Done(4));
    assert_eq!(seen.lines(), ["1", "2", "3", "4"]);
}
