use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool]
struct Weather;

fn main() {}
