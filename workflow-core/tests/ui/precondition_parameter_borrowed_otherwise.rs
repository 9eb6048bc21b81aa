use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[precondition]
fn asked(_question: &mut Question) -> bool {
    true
}

#[workflow]
impl Research {
    #[precondition]
    fn ready(&self, _question: &Option<Question>) -> bool {
        true
    }

    #[step(precondition = ready)]
    async fn answer(&self, _question: Option<&Question>) -> Answer {
        Answer
    }

    #[step(precondition = asked)]
    async fn note(&self, _question: &Question) {}
}

fn main() {}
