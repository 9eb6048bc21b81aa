use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Ping;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Pong;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Left;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Right;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn begin(&self, question: &Question) -> Ping {
        Ping
    }

    #[step]
    async fn ping(&self, ping: &Ping) -> Pong {
        Pong
    }

    #[step]
    async fn pong(&self, pong: &Pong) -> Ping {
        Ping
    }

    #[step]
    async fn left(&self, right: &Right) -> Left {
        Left
    }

    #[step]
    async fn right(&self, left: &Left) -> (Right, Option<Answer>) {
        (Right, Some(Answer))
    }
}

fn main() {}
