use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn draft(&self, question: &Question) -> Draft {
        Draft
    }

    #[step]
    async fn improve(&self, draft: &Draft) -> Draft {
        Draft
    }
}

fn main() {}
