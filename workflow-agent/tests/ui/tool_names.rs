//! Names of tools.

mod name_empty {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(name = "")]
    async fn weather(city: String) -> String {
        city
    }
}

mod name_is_no_text {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(name = weather)]
    async fn weather(city: String) -> String {
        city
    }
}

mod name_of_its_own_unfit {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn größe(city: String) -> usize {
        city.len()
    }
}

mod name_too_long {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(name = "weather_of_each_of_the_next_days_and_of_all_days_that_come_later_on")]
    async fn weather(city: String) -> String {
        city
    }
}

mod name_with_spaces {
    use workflow_agent::tool;

    /// Current weather.
    #[tool(name = "get weather")]
    async fn weather(city: String) -> String {
        city
    }
}

fn main() {}
