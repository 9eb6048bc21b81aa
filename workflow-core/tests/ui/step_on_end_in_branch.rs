use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Trip;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Leg;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Booked;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Paid;

struct Agency;

#[workflow]
impl Agency {
    #[step]
    async fn split(&self, _trip: &Trip) -> FanOut<Leg> {
        [Leg].into_iter().collect()
    }

    #[step]
    async fn book(&self, _leg: &Leg) -> Booked {
        Booked
    }

    #[step]
    async fn pay(&self, _booked: &Gather<Booked>) -> Paid {
        Paid
    }

    #[step(on_end)]
    async fn unbook(&self, _booked: &Booked) {}
}

fn main() {}
