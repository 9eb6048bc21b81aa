use workflow_agent::tool;

/// Current weather.
#[tool]
struct Weather;

fn main() {}
