use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

#[precondition]
fn enough(_facts: &Facts) -> bool {
    true
}

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn look_up(&self, _question: &Question) -> Facts {
        Facts
    }

    #[step(precondition = enough)]
    async fn answer(&self, _facts: &List<Facts>) -> Answer {
        Answer
    }
}

fn main() {}
