//! Providers of models: the description of a model by name, and the model that calls it. The formats of the providers are
//! in files of their own. Retries, budgets and conversations belong to the agent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::model::{Model, ModelError, ModelEvent, ModelLimits, ModelRequest, ModelStream, Price};

mod anthropic;
mod assembly;
mod build;
mod client;
mod ending;
mod error;
mod failure;
mod frames;
mod gemini;
#[cfg(feature = "genai")]
mod genai;
mod kind;
mod name;
mod ollama;
mod openai;
mod reading;
mod redact;
mod responses;
mod schema;
mod wire;

pub use error::ProviderError;

use client::Client;
use failure::Subject;
use kind::Kind;

/// The default time without anything from the provider.
const IDLE: Duration = Duration::from_mins(1);

/// The description of a provider's model: [`model`](Self::model) for the common case, [`new`](Self::new) for more.
///
/// | name | interface | key |
/// |---|---|---|
/// | `openai::…` | OpenAI's chat completions, and servers with the same interface | `OPENAI_API_KEY` |
/// | `openai_resp::…` | OpenAI's responses | `OPENAI_API_KEY` |
/// | `anthropic::…` | Anthropic's messages | `ANTHROPIC_API_KEY` |
/// | `gemini::…` | Google's Gemini API | `GEMINI_API_KEY` |
/// | `ollama::…` | Ollama on this machine | none |
///
/// The feature `genai` adds the providers of the crate `genai`, such as `groq::…`.
///
/// ```
/// use serde_json::json;
/// use workflow_agent::Provider;
/// use workflow_agent::model::{Model, ModelLimits, Price};
///
/// # fn main() -> Result<(), workflow_agent::ProviderError> {
/// let model = Provider::new("openai::qwen3")?
///     .endpoint("http://127.0.0.1:8080/v1")
///     .without_key()
///     .limits(ModelLimits::new(32_000, 4_000))
///     .price(Price::new(0.0, 0.0))
///     .option("temperature", json!(0.2))
///     .build()?;
/// assert_eq!(model.name(), "qwen3");
///
/// let error = Provider::model("gpt-5").unwrap_err();
/// assert!(error.to_string().contains("did you mean `openai::gpt-5`?"));
/// # Ok(())
/// # }
/// ```
///
/// Calls use no proxy unless [`proxy`](Self::proxy) sets one, and they follow no redirects.
#[derive(Clone)]
#[must_use = "`build` makes the model"]
pub struct Provider {
    source: Source,
    model: Arc<str>,
    endpoint: Option<String>,
    key: Key,
    headers: Vec<(String, String)>,
    limits: Option<ModelLimits>,
    price: Option<Price>,
    idle_timeout: Duration,
    options: Map<String, Value>,
    proxy: Option<String>,
    streaming: bool,
    native_output: bool,
}

/// Whose client calls the model.
#[derive(Debug, Clone, Copy)]
enum Source {
    Own(Kind),
    #[cfg(feature = "genai")]
    Genai(genai::Adapter),
}

/// Where the key comes from.
#[derive(Clone)]
enum Key {
    /// The variable of the provider.
    Default,
    Variable(String),
    Text(String),
    None,
}

impl Provider {
    /// The model with this name, such as `anthropic::claude-sonnet-5`, with its key from the environment.
    ///
    /// # Errors
    /// A [`ProviderError`] if the name has no known provider, or if the provider's variable has no key.
    pub fn model(name: &str) -> Result<ProviderModel, ProviderError> {
        Self::new(name)?.build()
    }

    /// Begins the description of the model with this name.
    ///
    /// # Errors
    /// A [`ProviderError`] if the name has no known provider, or nothing after it.
    pub fn new(name: &str) -> Result<Self, ProviderError> {
        let (source, model) = name::split(name)?;
        Ok(Self {
            source,
            model: model.into(),
            endpoint: None,
            key: Key::Default,
            headers: Vec::new(),
            limits: None,
            price: None,
            idle_timeout: IDLE,
            options: Map::new(),
            proxy: None,
            streaming: true,
            native_output: true,
        })
    }

    /// Sends the calls to another server with the same interface.
    ///
    /// The paths of the interface follow the URL: for `openai::…`, `http://127.0.0.1:8080/v1` leads to
    /// `http://127.0.0.1:8080/v1/chat/completions`. A query of the URL stays. The key goes there too, so name the right one with
    /// [`key`](Self::key) or [`key_from`](Self::key_from), or leave it out with [`without_key`](Self::without_key).
    /// Signatures of thoughts belong to the server that made them: another endpoint does not receive them.
    #[doc(alias = "base_url")]
    pub fn endpoint(self, url: impl Into<String>) -> Self {
        Self { endpoint: Some(url.into()), ..self }
    }

    /// Sets the key. Default: that of the provider's variable.
    #[doc(alias = "api_key")]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Key::Text(key.into()), ..self }
    }

    /// Reads the key from another variable.
    #[doc(alias = "api_key")]
    pub fn key_from(self, variable: impl Into<String>) -> Self {
        Self { key: Key::Variable(variable.into()), ..self }
    }

    /// Sends no key.
    pub fn without_key(self) -> Self {
        Self { key: Key::None, ..self }
    }

    /// Adds a header to each call. Its value counts as a secret: errors and debug output do not show it.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets context window and longest reply.
    ///
    /// Providers do not report them, and the default is a careful value for each provider: 128,000 and 16,384 tokens for
    /// `openai`, 200,000 and 32,000 for `openai_resp` and `anthropic`, 1,000,000 and 32,768 for `gemini`, 16,384 and 4,096 for
    /// `ollama`, 32,000 and 4,096 for others. Ollama receives the context window as `num_ctx`.
    pub fn limits(self, limits: ModelLimits) -> Self {
        Self { limits: Some(limits), ..self }
    }

    /// Sets the price, which a budget in money needs. Default: unknown.
    pub fn price(self, price: Price) -> Self {
        Self { price: Some(price), ..self }
    }

    /// Sets the longest silence: after it a call fails with class `transient`. Default: 60 seconds.
    ///
    /// A silence ends with bytes of an event; comments that keep a connection open do not count. Events without content,
    /// such as pings, keep a stream for ten times as long at most. A whole reply may take ten times as long too.
    pub fn idle_timeout(self, timeout: Duration) -> Self {
        Self { idle_timeout: timeout, ..self }
    }

    /// Sets a field of the request's body, as the provider documents it.
    ///
    /// Objects are merged field by field, so `option("generationConfig", json!({ "temperature": 0.2 }))` keeps the other
    /// settings of Gemini. `null` removes a field.
    pub fn option(mut self, name: impl Into<String>, value: Value) -> Self {
        self.options.insert(name.into(), value);
        self
    }

    /// Sends the calls through a proxy, such as `http://proxy:3128`. Default: none; variables of the environment have no effect.
    pub fn proxy(self, url: impl Into<String>) -> Self {
        Self { proxy: Some(url.into()), ..self }
    }

    /// Sets whether replies arrive in pieces. Default: `true`.
    pub fn streaming(self, streaming: bool) -> Self {
        Self { streaming, ..self }
    }

    /// Sets whether the provider binds answers to a schema: see [`Model::has_native_output`]. Default: `true` for the
    /// providers of the table above, `false` for others.
    pub fn native_output(self, native: bool) -> Self {
        Self { native_output: native, ..self }
    }

    /// The body that a call of a provider sends, without options: to look at what a provider receives.
    ///
    /// `provider` is a name of the table above; a model may follow, as in [`new`](Self::new).
    ///
    /// ```
    /// use workflow_agent::Provider;
    /// use workflow_agent::model::{Message, ModelRequest};
    ///
    /// # fn main() -> Result<(), workflow_agent::ProviderError> {
    /// let request = ModelRequest::new("Be brief.", vec![Message::user("Hello")], 100);
    /// let body = Provider::request_body("openai", &request)?;
    /// assert_eq!(body["messages"][0]["content"], "Be brief.");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A [`ProviderError`] if the name is unknown, or if the format cannot express the request.
    pub fn request_body(provider: &str, request: &ModelRequest) -> Result<Value, ProviderError> {
        let (kind, provider) = Self::own(provider)?;
        let target = provider.target(kind, provider.limits.unwrap_or(kind.limits()));
        let subject = provider.subject(None, Vec::new());
        Ok(client::body(kind, &target, &provider.options, request)
            .map_err(|failure| subject.error(failure))?)
    }

    /// Reads a recorded stream as if its provider sent it: for tests of what a program does with a reply.
    ///
    /// `provider` is a name of the table above. `chunks` are the bytes of the body, cut anywhere; the body ends with them, as if
    /// its server had ended it. The list ends with [`ModelEvent::Finished`], or with the error of a reply that is not whole.
    ///
    /// ```
    /// use workflow_agent::Provider;
    /// use workflow_agent::model::ModelEvent;
    ///
    /// # fn main() -> Result<(), workflow_agent::ProviderError> {
    /// let lines = [
    ///     r#"{"message":{"role":"assistant","content":"Hel"},"done":false}"#, "\n",
    ///     r#"{"message":{"role":"assistant","content":"lo"},"done":true,"done_reason":"stop"}"#, "\n",
    /// ];
    /// let events = Provider::replay("ollama", lines)?;
    /// assert!(matches!(&events[1], Ok(ModelEvent::Text(text)) if text == "lo"));
    /// assert!(matches!(&events[2], Ok(ModelEvent::Finished(_))));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A [`ProviderError`] if the name is unknown.
    pub fn replay<C: AsRef<[u8]>>(
        provider: &str,
        chunks: impl IntoIterator<Item = C>,
    ) -> Result<Vec<Result<ModelEvent, ModelError>>, ProviderError> {
        let (kind, provider) = Self::own(provider)?;
        let subject = provider.subject(None, Vec::new());
        let mut reader = reading::Reader::new(kind.framing(), kind.decoder(kind.name().into()));
        let mut events = Vec::new();
        for chunk in chunks {
            let advance = reader.push(chunk.as_ref());
            events.extend(reader.shown().into_iter().map(Ok));
            match advance {
                Ok(wire::Advance::Done) => break,
                Ok(_) => {}
                Err(failure) => {
                    events.push(Err(subject.error(failure)));
                    return Ok(events);
                }
            }
        }
        let end = reader.finish().map(ModelEvent::Finished);
        events.extend(reader.shown().into_iter().map(Ok));
        events.push(end.map_err(|failure| subject.error(failure)));
        Ok(events)
    }

    /// A description for the own client with this name, with or without a model.
    fn own(name: &str) -> Result<(Kind, Self), ProviderError> {
        let provider =
            if name.contains("::") { Self::new(name)? } else { Self::new(&format!("{name}::model"))? };
        match provider.source {
            Source::Own(kind) => Ok((kind, provider)),
            #[cfg(feature = "genai")]
            Source::Genai(_) => Err(name::unknown(name)),
        }
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// A model of a provider, from [`Provider::model`] or [`Provider::build`]. Clones share its connections.
#[derive(Clone)]
pub struct ProviderModel {
    backend: Backend,
    name: Arc<str>,
    subject: Arc<Subject>,
    limits: ModelLimits,
    native_output: bool,
}

#[derive(Clone)]
enum Backend {
    Own(Arc<Client>),
    #[cfg(feature = "genai")]
    Genai(Arc<genai::Genai>),
}

impl Model for ProviderModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> ModelLimits {
        self.limits
    }

    fn call(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        match &self.backend {
            Backend::Own(client) => Arc::clone(client).call(request).boxed(),
            #[cfg(feature = "genai")]
            Backend::Genai(client) => Arc::clone(client).call(request).boxed(),
        }
    }

    fn has_native_output(&self) -> bool {
        self.native_output
    }
}

impl fmt::Debug for ProviderModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderModel")
            .field("name", &self.subject.name)
            .field("origin", &self.subject.origin)
            .finish_non_exhaustive()
    }
}
