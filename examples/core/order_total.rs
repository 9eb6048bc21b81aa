//! The smallest program: two independent steps, and one that needs both of their events and the start event.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use workflow_core::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order {
    customer: String,
    prices: Vec<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Subtotal {
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Shipping {
    cents: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Invoice {
    text: String,
}

struct Shop {
    cents_per_parcel: u64,
}

#[workflow]
impl Shop {
    /// Adds the prices up.
    #[step]
    async fn add_up(&self, order: &Order) -> Subtotal {
        Subtotal { cents: order.prices.iter().sum() }
    }

    /// One parcel holds three articles. Runs beside `add_up`: neither needs the other.
    #[step]
    async fn ship(&self, order: &Order) -> Shipping {
        let parcels = order.prices.len().div_ceil(3) as u64;
        Shipping { cents: parcels * self.cents_per_parcel }
    }

    /// Runs once both events are in the log. Its parameters are the whole wiring.
    #[step]
    async fn bill(&self, order: &Order, subtotal: &Subtotal, shipping: &Shipping) -> Invoice {
        Invoice { text: format!("{} pays {} cents", order.customer, subtotal.cents + shipping.cents) }
    }
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    let shop = Shop { cents_per_parcel: 490 };
    let invoice = shop.run(Order { customer: "Ada".into(), prices: vec![1_250, 300, 80, 999] }).await?;
    println!("{}", invoice.text);
    Ok(())
}
