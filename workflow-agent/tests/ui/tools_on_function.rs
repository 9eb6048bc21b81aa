use workflow_agent::tools;

#[tools]
async fn weather(city: String) -> String {
    city
}

fn main() {
    drop(weather(String::new()));
}
