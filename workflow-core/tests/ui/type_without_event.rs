use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Question;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Found;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Checked;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Answer;

struct Research;

#[workflow]
impl Research {
    #[step]
    async fn find(&self, _question: &Question) -> Result<Vec<Found>, StepError> {
        Ok(vec![Found])
    }

    #[step(precondition = is_found)]
    async fn check(&self, _found: &Found) -> Option<Checked> {
        Some(Checked)
    }

    #[precondition]
    fn is_found(&self, _found: &Found) -> bool {
        true
    }

    #[step]
    async fn answer(&self, _found: List<Found>, _checked: Option<&Checked>) -> Answer {
        Answer
    }
}

fn main() {}
