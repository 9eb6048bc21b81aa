use workflow_agent::{tool, tools};

struct Orders;

trait Shop {
    fn refund(&self, order: u64) -> impl Future<Output = u64>;
}

#[tools]
impl Shop for Orders {
    /// Refunds an order.
    #[tool]
    async fn refund(&self, order: u64) -> u64 {
        order
    }
}

fn main() {}
