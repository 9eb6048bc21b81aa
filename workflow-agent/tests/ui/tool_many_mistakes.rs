use workflow_agent::tool;
use workflow_agent::tool::{IntoTool, ToolContext};

#[tool(read_onyl, timeout = "soon", name = "a b")]
fn weather<T>(city: &str, context: ToolContext, (day, month): (u8, u8)) -> String {
    String::new()
}

fn main() {}
