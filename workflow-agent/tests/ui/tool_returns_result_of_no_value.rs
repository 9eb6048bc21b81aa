use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

struct City(String);

/// Current weather.
#[tool]
async fn weather(city: String) -> Result<City, std::fmt::Error> {
    Ok(City(city))
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
