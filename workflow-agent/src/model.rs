//! Models: the trait, requests, replies and their errors. It does not know agents. Clients of providers are in
//! `provider`, the model for tests in `scripted`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::Value;
use workflow_core::ErrorClass;

mod fallback;
mod reply;
mod scripted;

pub use fallback::Fallback;
pub(crate) use reply::json_bytes;
#[cfg(feature = "providers")]
pub(crate) use reply::place_of;
pub use reply::{Finish, Image, ModelReply, Opaque, Part, ToolUse, Usage};
pub use scripted::{ScriptedModel, ScriptedReply};

use crate::tool::ToolSpec;

/// A language model that an agent can call.
///
/// An agent calls [`call`](Self::call) once for each attempt of a turn, and drops the future or the stream to end a call
/// early. A model retries nothing itself: it returns a [`ModelError`] whose class says whether the agent should.
/// [`Provider::model`](crate::Provider::model) has the clients of providers, and [`ScriptedModel`] is for tests.
///
/// ```
/// use futures::{FutureExt, StreamExt, stream};
/// use workflow_agent::model::{Finish, Model, ModelError, ModelEvent, ModelLimits, ModelReply, ModelRequest, ModelStream};
///
/// /// Repeats the last message.
/// struct Echo;
///
/// impl Model for Echo {
///     fn name(&self) -> &str { "echo" }
///
///     fn limits(&self) -> ModelLimits { ModelLimits::new(8_000, 1_000) }
///
///     fn call(&self, request: ModelRequest) -> futures::future::BoxFuture<'static, Result<ModelStream, ModelError>> {
///         let text = request.messages.last().map(|message| message.text().into_owned()).unwrap_or_default();
///         let reply = ModelReply::text(text.clone());
///         let events = [Ok(ModelEvent::Text(text)), Ok(ModelEvent::Finished(reply))];
///         async move { Ok(stream::iter(events).boxed()) }.boxed()
///     }
/// }
/// ```
pub trait Model: Send + Sync + 'static {
    /// The name for spans, errors and reports, such as `claude-sonnet-5`.
    fn name(&self) -> &str;

    /// The size of the context window, the longest reply, and the price.
    fn limits(&self) -> ModelLimits;

    /// Begins a call. The stream ends after exactly one [`ModelEvent::Finished`], or after an error.
    ///
    /// # Errors
    /// A [`ModelError`] before or within the stream. A stream that ends without [`ModelEvent::Finished`] counts as
    /// interrupted, with class `transient`.
    fn call(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>>;

    /// Whether the model keeps to [`ModelRequest::output`] by itself. If not, the agent offers it the tool
    /// `final_answer`. Default: `false`.
    fn has_native_output(&self) -> bool {
        false
    }
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn limits(&self) -> ModelLimits {
        (**self).limits()
    }

    fn call(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        (**self).call(request)
    }

    fn has_native_output(&self) -> bool {
        (**self).has_native_output()
    }
}

/// The events of a reply as they arrive.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// An event of a [`ModelStream`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// A piece of the answer.
    Text(String),
    /// A piece of the model's thoughts.
    Thought(String),
    /// The model begins to write a tool call.
    CallBegun {
        /// The name of the tool, as the model wrote it.
        name: String,
    },
    /// The whole reply; the last event.
    Finished(ModelReply),
}

/// One call of a model: instructions, the conversation, and the tools on offer.
///
/// The prefix of a conversation stays the same byte for byte from turn to turn, so that providers can cache it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The instructions; empty if there are none.
    pub system: Arc<str>,
    /// The conversation, oldest first. Each tool call of an assistant's message has exactly one result, in the message
    /// directly after it.
    pub messages: Vec<Message>,
    /// The tools on offer, sorted by name.
    pub tools: Arc<[ToolSpec]>,
    /// Whether the model may call tools.
    pub tool_choice: ToolChoice,
    /// The JSON schema of the answer, for models with [`Model::has_native_output`].
    pub output: Option<Arc<Value>>,
    /// The longest reply in tokens.
    pub max_output: u64,
}

impl ModelRequest {
    /// A request without tools.
    pub fn new(system: impl Into<Arc<str>>, messages: Vec<Message>, max_output: u64) -> Self {
        Self {
            system: system.into(),
            messages,
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            output: None,
            max_output,
        }
    }

    /// The number of characters of everything that the model reads.
    pub(crate) fn characters(&self) -> usize {
        let output = self.output.as_deref().map_or(0, crate::tool::json_length);
        let messages: usize = self.messages.iter().map(Message::characters).sum();
        self.system.chars().count()
            + messages
            + self.tools.iter().map(ToolSpec::characters).sum::<usize>()
            + output
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// Of the user, or of the agent on the user's side.
    User {
        /// The text.
        text: Arc<str>,
        /// Images that belong to it.
        images: Arc<[Image]>,
    },
    /// Of the model.
    Assistant {
        /// Text, thoughts and calls, in the order of the reply.
        parts: Arc<[Part]>,
    },
    /// The results of all calls of the message before, in their order.
    Results(Vec<ToolResult>),
}

impl Message {
    /// A message of the user without images.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::User { text: text.into(), images: Arc::default() }
    }

    /// The text of the message: of an assistant without thoughts and calls, of results all of them.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::User { text, .. } => std::borrow::Cow::Borrowed(text),
            Self::Assistant { parts } => {
                let texts = parts.iter().filter_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                std::borrow::Cow::Owned(texts.collect())
            }
            Self::Results(results) => {
                let texts: Vec<&str> = results.iter().map(|result| &*result.text).collect();
                std::borrow::Cow::Owned(texts.join("\n"))
            }
        }
    }

    fn characters(&self) -> usize {
        match self {
            Self::User { text, .. } => text.chars().count(),
            Self::Assistant { parts } => parts.iter().map(Part::characters).sum(),
            Self::Results(results) => results.iter().map(|result| result.text.chars().count()).sum(),
        }
    }
}

/// The result of a tool call, as the model reads it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call.
    pub call: Arc<str>,
    /// The name of the tool, as the model wrote it.
    pub name: Arc<str>,
    /// The output, or the reason of the failure.
    pub text: Arc<str>,
    /// Whether it is a failure.
    pub is_error: bool,
}

impl ToolResult {
    /// A result.
    pub fn new(
        call: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        text: impl Into<Arc<str>>,
        is_error: bool,
    ) -> Self {
        Self { call: call.into(), name: name.into(), text: text.into(), is_error }
    }
}

/// Whether a model may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must answer with text.
    None,
}

/// The limits and the price of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ModelLimits {
    /// The context window: tokens of a request and its reply together.
    pub context: u64,
    /// The longest reply in tokens.
    pub output: u64,
    /// The price; `None` if it is not known.
    pub price: Option<Price>,
}

impl ModelLimits {
    /// Limits without a price.
    pub const fn new(context: u64, output: u64) -> Self {
        Self { context, output, price: None }
    }

    /// Sets the price.
    #[must_use]
    pub const fn price(self, price: Price) -> Self {
        Self { price: Some(price), ..self }
    }
}

/// The price of a model, in a currency of your choice for each million tokens.
///
/// ```
/// use workflow_agent::model::{Price, Usage};
///
/// let price = Price::new(3.0, 15.0).cached(0.3);
/// let usage = Usage::new(1_000_000, 100_000).cached(500_000);
/// assert!((price.of(&usage) - (1.5 + 0.15 + 1.5)).abs() < 1e-9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// For a million tokens of input.
    pub input: f64,
    /// For a million tokens of input that the provider had cached.
    pub cached_input: f64,
    /// For a million tokens of output, thoughts included.
    pub output: f64,
}

impl Price {
    /// A price without a rebate for cached input.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, cached_input: input, output }
    }

    /// Sets the price of cached input.
    #[must_use]
    pub const fn cached(self, cached_input: f64) -> Self {
        Self { cached_input, ..self }
    }

    /// The cost of `usage`; the greatest number if a price is none.
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
    pub fn of(&self, usage: &Usage) -> f64 {
        let cached = usage.cached_input.min(usage.input);
        let fresh = usage.input - cached;
        let cost =
            fresh as f64 * self.input + cached as f64 * self.cached_input + usage.output as f64 * self.output;
        // No journal takes any other number, and a price that is none must not pass a budget.
        if cost.is_finite() { cost / 1e6 } else { f64::MAX }
    }
}

/// Why a model did not reply.
///
/// The class decides about retries: see [`ErrorClass`]. By default `transient` is retried three times, after 10, 30 and 90
/// seconds, and `model` once, after 10 seconds; never before [`retry_after`](Self::retry_after) is over.
/// [`EngineBuilder::retry`](workflow_core::EngineBuilder::retry) changes this. `context_limit` leads to a summary of the
/// conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelError {
    /// The class.
    pub class: ErrorClass,
    /// The status code of the provider's answer, if there was one.
    pub status: Option<u16>,
    /// The time for which the provider asked to wait.
    pub retry_after: Option<Duration>,
    message: Arc<str>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl ModelError {
    /// An error of the given class.
    pub fn new(class: ErrorClass, message: impl Into<Arc<str>>) -> Self {
        Self { class, status: None, retry_after: None, message: message.into(), source: None }
    }

    /// A failure that may pass: no connection, an overloaded provider, an interrupted stream.
    pub fn transient(message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorClass::Transient, message)
    }

    /// The request exceeds the model's context window.
    pub fn context_limit(message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorClass::ContextLimit, message)
    }

    /// A failure that stays: a wrong key, an unknown model.
    pub fn permanent(message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorClass::Permanent, message)
    }

    /// A reply that cannot be used.
    pub fn unusable(message: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorClass::Model, message)
    }

    /// Sets the status code.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        Self { status: Some(status), ..self }
    }

    /// Sets the time to wait before the next attempt.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: Some(delay), ..self }
    }

    /// Sets the cause.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: Some(Arc::from(source.into())), ..self }
    }

    /// The message without its causes.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ModelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
