//! Approvals of tools.

mod approval_is_a_closure {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(approval = |_| true)]
    async fn weather(city: String) -> String {
        city
    }
}

mod approval_is_no_path {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(approval = 3)]
    async fn weather(city: String) -> String {
        city
    }
}

mod approval_of_acts_that_is_read_only {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(read_only, approval = "acts")]
    async fn weather(city: String) -> String {
        city
    }
}

mod approval_unknown {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(approval = "allways")]
    async fn weather(city: String) -> String {
        city
    }
}

fn main() {}
