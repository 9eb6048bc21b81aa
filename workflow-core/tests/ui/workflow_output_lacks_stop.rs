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

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Bye;

#[derive(EventSet)]
enum Outcome {
    Answer(Answer),
    Refusal(Refusal),
}

struct Research;

#[workflow(output = Outcome)]
impl Research {
    #[step]
    async fn answer(&self, _question: &Question) -> Option<Answer> {
        Some(Answer)
    }

    #[step]
    async fn leave(&self, _question: &Question) -> Option<Bye> {
        None
    }
}

struct Hurry;

#[workflow]
impl Hurry {
    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }

    #[step]
    async fn leave(&self, _question: &Question, _bye: &Emitter<Bye>) {}
}

fn main() {}
