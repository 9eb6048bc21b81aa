//! The library by another name: every macro takes `crate = ..`.

#![deny(warnings)]

/// As if `workflow-agent` were declared under this name.
mod agents {
    pub(crate) use ::workflow_agent::*;
}

/// Nothing of the library's own name is in scope.
mod workflow_agent {}

use agents::tool::{IntoTool as _, Tool as _, ToolContext, ToolSet as _};

/// Forecasts the weather.
#[agents::tool(read_only, approval, timeout = "1m", crate = agents)]
async fn weather(#[serde(default)] city: String, context: &ToolContext) -> String {
    format!("{city} {}", context.call())
}

/// Forecasts the weather.
#[agents::tool(crate = "crate::pass_tools::renamed_dependency::agents")]
async fn later(city: String) -> Result<String, std::fmt::Error> {
    Ok(city)
}

struct Orders;

#[agents::tools(crate = crate::pass_tools::renamed_dependency::agents)]
impl Orders {
    /// Refunds an order.
    #[agents::tool]
    async fn refund(&self, order: u64) -> u64 {
        order
    }
}

#[test]
fn compiles_and_runs() {
    assert_eq!(weather.into_tool().spec().name(), "weather");
    assert_eq!(later.into_tool().spec().name(), "later");
    assert_eq!(Orders.into_tools().len(), 1);
}
