use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn draft(&self, _question: &Question) -> Draft {
        Draft
    }

    #[step(reruns)]
    async fn answer(&self, _drafts: List<&Draft>) -> Answer {
        Answer
    }
}

fn main() {}
