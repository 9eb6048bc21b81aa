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
    async fn begin(&self, _question: &Question) -> Draft {
        Draft
    }

    #[step(reruns)]
    async fn improve(&self, _question: &Question, _drafts: List<Draft>) -> Option<Draft> {
        None
    }

    #[step]
    async fn answer(&self, _draft: &Draft) -> Answer {
        Answer
    }
}

fn main() {}
