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
    #[step(limit_key = customer)]
    async fn pay(&self, _order: &Order) -> Paid {
        Paid
    }

    fn customer(order: &Order) -> String {
        order.customer.clone()
    }
}

fn main() {}
