use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Shown;

struct Settings;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn answer(&self, _question: &Question, _shown: &Emitter<Shown>, _settings: &Config<Settings>) -> Answer {
        Answer
    }
}

fn main() {}
