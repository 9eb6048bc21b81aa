use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

struct Storm;

type Forecast = Result<String, Storm>;

/// Current weather.
#[tool]
async fn weather(city: String) -> Forecast {
    if city.is_empty() { Err(Storm) } else { Ok(city) }
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
