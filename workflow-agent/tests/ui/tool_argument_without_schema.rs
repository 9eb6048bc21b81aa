use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

#[derive(serde::Deserialize)]
struct City(String);

/// Current weather.
#[tool]
async fn weather(city: City) -> String {
    city.0
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
