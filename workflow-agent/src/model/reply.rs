//! Replies of models: their parts, how they finished, and what they used.

use std::ops::AddAssign;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The whole reply of a model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelReply {
    /// Text, thoughts, calls and opaque parts, in their order.
    pub parts: Vec<Part>,
    /// Why the reply ended.
    pub finish: Finish,
    /// The tokens, if the provider reported them.
    pub usage: Option<Usage>,
}

impl ModelReply {
    /// A reply of these parts.
    pub fn new(parts: Vec<Part>, finish: Finish) -> Self {
        Self { parts, finish, usage: None }
    }

    /// An answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![Part::Text(text.into())], Finish::Stop)
    }

    /// Sets the usage.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }

    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolUse> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The number of characters that the model wrote.
    pub(crate) fn characters(&self) -> usize {
        self.parts.iter().map(Part::characters).sum()
    }
}

/// A part of a model's reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// A piece of the answer.
    Text(String),
    /// A thought. The next requests to the provider that made it have it again, as it came.
    Thought {
        /// The text; empty if the provider hides it.
        text: String,
        /// The signature, which goes back to its provider unchanged. Of a provider that signs nothing, a mark of where it has
        /// its thoughts. Without either, the thought goes back to nobody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Opaque>,
    },
    /// A tool call.
    Call(ToolUse),
    /// Anything else that its provider wants back unchanged.
    Opaque(Opaque),
}

impl Part {
    pub(crate) fn characters(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thought { text, .. } => text.chars().count(),
            Self::Call(call) => call.name.chars().count() + crate::tool::json_length(&call.arguments),
            Self::Opaque(opaque) => crate::tool::json_length(&opaque.data),
        }
    }
}

/// A tool call, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The id, unique in its run once the agent has it.
    pub id: Arc<str>,
    /// The name of the tool.
    pub name: Arc<str>,
    /// The arguments: an object if the model wrote valid JSON, or else its text as a JSON string.
    pub arguments: Value,
    /// A signature, which goes back to its provider unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Opaque>,
}

impl ToolUse {
    /// A call without a signature.
    pub fn new(id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments, signature: None }
    }

    /// Reads arguments that came as text: empty text is an empty object, and text that is no JSON stays a string.
    pub fn parse_arguments(text: &str) -> Value {
        if text.trim().is_empty() {
            return Value::Object(serde_json::Map::new());
        }
        serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
    }
}

/// Data that only its provider understands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    /// The provider that made it. A client of another provider leaves it out.
    pub provider: Arc<str>,
    /// The data.
    pub data: Value,
}

impl Opaque {
    /// Data of a provider. The keys of its objects are sorted, so that a request has the same bytes before and after a
    /// restart.
    pub fn new(provider: impl Into<Arc<str>>, mut data: Value) -> Self {
        data.sort_all_objects();
        Self { provider: provider.into(), data }
    }

    /// The mark of a thought that its provider did not sign. This data says where the provider has it.
    #[cfg(feature = "providers")]
    pub(crate) fn unsigned(self) -> Self {
        Self { data: serde_json::json!({ UNSIGNED: self.data }), ..self }
    }

    /// Whether the data is a mark, which fits any text, and no signature.
    pub(crate) fn is_mark(&self) -> bool {
        place_of(&self.data).is_some()
    }
}

/// The field of marks.
const UNSIGNED: &str = "unsigned";

/// Where a provider has a thought that it did not sign; nothing for a signature.
pub(crate) fn place_of(data: &Value) -> Option<&Value> {
    data.get(UNSIGNED)
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// The answer is complete.
    Stop,
    /// The model waits for the results of its calls.
    ToolUse,
    /// The reply reached its longest length.
    Length,
    /// The reply reached the end of the context window.
    ContextLimit,
    /// The model or the provider refused.
    Refusal,
}

/// Tokens that calls of models used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of input, cached ones included.
    pub input: u64,
    /// Those of them that the provider had cached.
    #[serde(default)]
    pub cached_input: u64,
    /// Tokens of output, thoughts included.
    pub output: u64,
    /// Whether a part of it is an estimate, because a provider reported nothing: four characters count as one token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// Usage without cached input.
    pub const fn new(input: u64, output: u64) -> Self {
        Self { input, cached_input: 0, output, estimated: false }
    }

    /// Sets the cached part of the input.
    #[must_use]
    pub const fn cached(self, cached_input: u64) -> Self {
        Self { cached_input, ..self }
    }

    /// Input and output together.
    pub const fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.cached_input = self.cached_input.saturating_add(more.cached_input);
        self.output = self.output.saturating_add(more.output);
        self.estimated = self.estimated || more.estimated;
    }
}

/// An image of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Image {
    /// Its address, which the provider fetches.
    Url(String),
    /// Its bytes, as base64.
    Data {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The bytes as base64.
        base64: String,
    },
}

impl Image {
    /// The size of address or base64 text in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Url(url) => url.len(),
            Self::Data { base64, .. } => base64.len(),
        }
    }
}

/// The bytes of a value as JSON, without keeping the text.
pub(crate) fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Neither a value nor the count can fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
