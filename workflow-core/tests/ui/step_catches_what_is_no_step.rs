use workflow_core::StepFailed;
use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    fn index(&self) {}

    #[step]
    async fn retrieve(&self, _question: &Question) -> Facts {
        Facts
    }

    #[step(catches = [index])]
    async fn fallback(&self, _failed: &StepFailed) -> Facts {
        Facts
    }

    #[step]
    async fn answer(&self, _facts: &Facts) -> Answer {
        Answer
    }
}

fn main() {}
