use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool(read_only, timeout = "1s", read_only)]
async fn weather(city: String) -> String {
    city
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
