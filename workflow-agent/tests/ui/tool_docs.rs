//! Descriptions of tools.

mod with_blank_docs {
    use workflow_agent::tool;

    ///
    #[tool]
    async fn weather(city: String) -> String {
        city
    }
}

mod without_docs {
    use workflow_agent::tool;

    #[tool]
    async fn weather(city: String) -> String {
        city
    }
}

fn main() {}
