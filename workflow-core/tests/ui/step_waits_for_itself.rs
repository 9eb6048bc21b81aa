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

#[workflow]
impl Research {
    #[step(loops)]
    async fn improve(&self, _draft: &Draft) -> Draft {
        Draft
    }

    #[step]
    async fn answer(&self, _question: &Question, _draft: &Draft) -> Answer {
        Answer
    }
}

fn main() {}
