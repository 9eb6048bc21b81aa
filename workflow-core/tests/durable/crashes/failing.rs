//! Failures survive crashes: attempts with delays, compactions, caught and tolerated failures, and ends (S28–S31, S35,
//! S36).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Retries as Times, RetryPolicy, StepFailed};
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Item, Note, Part, survive};
use crate::shapes::Retries;

/// The failure is recorded, and the other steps continue.
struct LetsGo;

#[workflow]
impl LetsGo {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(on_error = "continue")]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 == 1 { Err(StepError::permanent("one")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn end(&self, parts: &FixedList<Part, 2>) -> Done {
        Done(parts.iter().map(|part| part.0).sum())
    }
}

/// A handler recovers from the failure, and fails too at first.
struct Recovers;

#[workflow]
impl Recovers {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(retry = RetryPolicy::none())]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        tokio::time::sleep(Duration::from_secs(u64::from(item.0))).await;
        if item.0 > 0 { Err(StepError::transient(format!("no {}", item.0))) } else { Ok(Part(0)) }
    }

    #[step]
    async fn recover(&self, failed: &StepFailed, info: &RunInfo) -> Result<Part, StepError> {
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(Part(10 + failed.attempts)) }
    }

    #[step]
    async fn end(&self, parts: &FixedList<Part, 3>) -> Done {
        Done(parts.iter().map(|part| part.0).sum())
    }
}

/// Compacts its long input before each retry.
struct Shortens;

fn often() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::ContextLimit, Times::fixed(4, Duration::from_secs(3)))
}

#[workflow]
impl Shortens {
    #[step(compact = shorten, retry = often())]
    async fn talk(&self, begin: &Begin, run: RunContext) -> Result<Item, StepError> {
        let said: u32 = run.get("said").await?.unwrap_or(0);
        if said > 4 { Err(StepError::context_limit("too long")) } else { Ok(Item(begin.0)) }
    }

    async fn shorten(&self, run: RunContext) -> Result<(), StepError> {
        run.update("said", |said: Option<u32>| said.unwrap_or(0) / 2).await?;
        Ok(())
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// Its attempts take too long.
struct TakesLong;

#[workflow]
impl TakesLong {
    #[step(timeout = "5s", retry = RetryPolicy::none().on(ErrorClass::Transient, Times::fixed(3, Duration::from_secs(1))))]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Item {
        if info.attempt() < 3 {
            std::future::pending::<()>().await;
        }
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// A precondition that fails.
struct AsksInVain;

#[workflow]
impl AsksInVain {
    #[step]
    async fn make(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(precondition = may)]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }

    #[precondition]
    async fn may(&self, item: &Item) -> Result<bool, StepError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if item.0 == 2 { Err(StepError::permanent("no idea")) } else { Ok(false) }
    }
}

/// Two stops; the first in the log counts.
struct Races;

#[workflow]
impl Races {
    #[step]
    async fn first(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[step]
    async fn second(&self, _begin: &Begin) -> Vec<Done> {
        vec![Done(100), Done(101)]
    }
}

/// Waits, until it is cancelled.
struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn work(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note) -> Done {
        Done(item.0 + note.0)
    }
}

survive! {
    failures_that_are_let_go: Scenario::new(LetsGo), 3;
    failures_that_are_made_good: Scenario::new(Recovers), 3;
    compactions: Scenario::new(Shortens).run_context("said", 20_u32), 3, comparing_outcomes();
    attempts_that_take_too_long: Scenario::new(TakesLong), 3;
    failures_of_preconditions: Scenario::new(AsksInVain), 3;
    two_stops: Scenario::new(Races), 3, comparing_outcomes();
    a_run_that_waits: Scenario::new(Waits), 3;
    a_run_that_is_cancelled: Scenario::new(Waits).cancel_after(Duration::from_secs(3), "enough"), 3;
    a_run_that_is_cancelled_between_attempts:
        Scenario::new(Retries).cancel_after(Duration::from_secs(12), "enough"), 3;
    calls_that_a_scenario_fails: Scenario::new(Waits)
        .retry(RetryPolicy::standard())
        .fail_first("work", 2, || StepError::transient("down"))
        .send_after(Duration::from_secs(100), Note(7)), 3;
    calls_that_a_scenario_fails_for_good: Scenario::new(Waits)
        .retry(RetryPolicy::none().on(ErrorClass::Transient, Times::fixed(1, Duration::from_secs(1))))
        .fail_first("work", 2, || StepError::transient("down")), 3;
}
