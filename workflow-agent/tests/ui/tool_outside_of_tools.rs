use workflow_agent::tool;

struct Orders;

impl Orders {
    /// Refunds an order.
    #[tool]
    async fn refund(&self, order: u64) -> u64 {
        order
    }
}

fn main() {}
