use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Weather;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Forecast;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn predict(&self, _weather: &Weather) -> Forecast {
        Forecast
    }

    #[step]
    async fn look_up(&self, _question: &Question, _forecast: &Forecast) -> Facts {
        Facts
    }

    #[step]
    async fn answer(&self, _facts: &Facts) -> Answer {
        Answer
    }
}

fn main() {}
