use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool(approval = is_far)]
async fn weather(city: String) -> String {
    city
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
