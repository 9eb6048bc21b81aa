use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Score;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Summary;

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
    async fn summarise(&self, _question: &Question) -> Summary {
        Summary
    }

    #[step]
    async fn answer(&self, _scores: Gather<Summary>) -> Answer {
        Answer
    }
}

fn main() {}
