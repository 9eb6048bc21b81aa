use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Review;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn answer(&self, _question: &Question, _review: &Review) -> Answer {
        Answer
    }

    #[step]
    async fn write(&self, _question: &Question, _review: &Review) -> Draft {
        Draft
    }

    #[step]
    async fn review(&self, _draft: &Draft) -> Review {
        Review
    }
}

fn main() {}
