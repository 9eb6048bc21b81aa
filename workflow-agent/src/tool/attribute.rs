//! Functions with `#[tool]` as values: the future that a call by hand returns, and the way from the function to its tool.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::{FnTool, Tool};

/// The future of a function with [`#[tool]`](macro@crate::tool). Awaited, it gives what the function returns.
///
/// `T` names the function's tool, so that [`IntoTool`] finds it, and has no meaning beyond that.
///
/// ```
/// use workflow_agent::tool;
///
/// /// Adds two numbers.
/// #[tool(read_only)]
/// async fn sum(first: i64, second: i64) -> i64 {
///     first + second
/// }
///
/// assert_eq!(futures::executor::block_on(sum(2, 3)), 5);
/// ```
#[must_use = "a tool runs only if its future is awaited"]
pub struct ToolFuture<'a, T, R> {
    future: BoxFuture<'a, R>,
    tool: PhantomData<fn() -> T>,
}

impl<'a, T, R> ToolFuture<'a, T, R> {
    /// For generated code.
    #[doc(hidden)]
    pub fn new(future: impl Future<Output = R> + Send + 'a) -> Self {
        Self { future: Box::pin(future), tool: PhantomData }
    }
}

impl<T, R> Future for ToolFuture<'_, T, R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        self.future.as_mut().poll(context)
    }
}

impl<T, R> fmt::Debug for ToolFuture<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolFuture").finish_non_exhaustive()
    }
}

/// The tool of a function, which the macro implements for the type that the function's [`ToolFuture`] names.
#[doc(hidden)]
pub trait ToolFunction {
    /// The tool.
    fn tool() -> FnTool;
}

/// A value that is or makes a [`Tool`]: a tool itself, or a function with [`#[tool]`](macro@crate::tool).
///
/// The compiler finds `Marker`, which keeps both apart; leave it generic.
///
/// ```
/// use workflow_agent::tool;
/// use workflow_agent::tool::{IntoTool, Tool};
///
/// /// Rolls dice.
/// #[tool]
/// async fn roll(sides: u32) -> u32 {
///     sides / 2
/// }
///
/// fn name_of<Marker>(tool: impl IntoTool<Marker>) -> String {
///     tool.into_tool().spec().name().to_owned()
/// }
///
/// assert_eq!(name_of(roll), "roll");
/// assert_eq!(name_of(roll.into_tool().read_only()), "roll");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tool",
    label = "not a tool",
    note = "a tool is an `async fn` with `#[tool]`, or a value whose type implements `Tool`",
    note = "add a value whose methods have `#[tool]`, by `#[tools]`, with `.tools(…)`"
)]
pub trait IntoTool<Marker> {
    /// The tool.
    type Tool: Tool;

    /// The tool.
    fn into_tool(self) -> Self::Tool;
}

/// Marks values that are tools themselves.
#[derive(Debug)]
#[non_exhaustive]
pub enum IsTool {}

#[diagnostic::do_not_recommend]
impl<T: Tool> IntoTool<IsTool> for T {
    type Tool = T;

    fn into_tool(self) -> T {
        self
    }
}

/// Functions of so many parameters.
macro_rules! functions {
    ($(($($parameter:ident)*))*) => {$(
        #[diagnostic::do_not_recommend]
        impl<'a, F, T, R, $($parameter),*> IntoTool<fn($($parameter),*) -> ToolFuture<'a, T, R>> for F
        where
            F: Fn($($parameter),*) -> ToolFuture<'a, T, R>,
            T: ToolFunction,
        {
            type Tool = FnTool;

            fn into_tool(self) -> FnTool {
                T::tool()
            }
        }
    )*};
}

functions! {
    ()
    (P1)
    (P1 P2)
    (P1 P2 P3)
    (P1 P2 P3 P4)
    (P1 P2 P3 P4 P5)
    (P1 P2 P3 P4 P5 P6)
    (P1 P2 P3 P4 P5 P6 P7)
    (P1 P2 P3 P4 P5 P6 P7 P8)
    (P1 P2 P3 P4 P5 P6 P7 P8 P9)
    (P1 P2 P3 P4 P5 P6 P7 P8 P9 P10)
    (P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11)
    (P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12)
    (P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13)
    (P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13 P14)
    (P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13 P14 P15)
    (P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13 P14 P15 P16)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::IntoTool as _;
    use crate::tool;
    use crate::tool::{FnTool, Tool as _};

    fn is_large(arguments: &Value) -> bool {
        arguments["cents"].as_u64() > Some(1_000)
    }

    /// By default.
    #[tool(crate = crate)]
    async fn by_default() {}

    /// Never.
    #[tool(approval = "never", crate = crate)]
    async fn never() {}

    /// Unless read-only.
    #[tool(approval = "acts", crate = crate)]
    async fn acts() {}

    /// Always.
    #[tool(approval, read_only, crate = crate)]
    async fn alone() {}

    /// Always.
    #[tool(approval = "always", crate = crate)]
    async fn always() {}

    /// Large ones.
    #[tool(approval = is_large, crate = crate)]
    async fn large(cents: u64) -> u64 {
        cents
    }

    /// A20
    #[test]
    fn the_key_approval_decides_which_calls_need_one() {
        let asks =
            |tool: FnTool| [1_000, 1_001].map(|cents| tool.spec().needs_approval(&json!({ "cents": cents })));
        assert_eq!([asks(by_default.into_tool()), asks(never.into_tool())], [[false; 2]; 2]);
        assert_eq!(asks(acts.into_tool()), [true; 2]);
        assert_eq!(asks(acts.into_tool().read_only()), [false; 2]);
        assert_eq!([asks(alone.into_tool()), asks(always.into_tool())], [[true; 2]; 2]);
        assert_eq!(asks(large.into_tool()), [false, true]);
    }
}
