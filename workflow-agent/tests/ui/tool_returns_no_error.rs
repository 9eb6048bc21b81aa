use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

#[derive(serde::Serialize)]
struct Storm;

/// Current weather.
#[tool]
async fn weather(city: String) -> Result<String, Storm> {
    if city.is_empty() { Err(Storm) } else { Ok(city) }
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
