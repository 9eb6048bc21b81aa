use workflow_agent::{tool, tools};

struct Orders(std::cell::Cell<u8>);

#[tools]
impl Orders {
    /// Refunds an order.
    #[tool]
    async fn refund(&self, order: u64) -> u64 {
        order
    }
}

fn main() {}
