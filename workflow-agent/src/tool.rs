//! Tools: the trait, their descriptions, the context and the errors of calls. It does not know models or runs.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use workflow_core::{Cancellation, Display, RunId, ThreadId};

pub(crate) mod attribute;
mod bound;
mod check;
mod cost;
mod function;
mod name;
pub(crate) mod shim;

pub use attribute::{IntoTool, IsTool, ToolFuture};
pub(crate) use bound::{OUTPUT, cut, head};
pub(crate) use check::{Misfit, Schema, json_length, sorted_text};
pub(crate) use function::schema_of;
pub use function::{FnTool, IntoToolOutput};
pub(crate) use name::{fitted, is_fit};

use crate::approval::Approval;

/// The longest time that a call may take, unless its tool says otherwise.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(2);

/// A function that a model can call.
///
/// The attribute `#[tool]` makes one of an async function, `#[tools]` several of the methods of a type, and [`FnTool`] one
/// of a closure. Implement the trait where name, description or schema are known only at run time.
///
/// The agent checks the arguments against [`ToolSpec::schema`] before anything runs, asks for approval if the
/// specification wants one, limits the call's time, drops its future to cancel it, and cuts long output.
pub trait Tool: Send + Sync + 'static {
    /// Name, description, schema and rules of the tool. It must not change.
    fn spec(&self) -> &ToolSpec;

    /// Runs the tool. The arguments fit the schema.
    ///
    /// # Errors
    /// The model receives an error as the result of its call, unless it is [`ToolError::fatal`].
    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}

impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn spec(&self) -> &ToolSpec {
        (**self).spec()
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        (**self).call(arguments, context)
    }
}

/// Several tools together, as [`#[tools]`](macro@crate::tools), an MCP server or a built-in set has them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no set of tools",
    label = "not a set of tools",
    note = "a set is a value whose type has `#[tools]` on its methods, a built-in set, or a `Vec<Arc<dyn Tool>>`",
    note = "add a function with `#[tool]`, or another single tool, with `.tool(…)`"
)]
pub trait ToolSet {
    /// The tools.
    fn into_tools(self) -> Vec<Arc<dyn Tool>>;
}

#[diagnostic::do_not_recommend]
impl ToolSet for Vec<Arc<dyn Tool>> {
    fn into_tools(self) -> Vec<Arc<dyn Tool>> {
        self
    }
}

/// The description of a tool for the model, and its rules for the agent.
#[derive(Clone)]
pub struct ToolSpec {
    name: Arc<str>,
    description: Arc<str>,
    schema: Arc<Value>,
    /// About the characters of the schema, since each request counts them.
    schema_size: usize,
    read_only: bool,
    idempotent: bool,
    independent: bool,
    approval: Approval,
    timeout: Duration,
}

impl ToolSpec {
    /// A tool that acts, needs no approval, and takes 120 seconds at most.
    ///
    /// A name has one to 64 letters, digits, `_` or `-`; [`AgentBuilder::build`](crate::AgentBuilder::build) refuses any
    /// other. `schema` is the JSON schema of the arguments, an object.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>, mut schema: Value) -> Self {
        // The same bytes in each request, also if another dependency makes `serde_json` preserve the order of keys.
        schema.sort_all_objects();
        Self {
            name: name.into(),
            description: description.into(),
            schema_size: json_length(&schema),
            schema: Arc::new(schema),
            read_only: false,
            idempotent: false,
            independent: false,
            approval: Approval::Never,
            timeout: TIMEOUT,
        }
    }

    /// Declares that a call changes nothing: such calls run side by side, and again after a crash.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// Declares that a second call with the same [`ToolContext::idempotency_key`] has no further effect: a call that may
    /// have begun before a crash is repeated.
    #[must_use]
    pub fn idempotent(self) -> Self {
        Self { idempotent: true, ..self }
    }

    /// Declares that the order of a call among others makes no difference: it runs as soon as it may, beside the other calls
    /// of its reply, and none of them waits for it.
    ///
    /// Without it, a call that acts waits for all calls before it in the reply, also for those that wait for a person.
    #[must_use]
    pub fn independent(self) -> Self {
        Self { independent: true, ..self }
    }

    /// Sets which calls a person must approve. Default: none.
    #[must_use]
    pub fn approval(self, approval: Approval) -> Self {
        Self { approval, ..self }
    }

    /// Sets the longest time of a call. Default: 120 seconds.
    ///
    /// After it the future of the call is dropped, and the model receives an error. The call is not retried, and its effect
    /// may have happened.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Gives the tool another name.
    #[must_use]
    pub fn renamed(self, name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// The description for the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The JSON schema of the arguments.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Whether a call changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether a call runs beside the others of its reply, in any order.
    pub fn is_independent(&self) -> bool {
        self.independent
    }

    /// Whether a call may be repeated after a crash.
    pub fn is_repeatable(&self) -> bool {
        self.read_only || self.idempotent
    }

    /// The longest time of a call.
    pub fn longest(&self) -> Duration {
        self.timeout
    }

    /// Whether the schema may name any argument.
    pub(crate) fn has_parameters(&self) -> bool {
        let is_named =
            |key| self.schema.get(key).and_then(Value::as_object).is_some_and(|named| !named.is_empty());
        let elsewhere = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"];
        ["properties", "patternProperties", "additionalProperties"].into_iter().any(is_named)
            || elsewhere.into_iter().any(|key| self.schema.get(key).is_some())
    }

    /// The characters that the model reads of it.
    pub(crate) fn characters(&self) -> usize {
        self.name.len() + self.description.len() + self.schema_size
    }

    pub(crate) fn needs_approval(&self, arguments: &Value) -> bool {
        match &self.approval {
            Approval::Never => false,
            Approval::Acts => !self.read_only,
            Approval::Always => true,
            Approval::When(when) => when(arguments),
        }
    }
}

impl fmt::Debug for ToolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSpec")
            .field("name", &self.name)
            .field("read_only", &self.read_only)
            .field("idempotent", &self.idempotent)
            .field("independent", &self.independent)
            .finish_non_exhaustive()
    }
}

/// Equal if a model cannot tell them apart: name, description and schema.
impl PartialEq for ToolSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.description == other.description && self.schema == other.schema
    }
}

/// The circumstances of a call.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use workflow_agent::prelude::*;
///
/// /// Posts a letter.
/// #[tool(idempotent)]
/// async fn post(text: String, context: &ToolContext) -> String {
///     format!("posted under {}: {text}", context.idempotency_key())
/// }
///
/// let context = ToolContext::detached("post");
/// assert!(post("Hello".into(), &context).await.ends_with(": Hello"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ToolContext {
    pub(crate) agent: Arc<str>,
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) call: Arc<str>,
    pub(crate) idempotency_key: Arc<str>,
    pub(crate) is_repeated: bool,
    pub(crate) display: Display,
    pub(crate) cancellation: Cancellation,
}

impl ToolContext {
    /// A context without a run, for tests of tools. Shown events go nowhere, and the call is never cancelled.
    pub fn detached(call: impl Into<Arc<str>>) -> Self {
        let call = call.into();
        Self {
            agent: "detached".into(),
            run: RunId::new("detached"),
            thread: ThreadId::new("detached"),
            idempotency_key: format!("detached/{call}").into(),
            call,
            is_repeated: false,
            display: Display::detached().0,
            cancellation: Cancellation::detached().0,
        }
    }

    /// The name of the agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The run of the agent.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The thread of the run, usually a user.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// The id of the call, as the model and its result name it.
    pub fn call(&self) -> &str {
        &self.call
    }

    /// A key that is the same in every attempt of this call, also after a restart. Pass it to services that detect
    /// repetitions.
    pub fn idempotency_key(&self) -> &str {
        &self.idempotency_key
    }

    /// Whether an earlier attempt of this call may have begun, in this process or before a restart. Only calls of read-only
    /// and idempotent tools are repeated.
    pub fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Shows events to the run's viewers, those of [`AgentRun::handle`](crate::AgentRun::handle)`().display()`.
    ///
    /// The stream of [`AgentRun`](crate::AgentRun) shows only `Chunk` and `Thought` among them, as if the model had written
    /// them. Events that a tool shows are not searched for [secrets](crate::Secret).
    pub fn display(&self) -> &Display {
        &self.display
    }

    /// The signal that the call is cancelled, for work on other threads. A future needs none: it is dropped.
    pub fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("run", &self.run)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

/// The output of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The text for the model. Of more than 32 KiB the model receives head and tail.
    pub text: String,
    /// Whether the model is told that the call failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// An output.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false }
    }

    /// A failure that the tool describes itself.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }

    /// The output as JSON.
    ///
    /// # Errors
    /// If the value cannot be serialised.
    pub fn json(value: &impl serde::Serialize) -> Result<Self, ToolError> {
        let value = serde_json::to_value(value).map_err(ToolError::from)?;
        Ok(Self::new(match value {
            Value::String(text) => text,
            value => sorted_text(value),
        }))
    }
}

/// Why a call failed.
///
/// Any error converts by `?` into a failure that the model receives as the result of its call.
pub struct ToolError {
    kind: ToolFailure,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// The consequences of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolFailure {
    /// The model receives it.
    Told,
    /// It may pass: repeatable tools are called again first.
    Transient,
    /// It ends the run.
    Fatal,
}

impl ToolError {
    /// A failure that the model receives.
    pub fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind: ToolFailure::Told, source: error.into() }
    }

    /// A failure that may pass. The engine's retry policy for `transient` calls a tool again that is read-only or
    /// idempotent; otherwise, and after the last attempt, the model receives the failure.
    ///
    /// By default there are three retries, after 10, 30 and 90 seconds.
    /// [`EngineBuilder::retry`](workflow_core::EngineBuilder::retry) changes them.
    pub fn transient(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind: ToolFailure::Transient, source: error.into() }
    }

    /// A failure that ends the agent's run.
    pub fn fatal(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind: ToolFailure::Fatal, source: error.into() }
    }

    pub(crate) fn kind(&self) -> ToolFailure {
        self.kind
    }

    /// The error and its causes, each once.
    pub(crate) fn text(&self) -> String {
        workflow_core::errors::chain(&*self.source).clone()
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError").field("kind", &self.kind).field("source", &self.source).finish()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// Removes control sequences and characters that could change a terminal, all but line breaks and tabs.
///
/// ```
/// assert_eq!(workflow_agent::terminal_safe("\x1b[2Jclear\r\n\u{202e}now"), "clear\nnow");
/// ```
pub fn terminal_safe(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => skip_sequence(&mut rest),
            '\u{9b}' => skip_parameters(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            safe_one if is_safe(safe_one) => safe.push(safe_one),
            _ => {}
        }
    }
    Cow::Owned(safe)
}

/// Neither a control character nor one that changes the direction of text.
fn is_safe(character: char) -> bool {
    match character {
        '\n' | '\t' => true,
        '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        other => !other.is_control(),
    }
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_sequence(rest: &mut Rest<'_>) {
    match rest.next() {
        Some('[') => skip_parameters(rest),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(rest),
        // Two characters, or three with an intermediate one.
        Some(' '..='/') => {
            rest.next();
        }
        _ => {}
    }
}

/// Up to the final byte of a control sequence.
fn skip_parameters(rest: &mut Rest<'_>) {
    while rest.next_if(|next| (' '..='?').contains(next)).is_some() {}
    rest.next_if(|next| ('@'..='~').contains(next));
}

/// Up to the end of an operating system command and the like. One without an end takes its line.
fn skip_string(rest: &mut Rest<'_>) {
    while let Some(next) = rest.next_if(|next| *next != '\n') {
        match next {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}
