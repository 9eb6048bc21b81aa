use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

struct City;

/// Current weather.
#[tool(deadline)]
async fn weather(city: City, context: &String) -> City {
    context.len();
    city
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
