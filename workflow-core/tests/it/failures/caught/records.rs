//! Caught failures in journal, report, explanation, stall and drawing.

#![expect(clippy::needless_raw_string_hashes, reason = "`expect-test` writes expected texts this way")]

use std::sync::Arc;

use expect_test::{expect, expect_file};
use workflow_core::draw::EdgeKind;
use workflow_core::store::{MemoryStore, Record};

use super::*;

// S34
#[tokio::test(flavor = "current_thread")]
async fn the_trace_says_by_which_executions_a_failure_was_caught() {
    let run = Scenario::new(Research { fails: true }).start(Begin(1)).await;
    let trace = &run.report().trace;
    let failed = trace.iter().find(|trace| &*trace.step == "retrieve").unwrap();
    let fallback = trace.iter().find(|trace| &*trace.step == "fallback").unwrap();
    assert_eq!(failed.emitted, []);
    assert_eq!(failed.failure, Some(fallback.trigger));
    assert_eq!(failed.caught_by, [fallback.execution]);
    assert_eq!((fallback.failure, &fallback.caught_by[..]), (None, &[][..]));
    let text = run.report().to_string();
    assert!(text.contains("completed, degraded\n"), "{text}");
    assert!(text.contains("\n1 failure of retrieve caught by fallback\n"), "{text}");
    assert!(text.ends_with("\nx1 retrieve: failed (tool): the index is locked\n"), "{text}");
}

// S38
#[tokio::test(flavor = "current_thread")]
async fn the_journal_has_the_failed_execution_and_then_its_event() {
    let store = Arc::new(MemoryStore::default());
    let engine =
        Engine::builder().workflow(Research { fails: true }).store(Arc::clone(&store)).build().unwrap();
    let run = engine.start::<Research>(Begin(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(100));
    let records = engine.history(run.id()).await.unwrap();
    let lines = records.iter().filter_map(|record| match record {
        Record::ExecutionFailed { execution, step, .. } => Some(format!("{execution} of {step} failed")),
        Record::EventLogged { seq, cause, event, .. } => {
            Some(format!("{seq} {} by {cause:?}: {}", event.name(), event.to_json().unwrap()))
        }
        _ => None,
    });
    expect![[r##"
        #1 Begin by Outside: 1
        x1 of retrieve failed
        #2 StepFailed by Failure(ExecutionId(1)): {"attempts":1,"class":"tool","error":"the index is locked","execution":1,"step":"retrieve"}
        #3 Part by Execution(ExecutionId(2)): 1
        #4 Item by Execution(ExecutionId(3)): 100
        #5 Done by Execution(ExecutionId(4)): 100"##]].assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[tokio::test(flavor = "current_thread")]
async fn an_explanation_says_which_failure_triggered_a_step_and_why_another_had_none() {
    let run = Scenario::new(Research { fails: true }).start(Begin(1)).await;
    expect![[r#"
        - `retrieve` ran once
            x1, triggered by #1 `Begin`: failed (tool): the index is locked
        - `fallback` ran once
            x3, triggered by #2 `retrieve.failed`
        - `aside` ran once
            x2, triggered by #1 `Begin`
        - `answer` ran once
            x4, triggered by #4 `Item` of `fallback`, with #3 `Part` of `aside`
            not for #3 `Part` of `aside`: it waited for `Item`"#]]
    .assert_eq(&without_id(&run.explanation().unwrap().to_string()));
    let run = Scenario::new(Research { fails: false }).start(Begin(1)).await;
    expect![[r#"
        - `retrieve` ran once
            x1, triggered by #1 `Begin`
        - `fallback` did not run
            it needs `StepFailed`
                `retrieve` did not fail
        - `aside` ran once
            x2, triggered by #1 `Begin`
        - `answer` ran once
            x3, triggered by #3 `Part` of `aside`, with #2 `Item` of `retrieve`
            not for #2 `Item` of `retrieve`: it waited for `Part`"#]]
    .assert_eq(&without_id(&run.explanation().unwrap().to_string()));
}

/// The first line names the run.
fn without_id(text: &str) -> String {
    text.lines().skip(1).collect::<Vec<_>>().join("\n")
}

/// Nothing fails, and only failures would end the run.
struct Flawless {
    fails_in_branches: bool,
}

#[workflow]
impl Flawless {
    #[step]
    async fn one(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Part> {
        (0..begin.0).map(Part).collect()
    }

    #[step]
    async fn two(&self, _part: &Part) -> Result<(), StepError> {
        if self.fails_in_branches { Err(StepError::permanent("not now")) } else { Ok(()) }
    }

    #[step]
    async fn gathered(&self, _begin: &Begin, _parts: &Gather<Part>) {}

    #[step(catches = [one, two])]
    async fn end(&self, _item: &Item, failed: &StepFailed, _gathered: &Gather<Part>) -> Done {
        Done(failed.attempts)
    }
}

// S30
#[tokio::test(flavor = "current_thread")]
async fn a_stall_report_says_that_no_caught_step_failed() {
    let run = Scenario::new(Flawless { fails_in_branches: false }).start(Begin(2)).await;
    expect![[r#"
        the run of `Flawless` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `end` did not run
        - `end` did not run
            it needs `StepFailed`
                neither `one` nor `two` failed"#]]
    .assert_eq(&run.stall().unwrap().to_string());
}

// S30, S49
#[tokio::test(flavor = "current_thread")]
async fn a_stall_report_says_that_a_failure_stayed_in_its_branch() {
    let run = Scenario::new(Flawless { fails_in_branches: true }).start(Begin(2)).await;
    run.assert_quality(Quality::Failed);
    expect![[r#"
        the run of `Flawless` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `end` did not run
        - `end` did not run
            it needs the gathered `Part`
                #7 the gathered `Part` of `split` came after the branch of #3 `Part` of `split` had ended
        - `two` failed twice in the branches of #3 `Part` and #4 `Part`, the last time: not now"#]]
    .assert_eq(&run.stall().unwrap().to_string());
}

/// Waits for two failures, each in a branch of its own.
struct Twice;

#[workflow]
impl Twice {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Part> {
        (0..begin.0).map(Part).collect()
    }

    #[step]
    async fn work(&self, _part: &Part) -> Result<(), StepError> {
        Err(StepError::permanent("not now"))
    }

    #[step]
    async fn gathered(&self, _parts: &Gather<Part>) {}

    #[step(catches = [work])]
    async fn end(&self, failures: &FixedList<StepFailed, 2>) -> Done {
        Done(failures.to_array().map(|failed| failed.attempts).iter().sum())
    }
}

// S30, S45
#[tokio::test(flavor = "current_thread")]
async fn a_stall_report_says_where_failures_are_that_are_not_seen() {
    let run = Scenario::new(Twice).start(Begin(2)).await;
    expect![[r#"
        the run of `Twice` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `end` did not run
        - `end` did not run
            it needs 2 of `StepFailed` and has 1
                `work` failed once in other branches of a fan-out, where a failure stays: it is not seen from here
        - `work` failed twice in the branches of #2 `Part` and #3 `Part`, the last time: not now"#]].assert_eq(&run.stall().unwrap().to_string());
}

#[tokio::test(flavor = "current_thread")]
async fn a_drawing_shows_failures_as_edges_of_their_own_kind() {
    let run = Scenario::new(Research { fails: true }).start(Begin(1)).await;
    let graph = Research::graph().with_report(run.report());
    let failures: Vec<(&str, &str, &str)> = (graph.edges.iter())
        .filter(|edge| edge.kind == EdgeKind::Failure)
        .map(|edge| (&*edge.from, &*edge.to, &*edge.event))
        .collect();
    assert_eq!(failures, [("s0", "s1", "retrieve.failed")]);
    expect_file!["../../drawings/failures.mmd"].assert_eq(&graph.to_mermaid());
    expect_file!["../../drawings/failures.dot"].assert_eq(&graph.to_dot());
    let json = serde_json::to_string_pretty(&graph.to_json()).unwrap() + "\n";
    expect_file!["../../drawings/failures.json"].assert_eq(&json);
}

#[test]
fn a_step_that_may_be_run_by_a_failure_is_forecast_to_run_or_not() {
    let forecast = |step: &str| {
        let graph = Research::graph();
        let node = graph.nodes.iter().find(|node| &*node.name == step).unwrap();
        node.forecast.as_ref().unwrap().to_string()
    };
    assert_eq!(["retrieve", "fallback", "aside"].map(forecast), ["1", "0-1", "1"]);
    // The part joins each of two items, as far as the table can tell.
    assert_eq!(forecast("answer"), "1-2");
}
