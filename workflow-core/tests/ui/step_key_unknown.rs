use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order {
    customer: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Paid;

struct Shop;

#[workflow]
impl Shop {
    #[step(key = client)]
    async fn pay(&self, _order: &Order) -> Paid {
        Paid
    }
}

fn main() {}
