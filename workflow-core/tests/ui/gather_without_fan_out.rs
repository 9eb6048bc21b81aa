use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Score;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn score(&self, _question: &Question) -> Vec<Score> {
        vec![Score]
    }

    #[step]
    async fn answer(&self, _scores: Gather<Score>) -> Answer {
        Answer
    }
}

fn main() {}
