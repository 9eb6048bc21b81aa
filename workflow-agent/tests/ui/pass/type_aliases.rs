//! The compiler decides what a type is, whatever its name.

#![deny(warnings)]

use serde_json::json;
use workflow_agent::tool::{IntoTool as _, Tool as _, ToolContext, ToolError, ToolOutput, ToolSet as _};
use workflow_agent::{tool, tools};

type Forecast<T = String> = Result<T, ToolError>;
type Ctx = ToolContext;
type City = Option<String>;

/// Forecasts the weather.
#[tool]
async fn weather(city: City, context: &Ctx) -> Forecast {
    city.map(|city| format!("{city} {}", context.call())).ok_or_else(|| ToolError::new("no city"))
}

struct Station<'a>(std::marker::PhantomData<&'a ()>);

type Own = Station<'static>;

#[tools]
impl Own {
    /// Measures.
    #[tool]
    async fn measure(&self) -> Forecast<ToolOutput> {
        Ok(ToolOutput::new("20 °C"))
    }
}

#[test]
fn compiles_and_runs() {
    let tool = weather.into_tool();
    assert!(tool.spec().schema().get("required").is_none(), "{}", tool.spec().schema());
    let call = |arguments| futures::executor::block_on(tool.call(arguments, ToolContext::detached("c")));
    assert_eq!(call(json!({"city": "Bern"})).unwrap().text, "Bern c");
    assert_eq!(call(json!({})).unwrap_err().to_string(), "no city");
    assert_eq!(Station(std::marker::PhantomData).into_tools().len(), 1);
}
