use workflow_core::prelude::{precondition as pc, step as st, *};

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
    #[pc]
    fn ready(&self, _question: &Question) -> bool {
        true
    }

    #[st(max_executions = 1)]
    async fn draft(&self, _question: &Question) -> Draft {
        Draft
    }

    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }
}

fn main() {}
