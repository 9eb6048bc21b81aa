use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug)]
struct Approval;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(request, reply = Approval)]
struct Ask;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn ask(&self, _question: &Question) -> Ask {
        Ask
    }

    #[step]
    async fn answer(&self, _reply: Reply<Ask>) -> Answer {
        Answer
    }
}

fn main() {}
