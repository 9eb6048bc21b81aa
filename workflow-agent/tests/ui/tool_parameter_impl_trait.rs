use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool]
async fn weather(city: impl Into<String>) -> String {
    city.into()
}

fn main() {}
