//! The start event of a workflow that answers a conversation.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use workflow_core::Event;

use crate::message::ChatMessage;

/// A turn of a chat: the conversation so far, whose last message is to be answered.
///
/// A step that takes it makes its workflow conversational. The messages are those of the body of OpenAI's
/// `POST /v1/chat/completions`, so a client's JSON can be read as they are. The client keeps the conversation: each turn has
/// all of it, and starts a run of its own. A turn is stored in the run's journal, so the engine's
/// [`max_event_bytes`](workflow_core::EngineBuilder::max_event_bytes) bounds it.
///
/// ```
/// use workflow_chat::{ChatRole, ChatTurn};
///
/// let turn: ChatTurn = serde_json::from_str(
///     r#"{"messages": [{"role": "user", "content": "Where is my order?"}], "parameters": {"temperature": 0.2}}"#,
/// )?;
/// assert_eq!(turn.messages[0].role, ChatRole::User);
/// assert_eq!(turn.parameters["temperature"], 0.2);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(start, name = "chat.turn")]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct ChatTurn {
    /// The conversation, oldest message first.
    pub messages: Vec<ChatMessage>,
    /// Who asks, as the client names them; `None` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What else the client asks for, by OpenAI's names: `temperature`, `max_completion_tokens`, …. Nothing is checked.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

impl ChatTurn {
    /// A turn of nobody in particular, without parameters.
    pub fn new(messages: impl IntoIterator<Item = ChatMessage>) -> Self {
        Self { messages: messages.into_iter().collect(), user: None, parameters: Map::new() }
    }

    /// Sets who asks.
    #[must_use]
    pub fn user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// Sets a parameter. A later one replaces an earlier one of the same name.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.parameters.insert(name.into(), value.into());
        self
    }
}
