use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Count;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn split(&self, _question: &Question) -> (Count, FanOut<Part>) {
        (Count, [Part].into_iter().collect())
    }

    #[step]
    async fn answer(&self, _count: &Count) -> Answer {
        Answer
    }
}

fn main() {}
