//! The messages of a conversation, as OpenAI's chat completions have them. Fields and parts that this crate does not know are
//! kept, and written as they were read.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum ChatRole {
    /// The instructions of the program, by the name that newer models use.
    Developer,
    /// The instructions of the program.
    System,
    /// A person, or the program on a person's behalf.
    User,
    /// The model.
    Assistant,
    /// A tool: its result of a [`ToolCall`].
    Tool,
}

/// A message of a conversation.
///
/// ```
/// use serde_json::json;
/// use workflow_chat::ChatMessage;
///
/// let message = ChatMessage::user("Where is my order?");
/// assert_eq!(serde_json::to_value(&message)?, json!({"role": "user", "content": "Where is my order?"}));
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ChatMessage {
    /// Who wrote it.
    pub role: ChatRole,
    /// What it says; `None` for an assistant's message that only calls tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ChatContent>,
    /// The name of its author, where several have one role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The tools that the assistant calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Of a tool's message: the [`ToolCall::id`] that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Fields of other names, as they were read.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl ChatMessage {
    /// A message of this role that says this.
    pub fn new(role: ChatRole, content: impl Into<ChatContent>) -> Self {
        Self {
            role,
            content: Some(content.into()),
            name: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            more: Map::new(),
        }
    }

    /// Instructions of the program.
    pub fn system(content: impl Into<ChatContent>) -> Self {
        Self::new(ChatRole::System, content)
    }

    /// A person's message.
    pub fn user(content: impl Into<ChatContent>) -> Self {
        Self::new(ChatRole::User, content)
    }

    /// A model's message.
    pub fn assistant(content: impl Into<ChatContent>) -> Self {
        Self::new(ChatRole::Assistant, content)
    }

    /// A tool's result of the call with this id.
    pub fn tool(call: impl Into<String>, content: impl Into<ChatContent>) -> Self {
        Self { tool_call_id: Some(call.into()), ..Self::new(ChatRole::Tool, content) }
    }

    /// Its text; that of several parts is joined. Empty if it has none.
    ///
    /// ```
    /// use workflow_chat::{ChatMessage, ChatPart};
    ///
    /// let parts = ["Look at ", "this"].map(ChatPart::text);
    /// assert_eq!(ChatMessage::user(parts.to_vec()).text(), "Look at this");
    /// ```
    pub fn text(&self) -> Cow<'_, str> {
        self.content.as_ref().map(ChatContent::text).unwrap_or_default()
    }
}

/// What a message says: a text, or parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum ChatContent {
    /// A text.
    Text(String),
    /// Parts of several kinds, in order.
    Parts(Vec<ChatPart>),
}

impl ChatContent {
    /// The text; that of several parts is joined.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Parts(parts) => {
                let texts = parts.iter().filter_map(|part| match part {
                    ChatPart::Text { text } => Some(&**text),
                    _ => None,
                });
                Cow::Owned(texts.collect())
            }
        }
    }
}

impl From<String> for ChatContent {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ChatContent {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<ChatPart>> for ChatContent {
    fn from(parts: Vec<ChatPart>) -> Self {
        Self::Parts(parts)
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum ChatPart {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    ImageUrl {
        /// The image.
        image_url: ChatImage,
    },
    /// A part of another type, as it was read.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl ChatPart {
    /// A part with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// An image in a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ChatImage {
    /// The address of the image, or its bytes in a `data:` URL.
    pub url: String,
    /// How closely the model is to look: `auto`, `low`, `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A call of a tool by a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The id of the call, which the tool's message names.
    pub id: String,
    /// The function.
    pub function: ToolFunction,
    /// Fields of other names, as they were read: `type` among them.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The function that a model calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ToolFunction {
    /// The name of the function.
    pub name: String,
    /// Its arguments as the model wrote them: usually a JSON object, not checked.
    pub arguments: String,
}
