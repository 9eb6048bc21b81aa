use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Refusal;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn answer(&self, _question: &Question) -> (Option<Answer>, Option<Refusal>) {
        (None, None)
    }
}

fn main() {}
