//! Middleware around the calls of steps.

use std::future::pending;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::prelude::*;
use workflow_core::report::ExecutionOutcome;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::{RunStatus, StepInput};

use crate::fixtures::{Begin, Done, Item, Part, Seen, log_of, outcomes_of};

struct Two;

#[workflow]
impl Two {
    #[step]
    async fn first(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn second(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

type Answer = BoxFuture<'static, Result<Emitted, StepError>>;

/// Records each call and its result.
struct Noting(&'static str, Seen);

impl Middleware for Noting {
    fn call(&self, call: StepCall, next: Next) -> Answer {
        let (name, seen) = (self.0, self.1.clone());
        Box::pin(async move {
            let called = format!("{} {} attempt {}", call.execution(), call.step(), call.attempt());
            seen.note(format!("{name} > {called}"));
            let result = next.call(call).await;
            seen.note(format!("{name} < {called}: {}", if result.is_ok() { "ok" } else { "failed" }));
            result
        })
    }
}

/// Replaces one step by a function of the call.
struct Instead(&'static str, fn(StepCall) -> Answer);

impl Middleware for Instead {
    fn call(&self, call: StepCall, next: Next) -> Answer {
        if call.step() == self.0 { (self.1)(call) } else { next.call(call) }
    }
}

#[tokio::test]
async fn what_was_added_first_is_the_outermost_around_every_step() {
    let seen = Seen::default();
    let engine = Engine::builder().workflow(Two).middleware(Noting("outer", seen.clone()));
    let engine = engine.middleware(Noting("inner", seen.clone())).build().unwrap();
    let run = engine.start::<Two>(Begin(4)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(4));
    assert_eq!(
        seen.lines(),
        [
            "outer > x1 first attempt 1",
            "inner > x1 first attempt 1",
            "inner < x1 first attempt 1: ok",
            "outer < x1 first attempt 1: ok",
            "outer > x2 second attempt 1",
            "inner > x2 second attempt 1",
            "inner < x2 second attempt 1: ok",
            "outer < x2 second attempt 1: ok",
        ]
    );
}

#[tokio::test]
async fn an_answer_can_be_given_for_a_step_out_of_what_it_was_bound_to() {
    let instead = Instead("first", |mut call| {
        let begin = <&Begin>::fill(call.slots().next().unwrap()).unwrap().0;
        Box::pin(async move { call.commit(Item(begin + 100)) })
    });
    let engine = Engine::builder().workflow(Two).middleware(instead).build().unwrap();
    let run = engine.start::<Two>(Begin(4)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(104));
}

// S27
#[tokio::test]
async fn a_failure_and_a_panic_of_middleware_are_failures_of_the_execution() {
    let failing = Instead("second", |_| Box::pin(async { Err(StepError::rejected("not today")) }));
    let panicking = Instead("second", |_| panic!("not today"));
    for instead in [failing, panicking] {
        let engine = Engine::builder().workflow(Two).middleware(instead).build().unwrap();
        let run = engine.start::<Two>(Begin(4)).await.unwrap();
        let report = run.report().await.unwrap();
        assert_eq!(report.status, RunStatus::Failed);
        let [ExecutionOutcome::Failed { error, .. }] = outcomes_of(&report, "second")[..] else { panic!() };
        assert!(error.contains("not today"), "{error}");
    }
}

#[tokio::test]
async fn what_the_step_does_not_declare_is_not_committed() {
    let instead = Instead("first", |call| Box::pin(async move { call.commit(Part(1)) }));
    let engine = Engine::builder().workflow(Two).middleware(instead).build().unwrap();
    let report = engine.start::<Two>(Begin(4)).await.unwrap().report().await.unwrap();
    assert_eq!(report.status, RunStatus::Failed);
    assert_eq!(log_of(&report), ["Begin"]);
}

/// Never answers; reports that it was called.
struct Holding(Arc<Semaphore>);

impl Middleware for Holding {
    fn call(&self, _: StepCall, _: Next) -> Answer {
        self.0.add_permits(1);
        Box::pin(pending())
    }
}

// S31
#[tokio::test]
async fn middleware_is_dropped_with_its_execution() {
    let asked = Arc::new(Semaphore::new(0));
    let engine = Engine::builder().workflow(Two).middleware(Holding(Arc::clone(&asked))).build().unwrap();
    let run = engine.start::<Two>(Begin(4)).await.unwrap();
    let _asked = asked.acquire().await.unwrap();
    run.cancel("enough").await.unwrap();
    assert_eq!(outcomes_of(&run.report().await.unwrap(), "first"), [&ExecutionOutcome::Dropped]);
}
