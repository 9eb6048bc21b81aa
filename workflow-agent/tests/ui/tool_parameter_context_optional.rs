use workflow_agent::tool;
use workflow_agent::tool::{IntoTool, ToolContext};

/// Current weather.
#[tool]
async fn weather(context: Option<&ToolContext>) -> bool {
    context.is_some()
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
