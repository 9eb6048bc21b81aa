//! The test answers a mocked step call by call.

use std::sync::Arc;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{RetryPolicy, RunError};
use workflow_testkit::{Call, Mock, Scenario};

use crate::support::{Answer, Fact, Looking, Outline, Question, Research, panic_of, question};

#[tokio::test]
async fn a_call_gives_what_the_step_is_bound_to_and_takes_what_it_returns() {
    let (mock, mut handle) = Mock::pair();
    let run = tokio::spawn(Scenario::new(Research).mock("answer", mock).start(question()).into_future());
    let mut call = handle.next_call().await.unwrap();
    assert_eq!((call.step(), call.attempt()), ("answer", 1));
    let outline = call.input::<Arc<Outline>>();
    let fact = call.input::<&Fact>();
    let answer = Answer(format!("{} {}", fact.0, outline.points));
    call.answer(answer.clone());
    run.await.unwrap().assert_output(&answer);
    assert!(handle.next_call().await.is_none());
}

#[tokio::test]
async fn items_displayed_by_a_call_belong_to_its_step() {
    let (mock, mut handle) = Mock::pair();
    let run = tokio::spawn(Scenario::new(Research).mock("look_up", mock).start(question()).into_future());
    let mut call = handle.next_call().await.unwrap();
    call.input::<&Display>().show(Looking(5));
    call.answer(Fact("late".into()));
    run.await.unwrap().assert_displayed(&[Looking(5)]);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Turn(u32);

/// Loops while it waits for its answer.
struct Turning;

#[workflow]
impl Turning {
    #[step]
    async fn wait(&self, question: &Question) -> Answer {
        Answer(question.0.clone())
    }

    #[step]
    async fn begin(&self, _question: &Question) -> Turn {
        Turn(1)
    }

    #[step(loops)]
    async fn turn(&self, _turn: &Turn) -> Option<Turn> {
        None
    }
}

#[tokio::test]
async fn the_clock_stands_still_while_a_call_is_out() {
    let (wait, mut waits) = Mock::pair();
    let (turn, mut turns) = Mock::pair();
    let scenario = Scenario::new(Turning).mock("wait", wait).mock("turn", turn);
    let run = tokio::spawn(scenario.start(question()).into_future());
    let call = waits.next_call().await.unwrap();
    // Between two turns the run is idle; if the clock did not stand still, the scenario would give up.
    for number in 2..=50 {
        turns.next_call().await.unwrap().answer(Turn(number));
    }
    call.answer(Answer("late".into()));
    let run = run.await.unwrap();
    run.assert_output(&Answer("late".into()));
    assert_eq!(run.elapsed(), Duration::ZERO);
}

async fn failed_by(answer: impl FnOnce(Call)) -> String {
    let (mock, mut handle) = Mock::pair();
    let scenario = Scenario::new(Research).retry(RetryPolicy::none()).mock("look_up", mock);
    let run = scenario.start(question()).into_future();
    let (run, ()) = tokio::join!(run, async { answer(handle.next_call().await.expect("it is called")) });
    let Err(RunError::StepFailed { source, class, .. }) = run.outcome() else {
        panic!("{}", run.transcript())
    };
    format!("{class}: {source}")
}

#[tokio::test]
async fn a_call_can_be_failed() {
    assert_eq!(failed_by(|call| call.fail(StepError::tool("no"))).await, "tool: no");
    assert_eq!(failed_by(|call| call.answer(Err::<Fact, _>(StepError::model("no")))).await, "model: no");
}

#[tokio::test]
async fn a_call_that_is_dropped_or_never_received_fails() {
    let dropped = "permanent: the test dropped the call without an answer";
    assert_eq!(failed_by(drop).await, dropped);
    let (mock, handle) = Mock::pair();
    drop(handle);
    let run = Scenario::new(Research).mock("look_up", mock).start(question()).await;
    assert!(
        run.transcript().contains("failed (permanent): the test dropped the call"),
        "{}",
        run.transcript()
    );
}

#[tokio::test]
async fn inputs_and_outputs_that_do_not_fit_are_reported_at_the_call() {
    let (mock, mut handle) = Mock::pair();
    let run = tokio::spawn(Scenario::new(Research).mock("look_up", mock).start(question()).into_future());
    let mut call = handle.next_call().await.unwrap();
    let takes = panic_of(|| drop(call.input::<Fact>()));
    assert_eq!(takes, "`look_up` does not take `Fact`: it takes `Question`, `Display`");
    let returns = panic_of(|| call.answer(Outline { points: 1 }));
    assert_eq!(returns, "the answer does not fit: `look_up` does not return `Outline`: it returns `Fact`");
    run.await.unwrap().assert_executions("answer", 0);
}

#[tokio::test]
async fn an_answer_that_the_step_could_not_return_is_reported_at_the_call() {
    let (mock, mut handle) = Mock::pair();
    let run = tokio::spawn(Scenario::new(Research).mock("look_up", mock).start(question()).into_future());
    let call = handle.next_call().await.unwrap();
    let returns = panic_of(|| call.answer(()));
    assert_eq!(returns, "the answer does not fit: `look_up` does not return `()`: it returns `Fact`");
    run.await.unwrap().assert_executions("answer", 0);
}

/// Drops the call of `slow` by ending.
struct Racing;

#[workflow]
impl Racing {
    #[step]
    async fn slow(&self, question: &Question) -> Answer {
        Answer(question.0.clone())
    }

    #[step]
    async fn fast(&self, question: &Question) -> Answer {
        Answer(question.0.clone())
    }
}

#[tokio::test]
async fn the_answer_to_a_call_of_a_dropped_execution_has_no_effect() {
    let (mock, mut handle) = Mock::pair();
    let run = Scenario::new(Racing).mock("slow", mock).start(question()).await;
    run.assert_output(&Answer("why".into()));
    handle.next_call().await.unwrap().answer(Answer("late".into()));
    assert!(run.transcript().contains("x1 slow: dropped\n"), "{}", run.transcript());
}
