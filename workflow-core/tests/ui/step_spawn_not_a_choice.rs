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

#[workflow]
impl Research {
    #[step]
    async fn retrieve(&self, question: &Question) -> Retrieved {
        Retrieved(question.text.len() as u32)
    }

    #[step(spawn = "no")]
    async fn respond(&self, retrieved: &Retrieved) -> Answer {
        Answer(retrieved.0.to_string())
    }
}

fn takes<W: Workflow<Output = Answer>>(_: W) {}

fn main() {
    takes(Research);
}
