use workflow_agent::tool::ToolSet;
use workflow_agent::{tool, tool as function, tools};

struct Orders;

#[tools]
impl Orders {
    /// Refunds an order.
    #[function]
    async fn refund(&self, order: u64) -> u64 {
        order
    }

    /// Refunds an order.
    #[tool]
    async fn pay(&self, order: u64) -> u64 {
        order
    }
}

fn takes(_: impl ToolSet) {}

fn main() {
    takes(Orders);
}
