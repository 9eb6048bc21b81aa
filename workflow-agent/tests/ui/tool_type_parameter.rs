use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool]
async fn weather<C: Into<String>>(city: C) -> String {
    city.into()
}

fn main() {}
