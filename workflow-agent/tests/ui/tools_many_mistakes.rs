use workflow_agent::tool::ToolSet;
use workflow_agent::{tool, tools};

struct Orders;

#[tools]
impl Orders {
    /// Refunds an order.
    #[tool(deadline = 3)]
    async fn refund(&mut self, order: u64) -> u64 {
        order
    }

    /// Refunds an order.
    #[tool]
    fn pay(&self, order: &str) -> u64 {
        order.len() as u64
    }
}

fn takes(_: impl ToolSet) {}

fn main() {
    takes(Orders);
}
