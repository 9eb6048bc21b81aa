//! Attempts in observations, journals, reports and explanations.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::report::NotRetried;
use workflow_core::store::{EventStore, MemoryStore, Position, Record};
use workflow_core::{ErrorClass, RetryPolicy, RunOptions};
use workflow_testkit::VirtualClock;

use super::{Flaky, Moments, flaky};
use crate::fixtures::Begin;

/// Records the observations of executions.
#[derive(Clone, Default)]
struct Scribe(Arc<Mutex<Vec<String>>>);

impl Observer for Scribe {
    fn observe(&self, observation: &Observation) {
        let line = match &observation.what {
            Observed::ExecutionStarted { execution, .. } => format!("{execution} started"),
            Observed::AttemptFailed { execution, step, attempt, class, error, retry_in, .. } => {
                format!(
                    "{execution} {step} attempt {attempt} failed ({class}): {error}, again in {retry_in:?}"
                )
            }
            Observed::AttemptStarted { execution, step, attempt } => {
                format!("{execution} {step} attempt {attempt} started")
            }
            Observed::ExecutionSucceeded { execution, took, .. } => {
                format!("{execution} succeeded after {took:?}")
            }
            Observed::ExecutionFailed { execution, class, error, not_retried, .. } => {
                format!("{execution} failed ({class}): {error}; {not_retried}")
            }
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

fn fails(classes: &[ErrorClass]) -> Flaky {
    Flaky { fails: classes.to_vec(), began: Moments::default() }
}

async fn observed(workflow: Flaky) -> Vec<String> {
    let scribe = Scribe::default();
    let engine = Engine::builder().workflow(workflow).observer(scribe.clone()).clock(VirtualClock::new());
    let engine = engine.build().unwrap();
    let _ = engine.start::<Flaky>(Begin(1)).await.unwrap().outcome().await;
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    let lines = scribe.0.lock().unwrap();
    lines.clone()
}

#[tokio::test(start_paused = true)]
async fn observers_see_every_attempt_in_order_and_one_execution() {
    assert_eq!(
        observed(fails(&[ErrorClass::Transient, ErrorClass::Tool])).await,
        [
            "x1 started",
            "x1 work attempt 1 failed (transient): no 1, again in 10s",
            "x1 work attempt 2 started",
            "x1 work attempt 2 failed (tool): no 2, again in 0ns",
            "x1 work attempt 3 started",
            "x1 succeeded after 10s",
        ]
    );
    assert_eq!(
        observed(fails(&[ErrorClass::Model; 2])).await,
        [
            "x1 started",
            "x1 work attempt 1 failed (model): no 1, again in 10s",
            "x1 work attempt 2 started",
            "x1 failed (model): no 2; its 1 retry is used up (`retry`)"
        ]
    );
}

// S36
#[tokio::test(start_paused = true)]
async fn the_journal_has_each_retry_with_its_delay() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(fails(&[ErrorClass::Transient, ErrorClass::Model]));
    let engine = engine.store(Arc::clone(&store)).clock(VirtualClock::new()).build().unwrap();
    let run = engine.start_with::<Flaky>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    run.outcome().await.unwrap();
    let records = store.read(run.id(), Position(0), usize::MAX).await.unwrap();
    let lines = records.iter().map(|record| match record {
        Record::RetryScheduled { execution, step, scope, trigger, attempt, class, error, retry_in, at, .. } => {
            let at = at.duration_since(VirtualClock::beginning()).unwrap();
            format!("{execution} {step} in {scope} by {trigger}, {attempt}: {error} ({class}), {retry_in:?} after {at:?}")
        }
        Record::EventLogged { seq, event, .. } => format!("{seq} {}", event.name()),
        Record::ExecutionSucceeded { execution, .. } => format!("{execution} succeeded"),
        Record::RunStarted { .. } => "started".into(),
        Record::RunEnded { status, .. } => format!("{status}"),
        other => panic!("{other:?}"),
    });
    let lines: Vec<String> = lines.collect();
    expect![[r"
        started
        #1 Begin
        x1 work in scope 0 by #1, 1: no 1 (transient), 10s after 0ns
        x1 work in scope 0 by #1, 2: no 2 (model), 10s after 10s
        x1 succeeded
        #2 Done
        completed"]]
    .assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn reports_explanations_and_errors_say_what_was_tried() {
    let (run, _) = flaky(&[ErrorClass::Tool; 3], |scenario| scenario).await;
    let Err(error) = run.outcome() else { panic!("{}", run.transcript()) };
    assert_eq!(error.to_string(), "step `work` failed after 3 attempts (x1, tool): no 3");
    let tried = "failed twice (tool: no 1; tool: no 2), retried at once";
    let explanation = run.explanation().unwrap().to_string();
    let failed = "failed (tool): no 3; its 2 retries are used up (`retry`)";
    assert!(explanation.ends_with(&format!("{tried}: {failed}")), "{explanation}");
    let report = run.report().to_string();
    assert!(report.ends_with(&format!("x1 work {tried}: {failed}\n")), "{report}");
    let json = serde_json::to_value(&run.report().trace[0].attempts).unwrap();
    assert_eq!(
        json[0],
        serde_json::json!({
            "class": "tool", "error": "no 1", "retry_in": {"secs": 0, "nanos": 0}, "compacts": false
        })
    );
}

/// The text about the only execution: in the explanation, and in the report if there is any.
async fn said(policy: RetryPolicy, fails: &[ErrorClass]) -> (String, Option<String>) {
    let (run, _) = flaky(fails, |scenario| scenario.retry(policy)).await;
    let (report, explanation) = (run.report().to_string(), run.explanation().unwrap().to_string());
    let line = |text: &str, start: &str| {
        let mut lines = text.lines().map(str::trim).filter_map(|line| line.strip_prefix(start));
        lines.next().map(str::to_owned)
    };
    (line(&explanation, "x1, triggered by #1 `Begin`").unwrap(), line(&report, "x1 work"))
}

// S35
#[tokio::test]
async fn a_report_says_why_a_failure_was_final_unless_its_class_does() {
    let (explained, reported) = said(RetryPolicy::standard(), &[ErrorClass::Permanent]).await;
    let permanent = ": failed (permanent): no 1";
    assert_eq!((&*explained, reported.as_deref()), (permanent, Some(permanent)));

    let hasty = RetryPolicy::standard().budget(Duration::from_secs(9));
    let (explained, reported) = said(hasty, &[ErrorClass::Transient]).await;
    let budget = ": failed (transient): no 1; its retry budget of 9s is used up (`RetryPolicy::budget`)";
    assert_eq!((&*explained, reported.as_deref()), (budget, Some(budget)));

    let (explained, reported) = said(RetryPolicy::standard(), &[ErrorClass::Model; 2]).await;
    let used_up = ", failed once (model: no 1), retried after 10s: failed (model): no 2; its 1 retry is used up (`retry`)";
    assert_eq!((&*explained, reported.as_deref()), (used_up, Some(&used_up.replacen(", ", " ", 1)[..])));
}

// S35
#[tokio::test]
async fn the_journal_and_the_trace_have_why_a_failure_was_final() {
    let store = Arc::new(MemoryStore::default());
    let (run, _) =
        flaky(&[ErrorClass::Tool; 3], |scenario| scenario.engine(|engine| engine.store(store.clone()))).await;
    let not_retried = NotRetried::UsedUp { retries: 2 };
    let records = store.read(&"scenario".into(), Position(0), usize::MAX).await.unwrap();
    let written = records.iter().find_map(|record| match record {
        Record::ExecutionFailed { not_retried, .. } => Some(*not_retried),
        _ => None,
    });
    assert_eq!(written, Some(not_retried));
    let json = serde_json::to_value(&run.report().trace[0].outcome).unwrap();
    assert_eq!(json["failed"]["not_retried"], serde_json::json!({ "used_up": { "retries": 2 } }));
}
