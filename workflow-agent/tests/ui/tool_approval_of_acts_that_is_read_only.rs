use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool(read_only, approval = "acts")]
async fn weather(city: String) -> String {
    city
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
