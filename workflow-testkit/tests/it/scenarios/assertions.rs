//! Assertions pass, or fail with a reason and the run's actions.

use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_testkit::Scenario;

use crate::support::{Answer, Fact, Looking, Outline, Question, Research, failed, question};

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
