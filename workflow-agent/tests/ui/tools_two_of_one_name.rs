use workflow_agent::tool::ToolSet;
use workflow_agent::{tool, tools};

struct Orders;

#[tools]
impl Orders {
    /// Refunds an order.
    #[tool]
    async fn refund(&self, order: u64) -> u64 {
        order
    }

    /// Refunds an order.
    #[tool(name = "refund")]
    async fn give_back(&self, order: u64) -> u64 {
        order
    }
}

fn takes(_: impl ToolSet) {}

fn main() {
    takes(Orders);
}
