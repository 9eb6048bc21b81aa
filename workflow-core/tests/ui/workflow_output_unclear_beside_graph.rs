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
    async fn look_up(&self, question: &Question) -> Result<Facts, u8> {
        Ok(Facts)
    }

    #[step]
    async fn improve(&self, draft: &Draft) -> Draft {
        Draft
    }

    #[step]
    async fn answer(&self, draft: &Draft, none: FixedList<Draft, 0>) -> Answer {
        Answer
    }

    #[step]
    async fn close(&self, answer: &Answer) {}
}

fn main() {}
