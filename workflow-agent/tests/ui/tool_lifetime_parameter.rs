use workflow_agent::tool;
use workflow_agent::tool::{IntoTool, ToolContext};

/// Current weather.
#[tool]
async fn weather<'a>(context: &'a ToolContext) -> &'a str {
    context.call()
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
