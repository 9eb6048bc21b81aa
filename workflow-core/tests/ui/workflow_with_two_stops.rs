use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question {
    text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Retrieved(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer(String);

struct Research;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Failure;

#[workflow]
impl Research {
    #[step]
    async fn retrieve(&self, question: &Question) -> Retrieved {
        Retrieved(question.text.len() as u32)
    }

    #[step]
    async fn respond(&self, retrieved: &Retrieved) -> Answer {
        Answer(retrieved.0.to_string())
    }

    #[step]
    async fn give_up(&self, question: &Question) -> Option<Failure> {
        question.text.is_empty().then_some(Failure)
    }
}

fn main() {}
