//! Parameters and arguments of tools.

mod argument_borrows_inside {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather(city: Option<&str>) -> bool {
        city.is_some()
    }
}

mod argument_serde_mistyped {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather(#[serde(defualt)] city: String) -> String {
        city
    }
}

mod argument_with_lifetime {
    use std::borrow::Cow;
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather(city: Cow<'_, str>) -> String {
        city.into_owned()
    }
}

mod const_parameter {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather<const DAYS: usize>(city: String) -> String {
        city.repeat(DAYS)
    }
}

mod lifetime_parameter {
    use workflow_agent::tool;
    use workflow_agent::tool::ToolContext;

    /// Current weather.
    #[tool]
    async fn weather<'a>(context: &'a ToolContext) -> &'a str {
        context.call()
    }
}

mod parameter_borrowed_described {
    use workflow_agent::tool;
    use workflow_agent::tool::ToolContext;

    /// Current weather.
    #[tool]
    async fn weather(
        /// The call.
        context: &ToolContext,
    ) -> String {
        context.call().to_owned()
    }
}

mod parameter_borrowed_for_ever {
    use workflow_agent::tool;
    use workflow_agent::tool::ToolContext;

    /// Current weather.
    #[tool]
    async fn weather(context: &'static ToolContext) -> String {
        context.call().to_owned()
    }
}

mod parameter_borrowed_mutably {
    use workflow_agent::tool;
    use workflow_agent::tool::ToolContext;

    /// Current weather.
    #[tool]
    async fn weather(context: &mut ToolContext) -> String {
        context.call().to_owned()
    }
}

mod parameter_borrowed_slice {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather(days: &[u8]) -> usize {
        days.len()
    }
}

mod parameter_borrowed_text {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather(city: &str) -> String {
        city.to_owned()
    }
}

mod parameter_conditional {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather(#[cfg(all())] city: String) -> String {
        city
    }
}

mod parameter_context_optional {
    use workflow_agent::tool;
    use workflow_agent::tool::ToolContext;

    /// Current weather.
    #[tool]
    async fn weather(context: Option<&ToolContext>) -> bool {
        context.is_some()
    }
}

mod parameter_context_owned {
    use workflow_agent::tool;
    use workflow_agent::tool::ToolContext;

    /// Current weather.
    #[tool]
    async fn weather(context: ToolContext) -> String {
        context.call().to_owned()
    }
}

mod parameter_impl_trait {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather(city: impl Into<String>) -> String {
        city.into()
    }
}

mod parameter_unnamed {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather(_: String) -> u8 {
        5
    }
}

mod parameter_without_name {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather((city, _days): (String, u8)) -> String {
        city
    }
}

mod parameters_too_many {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather(
        p1: u8,
        p2: u8,
        p3: u8,
        p4: u8,
        p5: u8,
        p6: u8,
        p7: u8,
        p8: u8,
        p9: u8,
        p10: u8,
        p11: u8,
        p12: u8,
        p13: u8,
        p14: u8,
        p15: u8,
        p16: u8,
        p17: u8,
    ) -> u8 {
        p1 + p2 + p3 + p4 + p5 + p6 + p7 + p8 + p9 + p10 + p11 + p12 + p13 + p14 + p15 + p16 + p17
    }
}

mod type_parameter {
    use workflow_agent::tool;

    /// Current weather.
    #[tool]
    async fn weather<C: Into<String>>(city: C) -> String {
        city.into()
    }
}

fn main() {}
