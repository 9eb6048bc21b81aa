use workflow_agent::tool::ToolSet;
use workflow_agent::{tool, tools};

struct Orders<S>(S);

#[tools]
impl<S: Send + Sync + 'static> Orders<S> {
    /// Refunds an order.
    #[tool]
    async fn refund(&self, order: Vec<S>) -> u64 {
        order.len() as u64
    }
}

fn takes(_: impl ToolSet) {}

fn main() {
    takes(Orders(5));
}
