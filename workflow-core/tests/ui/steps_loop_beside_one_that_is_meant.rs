use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Note;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Review;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Ping;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Pong;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn begin(&self, _question: &Question) -> (Draft, Ping) {
        (Draft, Ping)
    }

    #[step]
    async fn review(&self, _draft: &Draft) -> (Review, Note) {
        (Review, Note)
    }

    #[step]
    async fn rewrite(&self, _review: &Review) -> Draft {
        Draft
    }

    #[step(loops)]
    async fn amend(&self, _note: &Note) -> Draft {
        Draft
    }

    #[step]
    async fn ping(&self, _ping: &Ping) -> Pong {
        Pong
    }

    #[step]
    async fn pong(&self, _pong: &Pong) -> Ping {
        Ping
    }

    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }
}

fn main() {}
