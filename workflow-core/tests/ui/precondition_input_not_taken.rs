use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Hint;

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

    #[precondition]
    fn ready(_question: &Question, _hint: Option<&Hint>) -> bool {
        true
    }

    #[step(precondition = ready)]
    async fn answer(&self, _facts: &Facts, _question: &Question) -> Answer {
        Answer
    }
}

fn main() {}
