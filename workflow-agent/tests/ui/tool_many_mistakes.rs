use workflow_agent::tool;
use workflow_agent::tool::ToolContext;

#[tool(read_onyl, timeout = "soon", name = "a b")]
fn weather<T>(city: &str, context: ToolContext, (day, month): (u8, u8)) -> String {
    drop(context);
    format!("{city} {day} {month}")
}

fn main() {}
