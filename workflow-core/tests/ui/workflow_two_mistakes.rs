use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Weather;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn look_up(&self, _question: &Question, _weather: &Weather) -> Facts {
        Facts
    }

    #[step]
    async fn answer(&self, _facts: &Facts) -> Answer {
        Answer
    }

    #[step]
    async fn close(&self, _answer: &Answer) {}

    #[step]
    async fn tick(&self, _info: &RunInfo) {}
}

fn main() {}
