use workflow_agent::tool;
use workflow_agent::tool::IntoTool;

/// Current weather.
#[tool]
async fn weather(city: String) -> String {
    let shared = std::rc::Rc::new(city);
    std::future::ready(()).await;
    shared.to_string()
}

fn takes<Marker>(_: impl IntoTool<Marker>) {}

fn main() {
    takes(weather);
}
