//! The attribute of tools, and where it stands.

mod attribute_twice {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    #[tool(read_only)]
    async fn weather(city: String) -> String {
        city
    }
}

mod crate_is_no_path {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(crate = 3)]
    async fn weather(city: String) -> String {
        city
    }
}

mod flag_with_value {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(idempotent = true)]
    async fn weather(city: String) -> String {
        city
    }
}

mod key_given_twice {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(read_only, timeout = "1s", read_only)]
    async fn weather(city: String) -> String {
        city
    }
}

mod missing_comma {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(read_only idempotent)]
    async fn weather(city: String) -> String {
        city
    }
}

mod not_async {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    fn weather(city: String) -> String {
        city
    }
}

mod on_struct {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    struct Weather;
}

mod outside_of_tools {
    use workflow_agent::tool;

    struct Orders;

    impl Orders {
        /// Refunds an order.
        #[tool]
        async fn refund(&self, order: u64) -> u64 {
            order
        }
    }
}

mod unknown_key {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(deadline = "30s")]
    async fn weather(city: String) -> String {
        city
    }
}

mod unknown_key_near_a_known_one {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(readonly)]
    async fn weather(city: String) -> String {
        city
    }
}

mod unsafe_function {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async unsafe fn weather(city: String) -> String {
        city
    }
}

fn main() {}
