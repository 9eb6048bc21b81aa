//! Runs whose attempts wait for named limits survive a crash at every append, and their journals replay in whichever
//! order the limits admitted them (S70, S39).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Limit, Retries, RetryPolicy};
use workflow_testkit::{Scenario, ScenarioOf, crash_everywhere, explore};

use crate::fixtures::{Begin, Done, Item, Part, survive};

const SECOND: Duration = Duration::from_secs(1);

/// Pays one item at a time; those of one customer one after the other, also over a retry.
struct Pays;

#[workflow]
impl Pays {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(
        limit = "bank",
        limit_key = customer,
        concurrency = 2,
        retry = RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, SECOND))
    )]
    async fn pay(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        // The first customer is slow, so others pass those that wait for it.
        tokio::time::sleep(SECOND * (4 - item.0.min(3))).await;
        if item.0 == 2 && info.attempt() == 1 {
            return Err(StepError::transient("busy"));
        }
        Ok(Part(item.0))
    }

    #[step]
    async fn end(&self, _: &Begin, parts: FixedList<Part, 4>) -> Done {
        Done(parts.iter().map(|part| part.0).sum())
    }

    fn customer(item: &Item) -> String {
        format!("customer {}", item.0 / 3)
    }
}

fn pays(limit: Limit) -> ScenarioOf<Pays> {
    Scenario::new(Pays).engine(|engine| engine.limit("bank", limit))
}

// S70, S39
survive! {
    one_at_a_time_for_each_customer: pays(Limit::concurrent(1)), 4;
    so_many_per_time: pays(Limit::at_rate(1, SECOND)), 4;
    both: pays(Limit::concurrent(2).rate(3, SECOND)), 4;
}

/// The order in which the items were paid.
fn order(parts: &[std::sync::Arc<Part>]) -> Vec<u32> {
    parts.iter().map(|part| part.0).collect()
}

// S70
#[tokio::test]
async fn a_journal_replays_where_a_later_execution_passed_earlier_ones() {
    let run = pays(Limit::concurrent(1)).start(Begin(4)).await;
    run.assert_output(&Done(6));
    // 1 and 2 wait for the first customer, and 3 is of the second: it passes them although two may run at a time.
    assert_eq!(order(&run.emitted::<Part>()), [3, 0, 1, 2]);
}

/// Fans out, and gathers what was paid.
struct Gathers;

#[workflow]
impl Gathers {
    #[step]
    async fn list(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(limit = "bank", concurrency = 2)]
    async fn pay(&self, item: &Item) -> Part {
        tokio::task::yield_now().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

fn gathers() -> ScenarioOf<Gathers> {
    Scenario::new(Gathers).engine(|engine| engine.limit("bank", Limit::concurrent(2)))
}

// S70
#[test]
fn every_order_ends_alike() {
    explore(|| gathers().start(Begin(4))).assert(|run| {
        run.assert_output(&Done(4));
    });
}

// S70, S39
#[tokio::test]
async fn branches_survive_too() {
    let scenario = |store| gathers().engine(|engine| engine.store(store)).start(Begin(3));
    crash_everywhere(scenario).await;
}

/// Pays, and pays back at an end; both at the bank.
struct Undoes;

#[workflow]
impl Undoes {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(limit = "bank", retry = RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(1, SECOND)))]
    async fn pay(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        tokio::task::yield_now().await;
        if info.attempt() == 1 { Err(StepError::tool("busy")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn end(&self, _: &Begin, parts: FixedList<Part, 2>) -> Result<Done, StepError> {
        Err(StepError::permanent(format!("{} are paid", parts.len())))
    }

    #[step(on_end, limit = "bank", limit_key = bank)]
    async fn pay_back(&self, _: &Part) {
        tokio::task::yield_now().await;
    }

    #[step(on_end, limit = "bank")]
    async fn close(&self, _: &Begin) {}

    async fn bank(&self, part: &Part) -> String {
        tokio::task::yield_now().await;
        part.0.to_string()
    }
}

// S70, S31, S39
#[tokio::test]
async fn clean_up_steps_with_limits_survive_too() {
    let scenario = |store| {
        let scenario = Scenario::new(Undoes).engine(|engine| engine.limit("bank", Limit::concurrent(1)));
        scenario.engine(|engine| engine.store(store)).start(Begin(2))
    };
    crash_everywhere(scenario).await;
}
