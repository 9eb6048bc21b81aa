use workflow_agent::tool;
use workflow_agent::tool::{IntoTool, ToolContext};

/// Current weather.
#[tool]
async fn weather(context: ToolContext) -> String {
    context.call().to_owned()
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
