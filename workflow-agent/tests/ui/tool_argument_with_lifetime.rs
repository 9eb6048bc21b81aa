use std::borrow::Cow;

use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool]
async fn weather(city: Cow<'_, str>) -> String {
    city.into_owned()
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
