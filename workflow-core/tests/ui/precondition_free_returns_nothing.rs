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

#[precondition]
fn ready(_question: &Question) {}

struct Research;

#[workflow]
impl Research {
    #[step(precondition = ready)]
    async fn respond(&self, question: &Question) -> Answer {
        Answer(question.text.clone())
    }
}

fn main() {}
