#![deny(deprecated)]

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

type Eight<T> = (T, T, T, T, T, T, T, T);

struct Large;

#[workflow]
impl Large {
    #[step]
    async fn parts(&self, _question: &Question) -> Eight<Eight<Eight<FanOut<Part>>>> {
        unreachable!("only the type counts")
    }

    #[step]
    async fn answer(&self, _parts: Gather<Part>) -> Answer {
        Answer
    }
}

struct Fits;

#[workflow]
impl Fits {
    #[step]
    async fn parts(&self, _question: &Question) -> Eight<Eight<FanOut<Part>>> {
        unreachable!("only the type counts")
    }

    #[step]
    async fn answer(&self, _parts: Gather<Part>, _answers: Gather<Answer>) -> Answer {
        Answer
    }
}

fn main() {}
