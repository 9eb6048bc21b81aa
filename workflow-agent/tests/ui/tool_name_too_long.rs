use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool(name = "weather_of_each_of_the_next_days_and_of_all_days_that_come_later_on")]
async fn weather(city: String) -> String {
    city
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
