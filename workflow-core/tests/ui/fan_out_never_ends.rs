use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Score;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn split(&self, _question: &Question) -> FanOut<Part> {
        [Part].into_iter().collect()
    }

    #[step]
    async fn score(&self, _part: &Part) -> Score {
        Score
    }

    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }
}

fn main() {}
