//! Assertions pass, or fail with a reason and the run's actions.

use std::error::Error;
use std::fmt;

use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_testkit::{Scenario, TestRun, explore};

use crate::support::{Answer, Fact, Looking, Outline, Question, Research, failed, panic_of, question};

#[tokio::test]
async fn a_run_is_asserted_on_by_what_it_did() {
    let run = Scenario::new(Research).start(question()).await;
    run.assert_output(&Answer("why, 3 points".into()));
    run.assert_executions("look_up", 1);
    run.assert_order("look_up", "answer");
    run.assert_order("outline", "answer");
    run.assert_emitted::<Fact>(1);
    run.assert_emitted_events(&[Outline { points: 3 }]);
    assert_eq!(*run.emitted::<Outline>()[0], Outline { points: 3 });
    run.assert_displayed(&[Looking(1), Looking(2)]);
    run.assert_quality(Quality::Clean);
}

#[tokio::test]
async fn an_assertion_that_fails_prints_the_transcript_and_the_explanation() {
    let run = Scenario::new(Research).start(question()).await;
    let failures = [
        failed(&run, |run| run.assert_output(&Answer("because".into()))),
        failed(&run, |run| run.assert_executions("answer", 2)),
        failed(&run, |run| run.assert_order("answer", "look_up")),
        failed(&run, |run| run.assert_order("look_up", "outline")),
        failed(&run, |run| run.assert_emitted::<Fact>(0)),
        failed(&run, |run| run.assert_emitted_events(&[Outline { points: 4 }])),
        failed(&run, |run| run.assert_emitted_events::<Outline>(&[])),
        failed(&run, |run| run.assert_displayed(&[Looking(2)])),
        failed(&run, |run| run.assert_quality(Quality::Degraded)),
        failed(&run, |run| run.assert_stalled("it needs")),
        failed(&run, |run| run.assert_waiting()),
        failed(&run, |run| run.assert_executions("anwser", 1)),
    ];
    let explanation = run.explanation().unwrap().to_string();
    for failure in failures {
        assert!(failure.contains(&run.transcript()) && failure.contains(&explanation), "{failure}");
    }
}

/// Finds nothing, so there is no answer.
struct Fruitless;

#[workflow]
impl Fruitless {
    #[step(on_error = "continue")]
    async fn look_up(&self, _question: &Question, display: &Display) -> Result<Fact, StepError> {
        display.show(Looking(1));
        Err(StepError::rejected("nothing found"))
    }

    #[step]
    async fn answer(&self, fact: &Fact) -> Answer {
        Answer(fact.0.clone())
    }
}

#[tokio::test]
async fn a_stall_is_asserted_on_by_what_its_report_says() {
    let run = Scenario::new(Fruitless).start(question()).await;
    run.assert_stalled("it needs `Fact`");
    run.assert_quality(Quality::Failed);
    run.assert_executions("answer", 0);
    run.assert_displayed::<Looking>(&[]);
    assert_eq!(run.stall().unwrap().idle.len(), 1);
    let failure = failed(&run, |run| run.assert_stalled("it needs `Outline`"));
    assert!(
        failure.starts_with("the report does not say `it needs `Outline``\nthe run did this:\n"),
        "{failure}"
    );
    let failure = failed(&run, |run| run.assert_output(&Answer("why".into())));
    assert!(failure.contains("stalled"), "{failure}");
    let failure = failed(&run, |run| run.assert_order("look_up", "answer"));
    assert!(failure.starts_with("`answer` was never executed\n"), "{failure}");
}

/// Fails at its only step, with a chain of errors.
struct Broken;

#[workflow]
impl Broken {
    #[step]
    async fn answer(&self, _question: &Question) -> Result<Answer, StepError> {
        let source = std::io::Error::other("the disk is gone");
        Err(StepError::rejected(Closed { source }))
    }
}

#[derive(Debug)]
struct Closed {
    source: std::io::Error,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the library is closed")
    }
}

impl Error for Closed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// Every assertion that a run without an output can fail.
fn fail_all<W: Workflow<Output = Answer>>(run: &TestRun<W>) -> [String; 8] {
    [
        failed(run, |run| run.assert_output(&Answer("why".into()))),
        failed(run, |run| run.assert_executions("answer", 7)),
        failed(run, |run| run.assert_order("answer", "answer")),
        failed(run, |run| run.assert_emitted::<Fact>(7)),
        failed(run, |run| run.assert_emitted_events(&[Outline { points: 4 }])),
        failed(run, |run| run.assert_displayed(&[Looking(7)])),
        failed(run, |run| run.assert_quality(Quality::Clean)),
        failed(run, |run| run.assert_waiting()),
    ]
}

#[tokio::test]
async fn every_assertion_on_a_run_that_stalled_prints_why() {
    let run = Scenario::new(Fruitless).start(question()).await;
    let why = "it needs `Fact`\n        `look_up` failed: nothing found";
    for failure in fail_all(&run) {
        assert!(failure.contains("- `answer` did not run\n") && failure.contains(why), "{failure}");
        assert!(!failure.contains("flowchart"), "{failure}");
    }
}

#[tokio::test]
async fn every_assertion_on_a_run_that_failed_prints_why() {
    let run = Scenario::new(Broken).start(question()).await;
    let why = "x1, triggered by #1 `Question`: failed (rejected): the library is closed: the disk is gone";
    for failure in fail_all(&run) {
        assert!(failure.contains(why), "{failure}");
    }
    let failure = failed(&run, |run| run.assert_stalled("it needs"));
    assert!(failure.contains(why), "{failure}");
}

#[tokio::test]
async fn a_scenario_that_is_drawn_prints_its_picture_with_every_assertion_that_fails() {
    let run = Scenario::new(Fruitless).draw_on_panic().start(question()).await;
    let drawn = Fruitless::graph().with_report(run.report()).to_mermaid();
    let picture = format!("\n```mermaid\n{drawn}```\n");
    for failure in fail_all(&run) {
        assert!(failure.contains("it needs `Fact`") && failure.contains(&picture), "{failure}");
    }
    let failure = failed(&run, |run| run.assert_stalled("it needs `Outline`"));
    assert!(failure.ends_with(&picture), "{failure}");
}

#[test]
fn an_explored_scenario_that_is_drawn_prints_its_picture_too() {
    let scenario = || Scenario::new(Broken).draw_on_panic().start(question());
    let failure = panic_of(|| explore(scenario).assert(|run| run.assert_output(&Answer("why".into()))));
    assert!(failure.contains("\n```mermaid\nflowchart TD\n"), "{failure}");
}
