use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Order;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn answer(&self, _question: &Question) -> Answer {
        Answer
    }
}

async fn run(engine: &Engine) -> Result<(), Box<dyn std::error::Error>> {
    let _ended = Research.run(Order).await?;
    let _handle = engine.start::<Research>(Order).await?;
    Ok(())
}

fn main() {}
