//! Idempotency keys that a method of the workflow makes (S84).

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunOptions};
use workflow_testkit::Scenario;

use crate::fixtures::{Alpha, Begin, Beta, Close, Done, Saw, saw};

fn options() -> RunOptions {
    RunOptions::new().id("r")
}

struct Keyed;

#[workflow]
impl Keyed {
    #[step(key = account, reruns)]
    async fn pay(&self, alpha: Alpha, _begin: &Begin, beta: Option<&Beta>, info: RunInfo) -> Saw {
        assert_eq!(info.step(), "pay");
        Saw(format!("{} {} {}", alpha.0, beta.map_or(0, |beta| beta.0), info.idempotency_key()))
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }

    #[expect(clippy::needless_pass_by_value, reason = "the step takes it so")]
    fn account(alpha: Alpha) -> String {
        format!("account-{}", alpha.0 / 10)
    }
}

// S84
#[tokio::test]
async fn executions_with_the_same_text_share_a_key() {
    let scenario = Scenario::new(Keyed).options(options());
    let scenario = scenario.send(Alpha(11)).send(Alpha(12)).send(Beta(1)).send(Alpha(21)).send(Close);
    let keys = saw(&scenario.start(Begin(0)).await);
    assert_eq!(
        keys,
        [
            "11 0 r/0/pay/=account-1",
            "12 0 r/0/pay/=account-1",
            "12 1 r/0/pay/=account-1",
            "21 1 r/0/pay/=account-2"
        ]
    );
}

/// Makes its key later, and not always.
struct Asks;

#[workflow]
impl Asks {
    #[step(key = account, retry = RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, std::time::Duration::ZERO)))]
    async fn pay(
        &self,
        begin: &Begin,
        context: &RunContext,
        info: &RunInfo,
    ) -> Result<(Saw, Done), StepError> {
        context.increment("paid", 1).await?;
        Ok((Saw(info.idempotency_key()), Done(begin.0)))
    }

    async fn account(&self, context: &RunContext, begin: &Begin) -> Result<u32, StepError> {
        match (context.increment("asked", 1).await?, begin.0) {
            (1, 0) => Err(StepError::transient("ask again")),
            (_, 1) => panic!("no account"),
            _ => Ok(begin.0 + 7),
        }
    }
}

// S84
#[tokio::test]
async fn a_key_that_fails_is_a_failure_of_the_attempt() {
    let scenario = || Scenario::new(Asks).options(options());
    let run = scenario().start(Begin(0)).await;
    assert_eq!(saw(&run), ["r/0/pay/=7"]);
    let attempts: Vec<_> = run.report().trace[0].attempts.iter().map(|failed| &*failed.error).collect();
    assert_eq!(attempts, ["ask again"]);
    let panicked = scenario().start(Begin(1)).await;
    let error = panicked.outcome().unwrap_err().to_string();
    assert!(error.contains("step `pay` failed") && error.contains("no account"), "{error}");
}

/// Cleans up under a key of its own.
struct Cleans(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

#[workflow]
impl Cleans {
    #[step]
    async fn book(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::rejected("full"))
    }

    #[step(on_end, key = trip)]
    async fn cancel(&self, _begin: &Begin, info: &RunInfo) {
        self.0.lock().unwrap().push(info.idempotency_key());
    }

    fn trip(begin: &Begin) -> String {
        format!("trip {}", begin.0)
    }
}

// S31, S84
#[tokio::test]
async fn a_clean_up_step_may_name_its_key() {
    let keys = std::sync::Arc::default();
    let run = Scenario::new(Cleans(std::sync::Arc::clone(&keys))).options(options()).start(Begin(3)).await;
    run.outcome().unwrap_err();
    assert_eq!(*keys.lock().unwrap(), ["r/0/cancel/=trip 3"]);
}
