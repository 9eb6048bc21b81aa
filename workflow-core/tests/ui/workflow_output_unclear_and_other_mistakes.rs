use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn look_up(&self, _question: &Question) -> Result<Facts, u8> {
        Ok(Facts)
    }

    #[step]
    async fn draft(&self, _facts: &Facts, _name: String) -> Draft {
        Draft
    }

    #[step]
    async fn answer(&self, _draft: &Draft) -> Answer {
        Answer
    }

    #[step]
    async fn tick(&self, _info: &RunInfo) {}
}

fn takes<W: Workflow<Output = Answer>>(_: W) {}

fn main() {
    takes(Research);
}
