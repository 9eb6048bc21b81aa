use workflow_agent::tool;

/// Current weather.
#[tool]
async fn weather<C: Into<String>>(city: C) -> String {
    city.into()
}

fn main() {}
