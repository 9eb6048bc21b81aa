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

#[workflow(output = Answer)]
impl Research {
    #[step]
    async fn look_up(&self, _question: &Question) -> Facts {
        Facts
    }

    #[step]
    async fn note(&self, _facts: &Facts) {}
}

fn main() {}
