//! The classes of errors.

use std::io;
use std::num::ParseIntError;
use std::time::Duration;

use workflow_core::ErrorClass;
use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, NotRetried};
use workflow_testkit::{Scenario, ScenarioOf, TestRun};

use super::{CLASSES, flaky};
use crate::fixtures::{Begin, Done, Item, Part};

/// Fails with errors of foreign types, and with one that sets its class.
struct Fetching;

#[workflow]
impl Fetching {
    #[step]
    async fn work(&self, begin: &Begin) -> Result<Done, StepError> {
        match begin.0 {
            0 => Err(io::Error::from(io::ErrorKind::TimedOut))?,
            1 => Err(io::Error::from(io::ErrorKind::NotFound))?,
            2 => Ok(Done("no number".parse()?)),
            _ => Err(StepError::rejected(io::Error::from(io::ErrorKind::TimedOut))),
        }
    }
}

fn class_of_io(error: &io::Error) -> ErrorClass {
    if error.kind() == io::ErrorKind::TimedOut { ErrorClass::Transient } else { ErrorClass::Permanent }
}

fn failure(run: &TestRun<Fetching>) -> (ErrorClass, u32) {
    match run.outcome() {
        Err(RunError::StepFailed { class, attempts, .. }) => (*class, *attempts),
        other => panic!("{other:?}"),
    }
}

async fn failed(
    begin: u32,
    set: impl FnOnce(ScenarioOf<Fetching>) -> ScenarioOf<Fetching>,
) -> (ErrorClass, u32) {
    failure(&set(Scenario::new(Fetching)).start(Begin(begin)).await)
}

// S35
#[tokio::test]
async fn each_class_says_in_the_trace_why_it_is_retried_no_more() {
    let of = [
        NotRetried::UsedUp { retries: 3 },
        NotRetried::UsedUp { retries: 2 },
        NotRetried::UsedUp { retries: 1 },
        NotRetried::Class,
        NotRetried::Class,
        NotRetried::Class,
    ];
    for (class, expected) in CLASSES.into_iter().zip(of) {
        let (run, _) = flaky(&[class; 9], |scenario| scenario).await;
        let ExecutionOutcome::Failed { not_retried, .. } = run.report().trace[0].outcome else {
            panic!("{}", run.transcript())
        };
        assert_eq!(not_retried, expected, "{class}");
    }
}

// S35
#[tokio::test]
async fn an_error_without_a_class_is_permanent() {
    for begin in 0..3 {
        assert_eq!(failed(begin, |scenario| scenario).await, (ErrorClass::Permanent, 1));
    }
}

#[tokio::test]
async fn a_classifier_gives_errors_of_its_type_their_class_before_the_policy_is_asked() {
    assert_eq!(failed(0, |scenario| scenario.classify(class_of_io)).await, (ErrorClass::Transient, 4));
    assert_eq!(failed(1, |scenario| scenario.classify(class_of_io)).await, (ErrorClass::Permanent, 1));
    assert_eq!(failed(2, |scenario| scenario.classify(class_of_io)).await, (ErrorClass::Permanent, 1));
}

#[tokio::test]
async fn a_class_that_the_step_gives_stays() {
    assert_eq!(failed(3, |scenario| scenario.classify(class_of_io)).await, (ErrorClass::Rejected, 1));
}

#[tokio::test]
async fn each_type_has_its_classifier_and_of_two_for_one_type_the_later_counts() {
    let both = |scenario: ScenarioOf<Fetching>| {
        let scenario = scenario.classify(|_: &io::Error| ErrorClass::Rejected).classify(class_of_io);
        scenario.classify(|_: &ParseIntError| ErrorClass::Model)
    };
    assert_eq!(failed(0, both).await, (ErrorClass::Transient, 4));
    assert_eq!(failed(2, both).await, (ErrorClass::Model, 2));
}

#[tokio::test]
async fn a_classifier_that_panics_sets_no_class() {
    let panics = |scenario: ScenarioOf<Fetching>| scenario.classify(|_: &io::Error| panic!("what is this?"));
    assert_eq!(failed(0, panics).await, (ErrorClass::Permanent, 1));
}

/// Passes on the class of a branch's failure.
struct Branch;

#[workflow]
impl Branch {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        FanOut::new(vec![Item(begin.0)]).continue_others()
    }

    #[step]
    async fn work(&self, _item: &Item) -> Result<Part, StepError> {
        Err(io::Error::from(io::ErrorKind::TimedOut))?
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        let failure = parts.branches().next().and_then(|branch| branch.failure().cloned()).unwrap();
        Done(u32::from(failure.error().class() == ErrorClass::Transient))
    }
}

#[tokio::test]
async fn what_a_gather_says_of_a_failure_has_its_class_too() {
    let run = Scenario::new(Branch).classify(class_of_io).start(Begin(1)).await;
    run.assert_output(&Done(1));
    assert_eq!(run.elapsed(), Duration::from_secs(130));
}
