//! Panics whose payloads panic when dropped.

use std::time::Duration;

use futures::future::BoxFuture;
use workflow_core::blocking;
use workflow_core::errors::TimedOut;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::observe::{Observation, Observer};
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{RetryPolicy, RunStatus};

use super::{Fine, explode, failures_of, goes_on};
use crate::fixtures::{Begin, Close, Done, Item};

struct Exploding;

#[workflow]
impl Exploding {
    #[step(on_error = "continue")]
    async fn at_once(&self, _begin: &Begin) {
        explode()
    }

    #[step(on_error = "continue")]
    async fn in_time(&self, _begin: &Begin) {
        tokio::task::yield_now().await;
        explode()
    }

    #[step(on_error = "continue", spawn)]
    async fn elsewhere(&self, _begin: &Begin) {
        explode()
    }

    #[step(on_error = "continue", timeout = "1h")]
    async fn within_a_time(&self, _begin: &Begin) {
        tokio::task::yield_now().await;
        explode()
    }

    #[step(on_error = "continue")]
    async fn while_blocking(&self, _begin: &Begin) -> Result<Done, StepError> {
        Ok(blocking(|_| explode()).await?)
    }
}

// S27
#[tokio::test]
async fn a_step_that_panics_with_what_cannot_be_dropped_has_failed() {
    let engine = Engine::builder().workflow(Exploding).workflow(Fine).build().unwrap();
    let run = engine.start::<Exploding>(Begin(1)).await.unwrap();
    let report = run.report().await.unwrap();
    assert_eq!(report.status, RunStatus::Stalled);
    for step in ["at_once", "in_time", "elsewhere", "within_a_time", "while_blocking"] {
        assert_eq!(failures_of(&report, step), ["it panicked: no message"], "{step}");
    }
    goes_on(&engine).await;
}

/// Panics when dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        explode()
    }
}

struct Mined;

#[workflow]
impl Mined {
    #[step]
    async fn here(&self, _begin: &Begin) -> Done {
        let _grenade = Grenade;
        std::future::pending().await
    }

    #[step(spawn)]
    async fn elsewhere(&self, _begin: &Begin) -> Done {
        let _grenade = Grenade;
        std::future::pending().await
    }

    #[step(precondition = for_ever)]
    async fn asked(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }

    #[precondition]
    async fn for_ever(&self, _begin: &Begin) -> bool {
        let _grenade = Grenade;
        std::future::pending().await
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(3)
    }
}

// S27, S28
#[tokio::test]
async fn a_value_that_panics_when_dropped_with_its_run_harms_no_other_run() {
    let engine = Engine::builder().workflow(Mined).workflow(Fine).build().unwrap();
    let run = engine.start::<Mined>(Begin(1)).await.unwrap();
    crate::fixtures::everyone_else().await;
    run.send(Close).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3));
    goes_on(&engine).await;
}

struct Slow;

#[workflow]
impl Slow {
    #[step(timeout = "10ms", retry = RetryPolicy::none())]
    async fn work(&self, _begin: &Begin) -> Done {
        let _grenade = Grenade;
        std::future::pending().await
    }
}

// S27
#[tokio::test]
async fn an_attempt_that_explodes_when_its_time_is_over_has_taken_too_long() {
    let engine = Engine::builder().workflow(Slow).workflow(Fine).build().unwrap();
    let run = engine.start::<Slow>(Begin(1)).await.unwrap();
    let Err(RunError::StepFailed { source, .. }) = run.outcome().await else { panic!("it never returns") };
    assert_eq!(source.downcast_ref::<TimedOut>().unwrap().after, Duration::from_millis(10));
    goes_on(&engine).await;
}

struct Asking;

#[workflow]
impl Asking {
    #[step(precondition = now)]
    async fn at_once(&self, _begin: &Begin) -> Item {
        Item(0)
    }

    #[step(precondition = later)]
    async fn in_time(&self, _begin: &Begin) -> Done {
        Done(0)
    }

    #[precondition]
    fn now(begin: &Begin) -> bool {
        if begin.0 == 0 { explode() } else { false }
    }

    #[precondition]
    async fn later(&self, _begin: &Begin) -> bool {
        tokio::task::yield_now().await;
        explode()
    }
}

// S18, S27
#[tokio::test]
async fn a_precondition_that_panics_with_what_cannot_be_dropped_fails_its_run_alone() {
    for begin in [0, 1] {
        let engine = Engine::builder().workflow(Asking).workflow(Fine).build().unwrap();
        let run = engine.start::<Asking>(Begin(begin)).await.unwrap();
        let error = run.outcome().await.unwrap_err();
        assert!(matches!(error, RunError::PreconditionFailed { .. }), "{error}");
        assert!(error.to_string().ends_with("it panicked: no message"), "{error}");
        goes_on(&engine).await;
    }
}

struct Shortening;

#[workflow]
impl Shortening {
    #[step(compact = shorten)]
    async fn ask(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::context_limit("too long"))
    }

    async fn shorten(&self) {
        tokio::task::yield_now().await;
        explode()
    }
}

// S27, S35
#[tokio::test]
async fn a_compaction_that_panics_with_what_cannot_be_dropped_has_failed() {
    let engine = Engine::builder().workflow(Shortening).workflow(Fine).build().unwrap();
    let run = engine.start::<Shortening>(Begin(1)).await.unwrap();
    let report = run.report().await.unwrap();
    assert_eq!(failures_of(&report, "ask"), ["while compacting: it panicked: no message"]);
    goes_on(&engine).await;
}

/// Panics at every call and observation.
struct Everywhere;

impl Middleware for Everywhere {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        if call.step() == "end" { next.call(call) } else { explode() }
    }
}

impl Observer for Everywhere {
    fn observe(&self, _: &Observation) {
        explode()
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

/// The same from a thread of its own.
struct Aside;

impl Observer for Aside {
    fn observe(&self, _: &Observation) {
        explode()
    }
}

// S27
#[tokio::test]
async fn middleware_and_observers_that_panic_with_what_cannot_be_dropped_harm_no_run() {
    let engine = Engine::builder().workflow(Exploding).workflow(Fine).middleware(Everywhere);
    let engine = engine.observer(Everywhere).observer(Aside).build().unwrap();
    let run = engine.start::<Exploding>(Begin(1)).await.unwrap();
    let report = run.report().await.unwrap();
    assert_eq!(failures_of(&report, "at_once"), ["it panicked: no message"]);
    goes_on(&engine).await;
    // The shutdown returns once every observer has received everything.
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
}

struct Endless;

#[workflow]
impl Endless {
    #[step]
    async fn end(&self, _begin: &Begin) -> Done {
        panic!("{}", "x".repeat(10_000_000))
    }
}

// S80
#[tokio::test]
async fn the_message_of_a_panic_is_bounded() {
    let engine = Engine::builder().workflow(Endless).workflow(Fine).build().unwrap();
    let run = engine.start::<Endless>(Begin(1)).await.unwrap();
    let report = run.report().await.unwrap();
    let [error] = &failures_of(&report, "end")[..] else { panic!("it failed once") };
    assert!(error.starts_with("it panicked: xxx") && error.ends_with(" bytes cut)"), "{}", error.len());
    assert!(error.len() <= 16 * 1024);
    assert!(run.outcome().await.unwrap_err().to_string().len() < 17 * 1024);
    goes_on(&engine).await;
}
