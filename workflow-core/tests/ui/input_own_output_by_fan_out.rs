use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn split(&self, _question: &Question) -> Part {
        Part
    }

    #[step]
    async fn split_again(&self, _part: &Part) -> FanOut<Part> {
        [Part].into_iter().collect()
    }

    #[step]
    async fn answer(&self, _parts: Gather<Part>) -> Answer {
        Answer
    }
}

fn main() {}
