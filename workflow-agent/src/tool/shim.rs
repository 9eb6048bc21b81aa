//! Shims for the code that `#[tool]` and `#[tools]` generate. The traits decide what a type means, and the compiler
//! reports one that does not fit once, where a signature names it. Elsewhere generated code uses stand-ins for it.

use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::function::{arguments_of, read};
use super::{FnTool, IntoToolOutput, Tool, ToolContext, ToolError, ToolFuture, ToolOutput, ToolSpec};

/// The future of a call.
pub type Called = BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// The specification of a tool with these arguments.
pub fn spec<A, const READABLE: bool>(name: &'static str, description: impl Into<Arc<str>>) -> ToolSpec
where
    Is<READABLE>: Read<A>,
{
    ToolSpec::new(name, description, Is::<READABLE>::schema())
}

/// A doc comment of several parts, with trimmed lines.
pub fn description(parts: &[&str]) -> String {
    let lines: Vec<_> = parts.iter().flat_map(|part| part.lines()).map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}

/// A tool that reads its arguments and calls a function.
pub fn function<A, const READABLE: bool>(
    spec: ToolSpec,
    call: impl Fn(A, ToolContext) -> Called + Send + Sync + 'static,
) -> FnTool
where
    Is<READABLE>: Read<A>,
{
    FnTool::of(spec, move |arguments, context| match Is::<READABLE>::read(&arguments) {
        Ok(arguments) => call(arguments, context),
        Err(error) => std::future::ready(Err(error)).boxed(),
    })
}

/// A future of generated code. A lint on `Box::pin` would not be the user's business.
pub fn boxed(future: impl Future<Output = Result<ToolOutput, ToolError>> + Send + 'static) -> Called {
    Box::pin(future)
}

/// A tool as one of a set.
pub fn shared(tool: FnTool) -> Arc<dyn Tool> {
    Arc::new(tool)
}

/// Stands for the tool of a function with a mistake, which has been reported.
pub fn mistaken_tool() -> FnTool {
    unreachable!("the program does not compile")
}

/// Stands for the future of a function with a mistake, which has been reported.
pub fn mistaken<T, R>() -> ToolFuture<'static, T, R> {
    unreachable!("the program does not compile")
}

/// A value that a tool can borrow.
#[diagnostic::on_unimplemented(
    message = "a tool cannot borrow `{Self}`",
    label = "not injected",
    note = "`&ToolContext` is injected; an argument is owned: write its type without `&`"
)]
pub trait Injected {
    /// The value in the context.
    fn of(context: &ToolContext) -> &Self;
}

impl Injected for ToolContext {
    fn of(context: &ToolContext) -> &Self {
        context
    }
}

/// A type that can be an argument.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not an argument",
    note = "an argument implements `Deserialize` and `JsonSchema`: derive both"
)]
pub trait Argument {
    /// Asked for by generated code, so that the compiler reports other types.
    const IS_ARGUMENT: () = ();
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Argument for T {}

/// Answers whether `T` can be an argument, by an inherent constant if it can, else by that of [`NoArgument`].
#[derive(Debug)]
pub struct Probe<T>(PhantomData<T>);

impl<T: DeserializeOwned + JsonSchema> Probe<T> {
    /// `T` can be an argument.
    pub const IS_ARGUMENT: bool = true;
}

/// The answer for types that cannot be arguments.
pub trait NoArgument {
    /// `T` cannot be an argument.
    const IS_ARGUMENT: bool = false;
}

impl<T> NoArgument for Probe<T> {}

/// Whether a type can be an argument.
#[derive(Debug)]
pub struct Is<const ARGUMENT: bool>;

/// Describes and reads the arguments `A`, unless a derive has failed.
pub trait Read<A> {
    /// Their schema.
    fn schema() -> Value;

    /// The arguments.
    ///
    /// # Errors
    /// What serde says, with the JSON pointer.
    fn read(arguments: &Value) -> Result<A, ToolError>;
}

impl<A: DeserializeOwned + JsonSchema> Read<A> for Is<true> {
    fn schema() -> Value {
        arguments_of::<A>()
    }

    fn read(arguments: &Value) -> Result<A, ToolError> {
        read(arguments)
    }
}

impl<A> Read<A> for Is<false> {
    fn schema() -> Value {
        unreachable!("the program does not compile")
    }

    fn read(_: &Value) -> Result<A, ToolError> {
        unreachable!("the program does not compile")
    }
}

/// The field for an argument of type `T`: of its own type, or a stand-in.
pub trait Choose<T> {
    /// The type of the field.
    type Field;

    /// The argument in the field.
    fn taken(field: Self::Field) -> T;
}

impl<T> Choose<T> for Is<true> {
    type Field = T;

    fn taken(field: T) -> T {
        field
    }
}

impl<T> Choose<T> for Is<false> {
    type Field = Value;

    fn taken(_: Value) -> T {
        unreachable!("the program does not compile")
    }
}

/// The field for an argument of type `T`.
pub type Field<T, const ARGUMENT: bool> = <Is<ARGUMENT> as Choose<T>>::Field;

/// A `Result`, also by the name of an alias.
#[derive(Debug)]
pub struct Fallible;

/// Any other value.
#[derive(Debug)]
pub struct Plain;

/// Finds a `Result`: its method needs one reference less than that of [`PlainKind`], so the compiler takes it first.
pub trait FallibleKind {
    /// The kind of the value.
    fn kind(&self) -> Fallible;
}

impl<T, E> FallibleKind for Result<T, E> {
    fn kind(&self) -> Fallible {
        Fallible
    }
}

/// Finds any other value.
pub trait PlainKind {
    /// The kind of the value.
    fn kind(&self) -> Plain;
}

impl<T> PlainKind for &T {
    fn kind(&self) -> Plain {
        Plain
    }
}

/// An error of a tool.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "not an error",
    note = "return `ToolError`, or an error that implements `std::error::Error`"
)]
pub trait Failure {
    /// The failure.
    fn into_failure(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError>> Failure for E {
    fn into_failure(self) -> ToolError {
        self.into()
    }
}

#[expect(clippy::unused_self, reason = "generated code finds the method by the kind of a value")]
impl Fallible {
    /// The output, or the failure.
    pub fn output<T: IntoToolOutput, E: Failure>(
        self,
        result: Result<T, E>,
    ) -> Result<ToolOutput, ToolError> {
        result.map_err(Failure::into_failure)?.into_tool_output()
    }
}

#[expect(clippy::unused_self, reason = "generated code finds the method by the kind of a value")]
impl Plain {
    /// The output.
    pub fn output<T: IntoToolOutput>(self, value: T) -> Result<ToolOutput, ToolError> {
        value.into_tool_output()
    }
}
