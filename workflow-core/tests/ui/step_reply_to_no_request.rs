use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Found;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn find(&self, _question: &Question) -> Found {
        Found
    }

    #[step]
    async fn answer(&self, _found: Reply<Found>) -> Answer {
        Answer
    }

    #[step]
    async fn give_up(&self, _found: &Expired<Found>) -> Answer {
        Answer
    }
}

fn main() {}
