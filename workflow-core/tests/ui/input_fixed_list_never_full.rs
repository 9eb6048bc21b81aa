use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn write(&self, _question: &Question) -> Draft {
        Draft
    }

    #[step]
    async fn compare(&self, _drafts: FixedList<Draft, 3>) -> Facts {
        Facts
    }

    #[step]
    async fn answer(&self, _questions: FixedList<Question, 2>, _facts: FixedList<Facts, 1>) -> Answer {
        Answer
    }
}

fn main() {}
