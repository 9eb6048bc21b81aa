use workflow_agent::tool::ToolSet;
use workflow_agent::tools;

struct Orders;

#[tools]
impl Orders {
    pub fn plain(&self) {}
}

fn takes(_: impl ToolSet) {}

fn main() {
    takes(Orders);
}
