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

struct Research<'a>(&'a str);

#[workflow]
impl<'a> Research<'a> {
    #[step]
    async fn respond(&self, question: &Question) -> Answer {
        Answer(question.text.clone())
    }
}

fn main() {}
