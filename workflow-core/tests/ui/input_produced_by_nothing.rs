use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Fact;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn look_up(&self, _question: &Question) -> Facts {
        Facts
    }

    #[step]
    async fn answer(&self, _question: &Question, _fact: &Fact) -> Answer {
        Answer
    }
}

fn main() {}
