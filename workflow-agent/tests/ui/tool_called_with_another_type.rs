use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool]
async fn weather(city: String) -> String {
    city
}

fn main() {
    drop(weather(5));
    takes(weather);
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}
