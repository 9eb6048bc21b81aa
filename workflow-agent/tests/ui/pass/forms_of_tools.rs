//! Everything that a tool may be, without a warning.

#![deny(warnings, missing_docs, missing_debug_implementations, clippy::all, clippy::pedantic)]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workflow_agent::tool::{FnTool, IntoTool, Tool as _, ToolContext, ToolError, ToolOutput, ToolSet};
use workflow_agent::{tool, tools};

/// A city.
#[derive(Debug, Deserialize, Serialize, schemars::JsonSchema)]
pub struct City {
    name: String,
}

/// Nothing.
#[tool]
pub async fn nothing() {}

/// All forms of parameters.
#[tool(read_only, idempotent, approval = "always", timeout = "2h", name = "all-forms")]
#[must_use]
pub async fn forms(
    /** A city */
    mut city: City,
    /// Some days,
    /// in a row.
    days: Option<u8>,
    #[serde(default = "seven", rename = "WEEKS")]
    #[schemars(range(min = 1))]
    weeks: u8,
    #[serde(deserialize_with = "loose")] _loose: u8,
    _: &ToolContext,
    #[expect(unused_variables, reason = "attributes stay with their parameter")] more: BTreeMap<
        String,
        Vec<(u8, f64)>,
    >,
    context: &ToolContext,
) -> Result<City, ToolError> {
    city.name = format!("{}{days:?} {weeks} {}", city.name, context.call());
    Ok(city)
}

fn seven() -> u8 {
    7
}

fn loose<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

/// What it returns has no name.
#[tool(approval = self::asks)]
async fn unnamed(days: u8) -> impl Serialize {
    std::future::ready(()).await;
    vec![days]
}

fn asks(arguments: &serde_json::Value) -> bool {
    arguments["days"] == 7
}

/// It borrows.
#[tool]
async fn borrows(context: &ToolContext) -> &str {
    context.call()
}

/// It does not exist.
#[tool]
#[cfg(any())]
async fn absent(city: Nowhere) -> Nowhere {}

/// Many arguments.
#[tool]
#[expect(clippy::many_single_char_names, reason = "there are many")]
async fn many(
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    e: u8,
    f: u8,
    g: u8,
    h: u8,
    i: u8,
    j: u8,
    k: u8,
    l: u8,
    m: u8,
    n: u8,
    o: u8,
    p: u8,
) -> u8 {
    a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p
}

/// Old.
#[tool]
#[deprecated]
async fn old() {}

macro_rules! make {
    ($name:ident, $argument:ty, $context:ty) => {
        #[doc = concat!("Made of ", stringify!($name), ".")]
        #[tool]
        async fn $name(argument: $argument, _context: $context) -> $argument {
            argument
        }
    };
}

make!(made, u16, &ToolContext);

trait Store {
    type Receipt: Serialize;

    fn receipt(&self, order: u64) -> Self::Receipt;
}

struct Bank;

impl Store for Bank {
    type Receipt = String;

    fn receipt(&self, order: u64) -> String {
        order.to_string()
    }
}

struct Orders<S, const N: usize>
where
    S: Store,
{
    store: S,
}

#[tools]
impl<S, const N: usize> Orders<S, N>
where
    S: Store + Send + Sync + 'static,
    S::Receipt: Send,
{
    const LEAST: usize = N;

    /// Refunds an order.
    #[tool(approval = Self::is_large)]
    async fn refund(&self, order: u64, context: &ToolContext) -> Result<S::Receipt, ToolError> {
        context.cancellation();
        self.plain();
        Ok(self.store.receipt(order))
    }

    /// Gives a receipt.
    #[workflow_agent::tool(read_only)]
    pub(crate) async fn receipt(&self, order: u64) -> S::Receipt {
        self.store.receipt(order)
    }

    /// Needs nothing.
    #[tool]
    async fn limit() -> ToolOutput {
        ToolOutput::new(Self::LEAST.to_string())
    }

    /// Does not exist.
    #[cfg(any())]
    #[tool]
    async fn absent(&self, city: Nowhere) {}

    #[expect(clippy::unused_self, reason = "a method like any other")]
    fn plain(&self) {}

    fn is_large(arguments: &serde_json::Value) -> bool {
        arguments["order"].as_u64() > Some(9)
    }
}

fn tool<Marker>(tool: impl IntoTool<Marker, Tool = FnTool>) -> FnTool {
    tool.into_tool()
}

#[expect(deprecated, reason = "one of the tools is deprecated")]
#[test]
fn compiles_and_runs() {
    let tools = [tool(nothing), tool(forms), tool(unnamed), tool(borrows), tool(many), tool(old), tool(made)];
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name()).collect();
    assert_eq!(names, ["nothing", "all-forms", "unnamed", "borrows", "many", "old", "made"]);
    assert_eq!(tools[6].spec().description(), "Made of made.");
    let tools = Orders::<_, 5> { store: Bank }.into_tools();
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name()).collect();
    assert_eq!(names, ["refund", "receipt", "limit"]);
}
