use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Chat;

#[workflow]
impl Chat {
    #[step(compact = "shorten")]
    async fn answer(&self, _question: &Question) -> Result<Answer, StepError> {
        Ok(Answer)
    }

    async fn shorten(&self) {}
}

fn main() {}
