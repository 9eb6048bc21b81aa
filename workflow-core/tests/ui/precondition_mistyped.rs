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
    #[precondition]
    fn ready(&self, _question: &Question) -> bool {
        true
    }

    #[step(precondition = redy)]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }
}

fn main() {}
