//! A parameter for an event wires its step. That the body does not use it is no mistake.

#![deny(warnings)]

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Found;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn find(&self, question: &Question) -> Vec<Found> {
        vec![Found]
    }

    #[step]
    async fn answer(&self, question: Question, found: FixedList<Found, 1>) -> Answer {
        Answer
    }
}

#[test]
fn compiles_and_runs() {
    let _ended = Research.run(Question);
}
