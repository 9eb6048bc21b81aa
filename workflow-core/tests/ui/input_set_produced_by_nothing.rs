use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Enough;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Short;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

#[derive(EventSet)]
enum Graded {
    Enough(Enough),
    Short(Short),
}

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn answer(&self, _question: &Question, _graded: &Graded) -> Answer {
        Answer
    }
}

fn main() {}
