use workflow_agent::prelude::*;

struct Desk;

#[tools]
impl Desk {
    /// Looks an order up.
    #[tool(read_only)]
    async fn look(&self, order: u64) -> u64 {
        order
    }
}

fn main() {
    let _ = Agent::builder("desk").tool(Desk);
}
