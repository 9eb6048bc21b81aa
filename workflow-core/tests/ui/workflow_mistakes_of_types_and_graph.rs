use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn draft(&self, _question: &Question, _name: String) -> Draft {
        Draft
    }

    #[step]
    async fn answer(&self, _draft: &Draft, _facts: &Facts) -> Answer {
        Answer
    }

    #[step]
    async fn close(&self, _answer: &Answer) {}
}

fn main() {}
