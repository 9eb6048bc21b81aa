use workflow_core::prelude::*;
use workflow_core::StepFailed;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Trip;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Booked;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Paid;

struct Agency;

#[workflow]
impl Agency {
    #[step]
    async fn book(&self, _trip: &Trip) -> Booked {
        Booked
    }

    #[step]
    async fn pay(&self, _booked: &Booked) -> Paid {
        Paid
    }

    #[step(on_end)]
    async fn unbook(&self, _booked: &Booked) {}

    #[step(catches = [unbook])]
    async fn tell(&self, _failed: &StepFailed) {}
}

fn main() {}
