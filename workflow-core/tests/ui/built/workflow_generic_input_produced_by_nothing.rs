use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Weather;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research<M> {
    model: M,
}

#[workflow]
impl<M: Fn() -> Answer + Send + Sync + 'static> Research<M> {
    #[step]
    async fn answer(&self, _question: &Question, _weather: &Weather) -> Answer {
        (self.model)()
    }
}

fn main() {
    let _ = Research { model: || Answer }.run(Question);
}
