use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow(output = Draft)]
impl Research {
    #[step]
    async fn write(&self, _question: &Question) -> Draft {
        Draft
    }

    #[step]
    async fn answer(&self, _draft: &Draft) -> Answer {
        Answer
    }
}

fn main() {}
