//! Tools out of functions: by hand with [`FnTool`], and the pieces that `#[tool]` and `#[tools]` use.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use super::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use crate::approval::Approval;

type Call = dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool out of a closure.
///
/// ```
/// use serde::Deserialize;
/// use workflow_agent::prelude::*;
/// use workflow_agent::tool::{FnTool, Tool as _};
///
/// #[derive(Deserialize, schemars::JsonSchema)]
/// struct Sum { of: Vec<i64> }
///
/// let sum = FnTool::new("sum", "Adds numbers.", |sum: Sum, _context| async move {
///     Ok::<_, ToolError>(sum.of.iter().sum::<i64>())
/// });
/// assert_eq!(sum.read_only().spec().name(), "sum");
/// ```
#[derive(Clone)]
pub struct FnTool {
    spec: ToolSpec,
    call: Arc<Call>,
}

impl FnTool {
    /// A tool whose arguments are the fields of `A`. It acts and needs no approval; the methods below change that.
    pub fn new<A, F, T, O, E>(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>, call: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send,
        F: Fn(A, ToolContext) -> T + Send + Sync + 'static,
        T: Future<Output = Result<O, E>> + Send + 'static,
        O: IntoToolOutput + 'static,
        E: Into<ToolError> + 'static,
    {
        let call = move |arguments: Value, context: ToolContext| match read::<A>(&arguments) {
            Ok(arguments) => call(arguments, context).map(fallible).boxed(),
            Err(error) => futures_util::future::ready(Err(error)).boxed(),
        };
        Self::of(ToolSpec::new(name, description, arguments_of::<A>()), call)
    }

    /// A tool whose specification and arguments are known only at run time.
    pub fn of(
        spec: ToolSpec,
        call: impl Fn(Value, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { spec, call: Arc::new(call) }
    }

    /// Declares that calls change nothing: see [`ToolSpec::read_only`].
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { spec: self.spec.read_only(), ..self }
    }

    /// Declares that a repetition has no further effect: see [`ToolSpec::idempotent`].
    #[must_use]
    pub fn idempotent(self) -> Self {
        Self { spec: self.spec.idempotent(), ..self }
    }

    /// Declares that the order among other calls makes no difference: see [`ToolSpec::independent`].
    #[must_use]
    pub fn independent(self) -> Self {
        Self { spec: self.spec.independent(), ..self }
    }

    /// Sets which calls a person must approve: see [`ToolSpec::approval`].
    #[must_use]
    pub fn approval(self, approval: Approval) -> Self {
        Self { spec: self.spec.approval(approval), ..self }
    }

    /// Sets the longest time of a call: see [`ToolSpec::timeout`].
    #[must_use]
    pub fn timeout(self, timeout: std::time::Duration) -> Self {
        Self { spec: self.spec.timeout(timeout), ..self }
    }
}

impl Tool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        (self.call)(arguments, context)
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FnTool").field(&self.spec).finish()
    }
}

/// The output of a tool's function: [`ToolOutput`], or any value that serialises.
///
/// Text stays as it is; other values become JSON.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "a tool returns `ToolOutput`, a value that implements `Serialize`, or a `Result` of such a value"
)]
pub trait IntoToolOutput {
    /// The output, or the failure.
    ///
    /// # Errors
    /// The error of the tool, or that of serialising its value.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> IntoToolOutput for T {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        ToolOutput::json(&self)
    }
}

pub(crate) fn fallible<O: IntoToolOutput, E: Into<ToolError>>(
    result: Result<O, E>,
) -> Result<ToolOutput, ToolError> {
    result.map_err(Into::into)?.into_tool_output()
}

/// The JSON schema of a tool's arguments, which are an object: see [`schema_of`].
pub(crate) fn arguments_of<T: JsonSchema>() -> Value {
    let mut schema = schema_of::<T>();
    if let Some(object) = schema.as_object_mut() {
        object.entry("type").or_insert_with(|| "object".into());
        // Some providers refuse an object without it, also for a tool without arguments.
        object.entry("properties").or_insert_with(|| serde_json::json!({}));
    }
    schema
}

/// The JSON schema of a type as models accept it: draft 2020-12, with all parts inline.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
    }
    schema
}

/// Reads arguments that fit the schema: a type may be narrower than its schema, as numbers are.
///
/// # Errors
/// What serde says, with the JSON pointer.
pub(crate) fn read<A: DeserializeOwned>(arguments: &Value) -> Result<A, ToolError> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let at = match pointer(error.path()).as_str() {
            "" => String::new(),
            pointer => format!(" at `{pointer}`"),
        };
        ToolError::new(format!("the arguments cannot be read{at}: {}", error.inner()))
    })
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
            Segment::Map { key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}
