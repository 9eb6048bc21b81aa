//! Compactions of large inputs before the next attempt (S35).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use futures::future::BoxFuture;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, StepCall};
use workflow_core::store::Record;
use workflow_core::{ErrorClass, Retries, RetryPolicy};
use workflow_testkit::{Scenario, ScenarioOf, TestRun};

use crate::fixtures::{Begin, Done};

/// Answers if the history, which its compaction halves, fits into 4. The first calls of the compaction fail.
struct Asks {
    compaction_fails: u32,
}

#[workflow]
impl Asks {
    #[step(compact = shorten)]
    async fn ask(&self, begin: &Begin, context: RunContext, info: &RunInfo) -> Result<Done, StepError> {
        let said: u32 = context.get("said").await?.unwrap_or(0);
        if said > 4 { Err(StepError::context_limit("too long")) } else { Ok(Done(begin.0 + info.attempt())) }
    }

    async fn shorten(&self, context: RunContext) -> Result<(), StepError> {
        if context.increment("compactions", 1).await? <= i64::from(self.compaction_fails) {
            return Err(StepError::tool("nobody to summarize"));
        }
        context.update("said", |said: Option<u32>| said.unwrap_or(0) / 2).await?;
        Ok(())
    }
}

fn asks(compaction_fails: u32, said: u32) -> ScenarioOf<Asks> {
    Scenario::new(Asks { compaction_fails }).run_context("said", said)
}

fn class_of<W: Workflow>(run: &TestRun<W>) -> (ErrorClass, u32) {
    match run.outcome() {
        Err(RunError::StepFailed { class, attempts, .. }) => (*class, *attempts),
        _ => panic!("{}", run.transcript()),
    }
}

#[tokio::test]
async fn a_large_input_is_compacted_and_retried_at_once() {
    let run = asks(0, 8).start(Begin(1)).await;
    expect![[r"
        #1 Begin from outside: 1
        x1 ask by #1: succeeded
           attempt 1 failed (context_limit): too long; retried at once
        #2 Done of x1: 3
        completed with #2
    "]]
    .assert_eq(&run.transcript());
    assert_eq!(run.elapsed(), Duration::ZERO);
    assert!(run.report().trace[0].attempts[0].compacts);
}

#[tokio::test]
async fn an_input_that_fits_is_not_compacted() {
    let run = asks(9, 4).start(Begin(1)).await;
    run.assert_output(&Done(2));
}

#[tokio::test]
async fn a_step_is_tried_once_more_unless_its_policy_says_otherwise() {
    assert_eq!(class_of(&asks(0, 16).start(Begin(1)).await), (ErrorClass::ContextLimit, 2));
    assert_eq!(
        class_of(&asks(0, 8).retry(RetryPolicy::none()).start(Begin(1)).await),
        (ErrorClass::ContextLimit, 1)
    );
    let twice =
        RetryPolicy::standard().on(ErrorClass::ContextLimit, Retries::fixed(2, Duration::from_mins(1)));
    let run = asks(0, 16).retry(twice).start(Begin(1)).await;
    run.assert_output(&Done(4));
    assert_eq!(run.elapsed(), Duration::from_mins(2));
}

#[tokio::test]
async fn a_compaction_that_fails_is_retried_by_its_class_and_comes_first_again() {
    let run = asks(2, 8).start(Begin(1)).await;
    expect![[r"
        #1 Begin from outside: 1
        x1 ask by #1: succeeded
           attempt 1 failed (context_limit): too long; retried at once
           attempt 2 failed (tool): while compacting: nobody to summarize; retried at once
           attempt 3 failed (tool): while compacting: nobody to summarize; retried at once
        #2 Done of x1: 5
        completed with #2
    "]]
    .assert_eq(&run.transcript());
    assert_eq!(class_of(&asks(3, 8).start(Begin(1)).await), (ErrorClass::Tool, 4));
}

#[tokio::test]
async fn a_final_failure_of_a_compaction_is_reported_as_such() {
    let compacted = RetryPolicy::none().on(ErrorClass::ContextLimit, Retries::fixed(1, Duration::ZERO));
    let run = asks(1, 8).retry(compacted).start(Begin(1)).await;
    let Err(error @ RunError::StepFailed { source, .. }) = run.outcome() else {
        panic!("{}", run.transcript())
    };
    let said = "while compacting: nobody to summarize";
    assert_eq!(error.to_string(), format!("step `ask` failed after 2 attempts (x1, tool): {said}"));
    assert_eq!(source.to_string(), said);
    let explanation = run.explanation().unwrap().to_string();
    let failed = "failed once (context_limit: too long), retried at once: failed (tool): ";
    assert!(explanation.contains(&format!("{failed}{said}")), "{explanation}");
    assert!(run.report().to_string().contains(&format!("{failed}{said}\n")), "{}", run.report());
}

/// Records for each failed attempt whether the next begins with the compaction.
#[derive(Clone, Default)]
struct Compacts(Arc<Mutex<Vec<bool>>>);

impl Observer for Compacts {
    fn observe(&self, observation: &Observation) {
        if let Observed::AttemptFailed { compacts, .. } = observation.what {
            self.0.lock().unwrap().push(compacts);
        }
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn observers_see_whether_the_next_attempt_begins_with_the_compaction() {
    let compacts = Compacts::default();
    let run = asks(1, 8).engine(|engine| engine.observer(compacts.clone())).start(Begin(1)).await;
    run.assert_output(&Done(4));
    assert_eq!(*compacts.0.lock().unwrap(), [true, true]);

    let compacts = Compacts::default();
    let run = asks(0, 4)
        .fail_first("ask", 1, || StepError::tool("busy"))
        .engine(|engine| engine.observer(compacts.clone()));
    run.start(Begin(1)).await.assert_output(&Done(3));
    assert_eq!(*compacts.0.lock().unwrap(), [false]);
}

/// Counts the calls of steps.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicU32>);

impl Middleware for Calls {
    fn call(&self, call: StepCall, next: Next) -> BoxFuture<'static, Result<Emitted, StepError>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        next.call(call)
    }
}

#[tokio::test]
async fn middleware_stands_around_the_step_and_not_around_its_compaction() {
    let calls = Calls::default();
    let run = asks(1, 8).engine(|engine| engine.middleware(calls.clone())).start(Begin(1)).await;
    assert_eq!(run.report().trace[0].attempts.len(), 2);
    assert_eq!(calls.0.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_stand_in_is_called_after_the_compaction_of_its_step() {
    let run = asks(0, 8).fail_first("ask", 1, || StepError::context_limit("stand-in")).start(Begin(1)).await;
    run.assert_output(&Done(3));
    assert_eq!(run.executions("ask"), 1);
}

/// Its compaction panics at first.
struct Clumsy;

#[workflow]
impl Clumsy {
    #[step(compact = shorten)]
    async fn ask(&self, begin: &Begin, context: RunContext) -> Result<Done, StepError> {
        match context.get::<i64>("compactions").await? {
            Some(2) => Ok(Done(begin.0)),
            _ => Err(StepError::context_limit("too long")),
        }
    }

    async fn shorten(&self, context: RunContext) -> Result<(), StepError> {
        assert!(context.increment("compactions", 1).await? > 1, "dropped it");
        Ok(())
    }
}

#[tokio::test]
async fn a_compaction_that_panics_comes_first_again_too() {
    let once = Retries::fixed(1, Duration::ZERO);
    let policy = RetryPolicy::standard().on(ErrorClass::Permanent, once);
    let run = Scenario::new(Clumsy).retry(policy).start(Begin(1)).await;
    run.assert_output(&Done(1));
    let compacts = run.report().trace[0].attempts.iter().map(|failed| failed.compacts);
    assert_eq!(compacts.collect::<Vec<_>>(), [true, true]);
}

/// Has no compaction.
struct Helpless;

#[workflow]
impl Helpless {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Result<Done, StepError> {
        Err(StepError::context_limit("too long"))
    }
}

#[tokio::test]
async fn without_a_compaction_it_is_final_unless_the_policy_says_otherwise() {
    assert_eq!(class_of(&Scenario::new(Helpless).start(Begin(1)).await), (ErrorClass::ContextLimit, 1));
    let thrice = RetryPolicy::none().on(ErrorClass::ContextLimit, Retries::fixed(2, Duration::ZERO));
    let run = Scenario::new(Helpless).retry(thrice).start(Begin(1)).await;
    assert_eq!(class_of(&run), (ErrorClass::ContextLimit, 3));
}

/// Its compaction takes the step's parameters in another order and by value; it hangs the first time.
struct Slow;

#[workflow]
impl Slow {
    #[step(compact = rest, timeout = "30s")]
    async fn work(&self, begin: Begin, _: &Display, context: RunContext) -> Result<Done, StepError> {
        let rested: i64 = context.get("rests").await?.unwrap_or(0);
        if rested < 2 { Err(StepError::context_limit("tired")) } else { Ok(Done(begin.0)) }
    }

    async fn rest(context: RunContext, begin: Begin) {
        let rests = context.increment("rests", i64::from(begin.0)).await;
        if rests.is_ok_and(|rests| rests == 1) {
            std::future::pending::<()>().await;
        }
    }
}

#[tokio::test]
async fn the_time_of_an_attempt_includes_its_compaction() {
    let store = std::sync::Arc::new(workflow_core::store::MemoryStore::default());
    let run = Scenario::new(Slow).engine(|engine| engine.store(store.clone())).start(Begin(1)).await;
    run.assert_output(&Done(1));
    assert_eq!(run.elapsed(), Duration::from_secs(40));
    let records = workflow_core::store::EventStore::read(
        &*store,
        &"scenario".into(),
        workflow_core::store::Position(0),
        usize::MAX,
    );
    let compacts = records.await.unwrap().into_iter().filter_map(|record| match record {
        Record::RetryScheduled { class, compacts, .. } => Some((class, compacts)),
        _ => None,
    });
    let compacts: Vec<_> = compacts.collect();
    assert_eq!(compacts, [(ErrorClass::ContextLimit, true), (ErrorClass::Transient, true)]);
}
