use workflow_agent::{tool, tools};

struct Orders<'a>(&'a str);

#[tools]
impl<'a> Orders<'a> {
    /// Refunds an order.
    #[tool]
    async fn refund(&self, order: u64) -> u64 {
        order
    }
}

fn main() {}
