use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Big;

struct Research;

#[workflow]
impl Research {
    #[step(reruns)]
    async fn answer(&self, _question: &Question, _big: Option<Big>) -> Answer {
        Answer
    }
}

fn main() {}
