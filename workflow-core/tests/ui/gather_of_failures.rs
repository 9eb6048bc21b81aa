use workflow_core::StepFailed;
use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn split(&self, _question: &Question) -> FanOut<Facts> {
        [Facts].into_iter().collect()
    }

    #[step]
    async fn fallback(&self, _facts: &Gather<Facts>, _failures: &Gather<StepFailed>) -> Answer {
        Answer
    }
}

fn main() {}
