use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Hint;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }

    #[step(reruns)]
    async fn note(&self, _hint: Option<&Hint>) {}
}

fn main() {}
