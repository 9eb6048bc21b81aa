//! Timeouts of tools.

mod timeout_is_no_text {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(timeout = 30)]
    async fn weather(city: String) -> String {
        city
    }
}

mod timeout_of_nothing {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(timeout = "0s")]
    async fn weather(city: String) -> String {
        city
    }
}

mod timeout_without_unit {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(timeout = "30")]
    async fn weather(city: String) -> String {
        city
    }
}

mod timeout_without_value {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(timeout)]
    async fn weather(city: String) -> String {
        city
    }
}

fn main() {}
