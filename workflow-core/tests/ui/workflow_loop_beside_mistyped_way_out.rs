use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Ping;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Pong;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Pang;

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
    async fn answer(&self, pang: &Pang) -> Answer {
        Answer
    }
}

fn main() {}
