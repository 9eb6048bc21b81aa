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
    #[step(tiemout = 3)]
    async fn draft(&self, _question: &Question) -> Draft {
        Draft
    }

    #[step]
    fn answer(&mut self, _draft: &Draft, _facts: &Facts, _name: String) -> Answer {
        Answer
    }

    #[step]
    async fn close(&self, _answer: &Answer) {}
}

fn takes<W: Workflow<Output = Answer>>(_: W) {}

fn main() {
    takes(Research);
}
