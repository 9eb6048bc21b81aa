use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool]
async fn weather<const DAYS: usize>(city: String) -> String {
    city.repeat(DAYS)
}

fn main() {}
