//! The times at which attempts begin.

use std::time::Duration;

use proptest::prelude::*;
use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunOptions};
use workflow_testkit::{Scenario, ScenarioOf, TestRun};

use super::{CLASSES, Flaky, Moments, flaky};
use crate::fixtures::{Begin, Done, Item};

const SECOND: Duration = Duration::from_secs(1);

// S35, S36
#[tokio::test]
async fn the_presets_are_kept_to_the_second() {
    let presets: [&[u64]; 6] = [&[0, 10, 40, 130], &[0, 0, 0], &[0, 10], &[0], &[0], &[0]];
    for (class, expected) in CLASSES.into_iter().zip(presets) {
        let (run, began) = flaky(&[class; 9], |scenario| scenario).await;
        assert_eq!(began, expected, "{class}");
        assert_eq!(run.elapsed().as_secs(), *expected.last().unwrap());
        let Err(RunError::StepFailed { class: last, attempts, source, .. }) = run.outcome() else {
            panic!("{}", run.transcript())
        };
        assert_eq!((*last, *attempts as usize), (class, expected.len()));
        assert_eq!(source.to_string(), format!("no {attempts}"));
    }
}

// S34, S35
#[tokio::test]
async fn each_class_has_its_own_retries_and_what_succeeds_in_the_end_is_clean() {
    let fails = [ErrorClass::Transient, ErrorClass::Tool, ErrorClass::Transient, ErrorClass::Model];
    let (run, began) = flaky(&fails, |scenario| scenario).await;
    assert_eq!(began, [0, 10, 10, 40, 50]);
    run.assert_output(&Done(1));
    run.assert_executions("work", 1);
    run.assert_quality(Quality::Clean);
}

#[tokio::test]
async fn listed_delays_are_taken_one_after_the_other() {
    let listed = Retries::listed([7, 0, 3_600].map(Duration::from_secs));
    let policy = RetryPolicy::none().on(ErrorClass::Rejected, listed);
    let (_, began) = flaky(&[ErrorClass::Rejected; 9], |scenario| scenario.retry(policy)).await;
    assert_eq!(began, [0, 7, 7, 3_607]);
}

/// Fails with delays of its own, from a list, and then succeeds.
struct Asked(Vec<(ErrorClass, Duration)>, Moments);

#[workflow]
impl Asked {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.1.note();
        match self.0.get(info.attempt() as usize - 1) {
            Some((class, delay)) => Err(StepError::new(*class, "busy").retry_after(*delay)),
            None => Ok(Done(begin.0)),
        }
    }
}

/// Runs it, and returns the seconds from the first attempt to each.
async fn asked(
    delays: &[(ErrorClass, Duration)],
    adjust: impl FnOnce(ScenarioOf<Asked>) -> ScenarioOf<Asked>,
) -> (TestRun<Asked>, Vec<u64>) {
    let moments = Moments::default();
    let run = adjust(Scenario::new(Asked(delays.to_vec(), moments.clone()))).start(Begin(1)).await;
    (run, moments.seconds())
}

// S54, S36
#[tokio::test]
async fn the_longer_of_the_delays_of_policy_and_error_counts() {
    let asks = |class, seconds| (class, SECOND * seconds);
    let tool = [asks(ErrorClass::Tool, 7), asks(ErrorClass::Transient, 3), asks(ErrorClass::Transient, 31)];
    let (run, began) = asked(&tool, |scenario| scenario).await;
    // The policy has 0 s for the first, 10 s and 30 s for the others.
    assert_eq!(began, [0, 7, 17, 48]);
    run.assert_output(&Done(1));
    let delays: Vec<_> =
        run.report().trace[0].attempts.iter().map(|failed| failed.retry_in.as_secs()).collect();
    assert_eq!(delays, [7, 10, 31]);
}

// S54
#[tokio::test]
async fn an_error_asks_for_no_more_than_a_day_and_for_whole_milliseconds() {
    let endless = [(ErrorClass::Tool, Duration::MAX), (ErrorClass::Tool, Duration::from_micros(1_001))];
    let (run, began) = asked(&endless, |scenario| scenario).await;
    assert_eq!(began, [0, 86_400, 86_400]);
    assert_eq!(run.report().trace[0].attempts[1].retry_in, Duration::from_millis(2));
}

// S54
#[tokio::test]
async fn the_policy_decides_whether_there_is_another_attempt() {
    let (run, began) = asked(&[(ErrorClass::Permanent, SECOND)], |scenario| scenario).await;
    assert!(began == [0] && run.outcome().is_err());
    let policy = RetryPolicy::standard().budget(60 * SECOND);
    let tool = [(ErrorClass::Tool, 50 * SECOND), (ErrorClass::Tool, 11 * SECOND)];
    let (run, began) = asked(&tool, |scenario| scenario.retry(policy)).await;
    assert!(began == [0, 50] && run.outcome().is_err(), "61 s are beyond its budget");
}

// S54
#[tokio::test]
async fn a_classifier_keeps_the_delay_of_an_error() {
    struct Unclassified;

    #[workflow]
    impl Unclassified {
        #[step]
        async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
            match info.attempt() {
                1 => Err(StepError::from(std::fmt::Error).retry_after(9 * SECOND)),
                _ => Ok(Done(begin.0)),
            }
        }
    }
    let scenario =
        Scenario::new(Unclassified).engine(|engine| engine.classify(|_: &std::fmt::Error| ErrorClass::Tool));
    let run = scenario.start(Begin(1)).await;
    run.assert_output(&Done(1));
    assert_eq!(run.elapsed(), 9 * SECOND);
}

#[tokio::test]
async fn growing_delays_stop_growing_at_their_cap() {
    let growing = Retries::exponential(5, SECOND).factor(10.0).cap(300 * SECOND);
    let policy = RetryPolicy::none().on(ErrorClass::Tool, growing);
    let (run, began) = flaky(&[ErrorClass::Tool; 5], |scenario| scenario.retry(policy)).await;
    assert_eq!(began, [0, 1, 11, 111, 411, 711]);
    run.assert_output(&Done(1));
}

#[tokio::test]
async fn a_budget_lets_no_retry_begin_after_its_end() {
    let every_ten = RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(100, 10 * SECOND));
    for (budget, expected) in [(30, vec![0, 10, 20, 30]), (29, vec![0, 10, 20]), (0, vec![0])] {
        let policy = every_ten.clone().budget(budget * SECOND);
        let (run, began) = flaky(&[ErrorClass::Tool; 9], |scenario| scenario.retry(policy)).await;
        assert_eq!(began, expected);
        // The run does not wait for an attempt beyond the budget.
        assert_eq!(run.elapsed().as_secs(), *expected.last().unwrap());
    }
}

/// Each attempt takes some time.
struct Slow(Moments);

#[workflow]
impl Slow {
    #[step]
    async fn work(&self, _begin: &Begin) -> Result<Done, StepError> {
        self.0.note();
        tokio::time::sleep(20 * SECOND).await;
        Err(StepError::tool("no"))
    }
}

#[tokio::test]
async fn delays_are_counted_from_the_failure_and_the_budget_from_the_first_beginning() {
    let began = Moments::default();
    let policy = RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(9, 10 * SECOND));
    let scenario = Scenario::new(Slow(began.clone())).retry(policy.budget(60 * SECOND));
    scenario.start(Begin(1)).await;
    assert_eq!(began.seconds(), [0, 30, 60]);
}

/// Has its own retry policies, except for one step.
struct Choosy {
    own: Moments,
    none: Moments,
    engines: Moments,
}

impl Choosy {
    fn patient() -> RetryPolicy {
        RetryPolicy::none().on(ErrorClass::Permanent, Retries::fixed(2, SECOND))
    }
}

#[workflow]
impl Choosy {
    #[step(retry = Self::patient(), on_error = "continue")]
    async fn own(&self, _begin: &Begin) -> Result<Item, StepError> {
        self.own.note();
        Err(StepError::permanent("no"))
    }

    #[step(retry = RetryPolicy::none(), on_error = "continue")]
    async fn none(&self, _begin: &Begin) -> Result<Item, StepError> {
        self.none.note();
        Err(StepError::tool("no"))
    }

    #[step]
    async fn engines(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.engines.note();
        if info.attempt() == 1 { Err(StepError::tool("no")) } else { Ok(Done(begin.0)) }
    }
}

#[tokio::test]
async fn a_step_with_a_policy_of_its_own_goes_by_that_and_the_others_by_the_engines() {
    let policy = RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(1, 3 * SECOND));
    let (own, none, engines) = (Moments::default(), Moments::default(), Moments::default());
    let workflow = Choosy { own: own.clone(), none: none.clone(), engines: engines.clone() };
    let run = Scenario::new(workflow).retry(policy).start(Begin(1)).await;
    run.assert_output(&Done(1));
    assert_eq!((own.seconds(), none.seconds(), engines.seconds()), (vec![0, 1, 2], vec![0], vec![0, 3]));
}

/// The delays of a run with this id.
async fn jittered(id: &str) -> Vec<Duration> {
    let began = Moments::default();
    let workflow = Flaky { fails: vec![ErrorClass::Tool; 4], began: began.clone() };
    let spread = Retries::fixed(9, 10 * SECOND).jitter(0.5);
    let scenario = Scenario::new(workflow).retry(RetryPolicy::none().on(ErrorClass::Tool, spread));
    let run = scenario.options(RunOptions::new().id(id)).start(Begin(1)).await;
    let told: Vec<Duration> = run.report().trace[0].attempts.iter().map(|failed| failed.retry_in).collect();
    let total = told.iter().sum::<Duration>();
    // Virtual timers have a millisecond's grain.
    assert!(began.since_first()[4].abs_diff(total) < Duration::from_millis(5));
    told
}

// S36
#[tokio::test]
async fn jitter_is_another_for_each_run_and_attempt_and_the_same_when_the_run_is_made_again() {
    let delays = jittered("a").await;
    assert_eq!(delays, jittered("a").await);
    assert_ne!(delays, jittered("b").await);
    assert!(delays.windows(2).any(|two| two[0] != two[1]));
    assert!(delays.iter().all(|delay| (5 * SECOND..=10 * SECOND).contains(delay)));
}

proptest! {
    #[test]
    fn jitter_keeps_its_bounds(part in 0.0..=1.0_f64, seed: u64, failed in 1..60_u32, cap in 1..10_000_u64) {
        let cap = Duration::from_millis(cap);
        let written = Retries::exponential(50, Duration::from_millis(3)).cap(cap);
        let delay = written.clone().jitter(part).delay(failed, seed);
        match written.delay(failed, seed) {
            None => prop_assert_eq!(delay, None),
            Some(most) => {
                let delay = delay.unwrap();
                prop_assert!(delay <= most && most <= cap);
                let least = most.mul_f64(1.0 - part);
                prop_assert!(delay + Duration::from_nanos(1) >= least, "{:?} of {:?} with {}", delay, most, part);
            }
        }
    }
}

/// Has a policy that depends on its parameter.
struct Generic<T>(Moments, std::marker::PhantomData<T>);

impl<T: Default + Into<u64>> Generic<T> {
    fn patient() -> RetryPolicy {
        let delay = Duration::from_secs(T::default().into() + 4);
        RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(1, delay))
    }
}

#[workflow]
impl<T: Default + Into<u64> + Send + Sync + 'static> Generic<T> {
    #[step(retry = Self::patient(), timeout = "1h")]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.0.note();
        if info.attempt() == 1 { Err(StepError::tool("no")) } else { Ok(Done(begin.0)) }
    }
}

#[tokio::test]
async fn the_policy_of_a_step_may_depend_on_the_workflows_parameters() {
    let began = Moments::default();
    let run = Scenario::new(Generic(began.clone(), std::marker::PhantomData::<u32>)).start(Begin(1)).await;
    run.assert_output(&Done(1));
    assert_eq!(began.seconds(), [0, 4]);
}
