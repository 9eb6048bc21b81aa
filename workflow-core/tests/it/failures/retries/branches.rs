//! Retries in the branches of a fan-out (S47, S49).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Quality};
use workflow_core::{ErrorClass, FanOutPolicy};
use workflow_testkit::{Scenario, ScenarioOf, explore};

use crate::fixtures::{Alive, Begin, Done, Item, Part, outcomes_of};

const POLICIES: [FanOutPolicy; 3] =
    [FanOutPolicy::FailAll, FanOutPolicy::ContinueOthers, FanOutPolicy::WaitAll];

/// Works on items; one fails this often with this class.
struct Branches {
    policy: FanOutPolicy,
    fails: u32,
    class: ErrorClass,
    alive: Alive,
}

impl Branches {
    fn failing(policy: FanOutPolicy, fails: u32, class: ErrorClass) -> ScenarioOf<Self> {
        Scenario::new(Self { policy, fails, class, alive: Alive::default() })
    }
}

#[workflow]
impl Branches {
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
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        let _guard = self.alive.guard();
        tokio::task::yield_now().await;
        if item.0 == 1 && info.attempt() <= self.fails {
            return Err(StepError::new(self.class, "not yet"));
        }
        Ok(Part(item.0))
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S47
#[tokio::test]
async fn a_branch_is_not_settled_while_it_waits_for_a_retry() {
    for policy in POLICIES {
        let run = Branches::failing(policy, 2, ErrorClass::Transient).start(Begin(4)).await;
        run.assert_output(&Done(6));
        run.assert_quality(Quality::Clean);
        assert_eq!(run.elapsed(), Duration::from_secs(40));
    }
}

// S49
#[tokio::test]
async fn the_policy_of_the_fan_out_sees_a_failure_once_the_retries_are_used_up() {
    let whole = Duration::from_secs(130);
    let run = Branches::failing(FanOutPolicy::ContinueOthers, 9, ErrorClass::Transient).start(Begin(4)).await;
    run.assert_output(&Done(5));
    run.assert_quality(Quality::Degraded);
    assert_eq!(run.elapsed(), whole);
    for policy in [FanOutPolicy::FailAll, FanOutPolicy::WaitAll] {
        let run = Branches::failing(policy, 9, ErrorClass::Transient).start(Begin(4)).await;
        assert!(run.outcome().is_err());
        assert_eq!(run.elapsed(), whole);
    }
}

/// One branch waits for a retry; the other finally fails.
struct Torn(Alive);

#[workflow]
impl Torn {
    #[step]
    async fn split(&self, _begin: &Begin) -> FanOut<Item> {
        [Item(0), Item(1)].into_iter().collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        let _guard = self.0.guard();
        if item.0 == 0 {
            return Err(StepError::transient("busy"));
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        Err(StepError::permanent("never"))
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S49
#[tokio::test]
async fn a_branch_that_is_dropped_waits_for_no_retry_any_more() {
    let alive = Alive::default();
    let run = Scenario::new(Torn(alive.clone())).start(Begin(1)).await;
    let Err(RunError::StepFailed { attempts: 1, source, .. }) = run.outcome() else {
        panic!("{}", run.transcript())
    };
    assert_eq!(source.to_string(), "never");
    assert_eq!(*outcomes_of(run.report(), "work")[0], ExecutionOutcome::Dropped);
    assert_eq!(run.report().trace[1].attempts.len(), 1);
    assert_eq!((run.elapsed(), alive.count()), (Duration::from_secs(5), 0));
}

/// Every item fails once.
struct Crowd(FanOutPolicy);

#[workflow]
impl Crowd {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        let items: FanOut<Item> = (1..=begin.0).map(Item).collect();
        if self.0 == FanOutPolicy::WaitAll { items.wait_all() } else { items.continue_others() }
    }

    #[step]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        if info.attempt() == 1 { Err(StepError::tool("no")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().fold(0, |digits, part| digits * 10 + part.0))
    }
}

// S48
#[test]
fn several_that_are_retried_at_once_end_alike_in_every_order() {
    for policy in [FanOutPolicy::ContinueOthers, FanOutPolicy::WaitAll] {
        explore(|| Scenario::new(Crowd(policy)).start(Begin(3))).assert(|run| {
            run.assert_output(&Done(123));
            run.assert_executions("work", 3);
            let attempts = run.report().trace.iter().map(|trace| trace.attempts.len()).sum::<usize>();
            assert_eq!(attempts, 3);
        });
    }
}
