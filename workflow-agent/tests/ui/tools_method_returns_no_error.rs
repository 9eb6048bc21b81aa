use workflow_agent::tool::ToolSet;
use workflow_agent::{tool, tools};

struct Orders;

#[tools]
impl Orders {
    /// Refunds an order.
    #[tool]
    async fn refund(&self, order: u64) -> Result<u64, Orders> {
        if order == 0 { Err(Orders) } else { Ok(order) }
    }
}

fn takes(_: impl ToolSet) {}

fn main() {
    takes(Orders);
}
