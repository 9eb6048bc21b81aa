use workflow_agent::tool::ToolSet;
use workflow_agent::{tool, tools};

struct Orders<S>(S);

#[tools]
impl<S> Orders<S> {
    /// Refunds an order.
    #[tool]
    async fn refund(&self, order: u64) -> u64 {
        order
    }
}

fn takes(_: impl ToolSet) {}

fn main() {
    takes(Orders(std::cell::Cell::new(5)));
}
