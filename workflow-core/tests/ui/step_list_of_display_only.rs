use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Shown;

struct Research;

#[workflow]
impl Research {
    #[step(reruns)]
    async fn answer(&self, _question: &Question, _shown: &List<Shown>, _first: FixedList<Shown, 2>) -> Answer {
        Answer
    }
}

fn main() {}
