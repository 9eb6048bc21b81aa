//! `max_executions` (S19).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_testkit::{Scenario, ScenarioOf, explore};

use crate::fixtures::{Alpha, Begin, Beta, Close, Done, Item, Saw, Seen, saw};

struct AtMostTwo;

#[workflow]
impl AtMostTwo {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(max_executions = 2)]
    async fn work(&self, item: &Item) -> Saw {
        Saw(item.0.to_string())
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S19
#[test]
fn triggers_that_coincide_do_not_exceed_the_limit() {
    explore(|| Scenario::new(AtMostTwo).start(Begin(5))).every_order().assert(|run| {
        run.assert_executions("work", 2);
        let mut saw = saw(run);
        saw.sort();
        assert_eq!(saw, ["1", "2"]);
    });
}

struct Paired;

#[workflow]
impl Paired {
    #[step(max_executions = 2)]
    async fn pair(&self, alphas: &FixedList<Alpha, 2>, beta: &Beta) -> Saw {
        Saw(format!("{} {}", alphas.len(), beta.0))
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S19, S20
#[tokio::test]
async fn a_duplicate_does_not_use_the_limit_up() {
    let scenario = (1..=6).fold(Scenario::new(Paired).send(Beta(1)), |scenario, n| scenario.send(Alpha(n)));
    let run = scenario.send(Beta(2)).send(Beta(3)).start(Begin(0)).await;
    assert_eq!(saw(&run), ["2 1", "2 2"]);
    run.assert_executions("pair", 2);
}

struct Refused;

#[workflow]
impl Refused {
    #[step(max_executions = 1, precondition = even)]
    async fn work(&self, alpha: &Alpha) -> Saw {
        Saw(alpha.0.to_string())
    }

    #[precondition]
    fn even(alpha: &Alpha) -> bool {
        alpha.0.is_multiple_of(2)
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S18, S19
#[tokio::test]
async fn a_precondition_that_says_no_does_not_use_the_limit_up() {
    let scenario = Scenario::new(Refused).send(Alpha(1)).send(Alpha(3)).send(Alpha(4)).send(Alpha(6));
    assert_eq!(saw(&scenario.start(Begin(0)).await), ["4"]);
}

struct AskedTogether(Seen);

#[workflow]
impl AskedTogether {
    #[step(max_executions = 1, precondition = allowed)]
    async fn work(&self, alpha: &Alpha) -> Saw {
        Saw(alpha.0.to_string())
    }

    #[precondition]
    async fn allowed(&self, alpha: &Alpha) -> bool {
        self.0.note(format!("asked {}", alpha.0));
        tokio::time::sleep(Duration::from_secs(1)).await;
        true
    }

    #[step]
    async fn end(&self, _begin: &Begin, _close: &Close) -> Done {
        Done(0)
    }
}

// S18, S19
#[tokio::test]
async fn preconditions_that_are_asked_at_the_same_time_do_not_exceed_the_limit() {
    let seen = Seen::default();
    let at_once = |scenario, n| ScenarioOf::send_after(scenario, Duration::ZERO, Alpha(n));
    let run = (1..=3).fold(Scenario::new(AskedTogether(seen.clone())), at_once).start(Begin(0)).await;
    run.assert_executions("work", 1);
    assert_eq!(saw(&run), ["1"]);
    assert_eq!(seen.lines(), ["asked 1", "asked 2", "asked 3"]);
}

struct Once;

#[workflow]
impl Once {
    #[step(max_executions = 1)]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

// S19
#[tokio::test]
async fn the_limit_counts_per_run() {
    let engine = Engine::builder().workflow(Once).build().unwrap();
    for number in 1..=3 {
        let run = engine.start::<Once>(Begin(number)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(number));
    }
}

struct FailsOnce;

#[workflow]
impl FailsOnce {
    #[step(max_executions = 1, on_error = "continue")]
    async fn fragile(&self, item: &Item) -> Result<Done, StepError> {
        if item.0 == 1 { Err(StepError::permanent("no")) } else { Ok(Done(item.0)) }
    }

    #[step]
    async fn make(&self, _begin: &Begin) -> (Item, Item) {
        (Item(1), Item(2))
    }
}

// S19
#[tokio::test]
async fn a_failed_execution_counts() {
    let run = Scenario::new(FailsOnce).start(Begin(0)).await;
    run.assert_executions("fragile", 1);
    assert!(run.stall().is_some());
}
