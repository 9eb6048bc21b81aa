//! Times that would be over before they begin (S75).

use std::time::{Duration, SystemTime};

use serde_json::json;
use workflow_core::errors::{BuildProblem, TimerError};
use workflow_core::prelude::*;
use workflow_core::signature::{Roles, StepCall};
use workflow_core::store::{RecordedEvent, Write};
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OutputDef, StepDef, StepPolicy, TableBuilder, TableProblem,
};
use workflow_core::{ErrorClass, JsonOutput, RunOptions, RuntimeWorkflow, StartError};
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask;

/// When the request expires.
#[derive(Debug, Clone, Copy)]
enum Expires {
    In(Duration),
    At(SystemTime),
}

struct Asks(Expires);

#[workflow]
impl Asks {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Expiring<Ask> {
        match self.0 {
            Expires::In(time) => Ask.expires_in(time),
            Expires::At(time) => Ask.expires_at(time),
        }
    }

    #[step]
    async fn take(&self, reply: &Reply<Ask>) -> Done {
        Done(**reply)
    }

    #[step]
    async fn expired(&self, _expired: &Expired<Ask>) -> Done {
        Done(0)
    }
}

// S75
#[tokio::test(start_paused = true)]
async fn a_request_that_expires_in_no_time_fails_its_execution() {
    let run = Scenario::new(Asks(Expires::In(Duration::ZERO))).start(Begin(1)).await;
    let Err(RunError::StepFailed { step, class: ErrorClass::Permanent, source, .. }) = run.outcome() else {
        panic!("{}", run.transcript())
    };
    assert_eq!(&**step, "ask");
    assert_eq!(
        source.downcast_ref::<TimerError>().unwrap().to_string(),
        "`Ask` expires in no time, before anyone can reply: give `expires_in` more than 0, or `expires_at` a deadline that may have passed"
    );
    assert!(matches!(source.downcast_ref(), Some(TimerError::NoTime { request }) if &**request == "Ask"));
}

// S32, S75
#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_and_the_shortest_time_expire() {
    for expires in [Expires::At(SystemTime::UNIX_EPOCH), Expires::In(Duration::from_nanos(1))] {
        let run = Scenario::new(Asks(expires)).start(Begin(1)).await;
        run.assert_output(&Done(0));
    }
}

/// `ask(Begin)` with a timeout of the attempts, whose request expires at once.
fn asks(policy: StepPolicy) -> TableBuilder {
    DependencyTable::builder("asks")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::new("Ask", Roles::NONE.request()))
        .event(EventDef::reply_to("Answer", "Ask"))
        .event(EventDef::expiry_of("Late", "Ask"))
        .event(EventDef::new("Done", Roles::NONE.stop()))
        .step(
            StepDef::new("ask").input(InputDef::one("Begin")).output(OutputDef::event("Ask")).policy(policy),
        )
        .step(
            StepDef::new("end").input(InputDef::one_of(["Answer", "Late"])).output(OutputDef::event("Done")),
        )
}

// S57, S75
#[tokio::test]
async fn a_run_time_workflow_is_refused_the_same() {
    let hurried = asks(StepPolicy::DEFAULT.timeout(Duration::ZERO));
    let problems = hurried.build_unchecked().unwrap_err().problems;
    assert_eq!(problems, [TableProblem::ZeroTimeout { step: "ask".into() }]);
    assert_eq!(
        problems[0].to_string(),
        "step `ask` has a timeout of 0, so every attempt would fail: give it a time, or leave the timeout out"
    );

    let steps = |mut call: StepCall| async move {
        if call.step() == "ask" {
            call.emit("Ask", JsonOutput::Expiring(json!(1), Duration::ZERO))?;
        } else {
            call.emit("Done", json!(1))?;
        }
        call.commit(())
    };
    let table = || asks(StepPolicy::DEFAULT).build_unchecked().unwrap();
    let workflow = RuntimeWorkflow::with_timeout(table(), Duration::ZERO, steps);
    let error = Engine::builder().workflows([workflow]).build().unwrap_err();
    assert!(
        matches!(&error.problems[..], [BuildProblem::NoTime { workflow: Some(name) }] if name == "asks"),
        "{error}"
    );
    let engine = Engine::builder().workflows([RuntimeWorkflow::new(table(), steps)]).build().unwrap();
    let options = RunOptions::new().timeout(Duration::ZERO);
    let start = engine.start_json("asks", "Begin", json!(1), options.clone()).await;
    assert!(matches!(start, Err(StartError::NoTime)));
    let event = RecordedEvent::from_json("Begin", 1, serde_json::value::to_raw_value(&json!(1)).unwrap());
    let table = engine.hosted().remove(0).table;
    let queued = Write::queued(&table, event, &options, SystemTime::UNIX_EPOCH);
    assert!(matches!(queued, Err(StartError::NoTime)));
    let run = engine.start_json("asks", "Begin", json!(1), RunOptions::new()).await.unwrap();
    let Err(RunError::StepFailed { source, .. }) = run.outcome_any().await else { panic!("it has no time") };
    assert!(matches!(source.downcast_ref(), Some(TimerError::NoTime { .. })), "{source:?}");
}

/// Starts a child without time.
struct Hurries;

#[workflow]
impl Hurries {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let options = RunOptions::new().timeout(Duration::ZERO);
        children.run_with::<Asks>(begin.clone(), options).await
    }
}

// S75
#[tokio::test]
async fn a_child_without_time_does_not_start() {
    let asks = Asks(Expires::In(Duration::from_secs(1)));
    let engine = Engine::builder().workflow(Hurries).workflow(asks).build().unwrap();
    let run = engine.start::<Hurries>(Begin(1)).await.unwrap();
    let error = run.outcome().await.unwrap_err().to_string();
    assert!(error.contains("the run's timeout is 0"), "{error}");
}
