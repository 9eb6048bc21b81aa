use workflow_agent::tool;

/// Current weather.
#[tool]
async fn weather(city: impl Into<String>) -> String {
    city.into()
}

fn main() {}
