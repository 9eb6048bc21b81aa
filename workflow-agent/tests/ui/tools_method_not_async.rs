use workflow_agent::tool::ToolSet;
use workflow_agent::{tool, tools};

struct Orders;

#[tools]
impl Orders {
    /// Refunds an order.
    #[tool]
    fn refund(&self, order: u64) -> u64 {
        order
    }
}

fn takes(_: impl ToolSet) {}

fn main() {
    takes(Orders);
}
