use workflow_agent::tool;

/// Current weather.
#[tool]
async fn weather<const DAYS: usize>(city: String) -> String {
    city.repeat(DAYS)
}

fn main() {}
