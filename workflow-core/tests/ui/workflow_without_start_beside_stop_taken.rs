use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Alarm;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn answer(&self, alarm: &Alarm) -> Answer {
        Answer
    }

    #[step]
    async fn close(&self, answer: &Answer) {}
}

fn main() {}
