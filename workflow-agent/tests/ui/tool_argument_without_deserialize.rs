use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

#[derive(schemars::JsonSchema)]
struct City;

/// Current weather.
#[tool]
async fn weather(cities: Vec<City>) -> usize {
    cities.len()
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
