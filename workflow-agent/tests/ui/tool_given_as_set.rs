use workflow_agent::prelude::*;

/// Looks an order up.
#[tool(read_only)]
async fn look(order: u64) -> u64 {
    order
}

fn main() {
    let _ = Agent::builder("desk").tools([look]);
}
