//! Transcripts are the same each time and hold what can be seen of a run.

use expect_test::expect;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::support::{Answer, Fact, Looking, Question, Research, question};

#[tokio::test]
async fn a_transcript_holds_events_executions_and_what_was_shown() {
    let run = Scenario::new(Research).start(question()).await;
    expect![[r"
        #1 Question
        x1 look_up by #1: succeeded
           showed Looking
           showed Looking
        x2 outline by #1: succeeded
        #2 Fact of x1
        #3 Outline of x2
        x3 answer by #3 with #2: succeeded
        #4 Answer of x3
        completed
    "]]
    .assert_eq(&run.transcript());
}

/// Fails to look up, shows it, and answers all the same or not.
struct Failing {
    answers: bool,
}

#[workflow]
impl Failing {
    #[step(on_error = "continue")]
    async fn look_up(&self, _question: &Question, display: &Display) -> Result<Fact, StepError> {
        display.show(Looking(1));
        Err(StepError::tool("nothing found"))
    }

    #[step(reruns)]
    async fn answer(&self, question: &Question, fact: Option<&Fact>) -> Option<Answer> {
        let text = fact.map_or(&question.0, |fact| &fact.0);
        self.answers.then(|| Answer(text.clone()))
    }
}

#[tokio::test]
async fn a_transcript_says_what_was_taken_back_and_that_a_run_was_degraded() {
    let run = Scenario::new(Failing { answers: true }).start(question()).await;
    expect![[r"
        #1 Question
        x1 look_up by #1: failed (tool): nothing found
           showed Looking
           took back what it showed
        x2 answer by #1: succeeded
        #2 Answer of x2
        completed, degraded
    "]]
    .assert_eq(&run.transcript());
}

#[tokio::test]
async fn a_transcript_of_a_stalled_run_holds_its_stall_report() {
    let run = Scenario::new(Failing { answers: false }).start(question()).await;
    expect![[r"
        #1 Question
        x1 look_up by #1: failed (tool): nothing found
           showed Looking
           took back what it showed
        x2 answer by #1: succeeded
        stalled
        the run of `Failing` stalled: nothing runs and nothing can arrive
        - no `Answer` ended the run
            `answer` ran once and emitted nothing
        - `look_up` failed: nothing found
    "]]
    .assert_eq(&run.transcript());
}
