use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Trip;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Booked;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Paid;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Noted;

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
    async fn unbook(&self, _booked: &Booked, _more: Emitter<Noted>) {}
}

fn main() {}
