//! Initial contexts, and names of runs.

use workflow_core::RunOptions;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::support::{Answer, Question, question};

struct Counting;

#[workflow]
impl Counting {
    #[step]
    async fn answer(
        &self,
        _question: &Question,
        run: &RunContext,
        thread: &ThreadContext,
        info: &RunInfo,
    ) -> Result<Answer, StepError> {
        let (rounds, name) = (run.increment("rounds", 1).await?, thread.get::<String>("name").await?);
        Ok(Answer(format!("{rounds} {} {}/{}", name.unwrap_or_default(), info.thread(), info.run())))
    }
}

#[tokio::test]
async fn contexts_hold_what_was_put_there_before_the_run() {
    let scenario = Scenario::new(Counting).run_context("rounds", 41).thread_context("name", "Ada".to_owned());
    scenario.start(question()).await.assert_output(&Answer("42 Ada scenario/scenario".into()));
}

#[tokio::test]
async fn contexts_are_those_of_the_run_and_thread_that_the_options_name() {
    let options = RunOptions::new().id("r").thread("t");
    let scenario = Scenario::new(Counting).run_context("rounds", 1).run_context("rounds", 2).options(options);
    scenario.start(question()).await.assert_output(&Answer("3  t/r".into()));
}
