use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool]
async fn größe(city: String) -> usize {
    city.len()
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(größe);
}
