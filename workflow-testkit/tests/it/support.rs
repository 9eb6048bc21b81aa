//! The workflow of most scenarios, and tools for failing scenarios.

use std::time::Duration;

use futures::FutureExt as _;
use workflow_core::prelude::*;
use workflow_testkit::{Start, TestRun, Tested};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Question(pub(crate) String);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
pub(crate) struct Fact(pub(crate) String);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
pub(crate) struct Outline {
    pub(crate) points: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Answer(pub(crate) String);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(display)]
pub(crate) struct Looking(pub(crate) u32);

/// Looks up, outlines, answers: each step takes an hour.
pub(crate) struct Research;

#[workflow]
impl Research {
    #[step]
    async fn look_up(&self, question: &Question, display: &Display) -> Fact {
        display.show(Looking(1));
        tokio::time::sleep(Duration::from_hours(1)).await;
        display.show(Looking(2));
        Fact(question.0.clone())
    }

    #[step]
    async fn outline(&self, question: &Question) -> Outline {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Outline { points: question.0.len() }
    }

    #[step]
    async fn answer(&self, fact: &Fact, outline: &Outline) -> Answer {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Answer(format!("{}, {} points", fact.0, outline.points))
    }
}

pub(crate) fn question() -> Question {
    Question("why".into())
}

/// The failure of a scenario.
pub(crate) async fn failure<W: Tested>(start: Start<W>) -> String {
    let ended = std::panic::AssertUnwindSafe(start.into_future()).catch_unwind().await;
    text(ended.expect_err("the scenario fails"))
}

/// The failure of an assertion on a run.
pub(crate) fn failed<W: Tested>(run: &TestRun<W>, assertion: impl FnOnce(&TestRun<W>)) -> String {
    panic_of(|| assertion(run))
}

/// The message of a panic.
pub(crate) fn panic_of<T>(panics: impl FnOnce() -> T) -> String {
    text(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).err().expect("it panics"))
}

fn text(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().expect("panics are texts").to_string(),
    }
}
