#![deny(unused)]

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn answer(&self, question: &Question, info: &RunInfo) -> Answer {
        let local = 1;
        Answer
    }
}

fn main() {
    let _ended = Research.run(Question);
}
