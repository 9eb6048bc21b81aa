use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Event)]
struct Found;

#[derive(Debug, Serialize, Event)]
#[event(request, reply = bool)]
struct Ask;

#[derive(Debug, Event)]
#[event(display)]
struct Progress;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn find(&self, _question: &Question, _display: &Display) -> Option<Found> {
        Some(Found)
    }

    #[step]
    async fn ask(&self, _found: &Found) -> Ask {
        Ask
    }

    #[step]
    async fn answer(&self, _found: Found, _reply: Reply<Ask>) -> Answer {
        Answer
    }
}

fn main() {}
