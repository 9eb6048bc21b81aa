//! Chats whose client keeps the conversation: a [`ChatTurn`](workflow_chat::ChatTurn) as a conversation of the agent.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use workflow_chat::{ChatContent, ChatMessage, ChatPart, ChatRole, ChatTurn};
use workflow_core::StepError;

use crate::entry::{Entry, ToolCall, ToolDone};
use crate::model::{Image, Part, ToolUse};
use crate::secret::Redactor;

/// Why a turn of a chat cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The last message is not the user's.
    #[error("the last message of the chat is not the user's: send one of role `user`")]
    NoQuestion,
    /// The last message has neither text nor an image.
    #[error("the last message of the chat is empty: give it a text or an image")]
    Empty,
    /// A text exceeds its bound.
    #[error("message {index} of the chat has {bytes} bytes, and {limit} at most are allowed")]
    TextTooLong {
        /// The index of the message.
        index: usize,
        /// Its length.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// An image exceeds its bound.
    #[error("an image of message {index} has {bytes} bytes, and {limit} at most are allowed")]
    ImageTooLarge {
        /// The index of the message.
        index: usize,
        /// Its size.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// The whole chat exceeds its bound.
    #[error("the chat has {bytes} bytes, and {limit} at most are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
}

/// The message to answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) text: String,
}

/// The message to answer, if the chat keeps to its bounds.
pub(crate) fn asked(turn: &ChatTurn, redactor: &Redactor) -> Result<Asked, ChatError> {
    check(turn)?;
    match turn.messages.last() {
        Some(message) if message.role == ChatRole::User => {
            if is_empty(message) {
                return Err(ChatError::Empty);
            }
            Ok(Asked { text: redactor.text(&message.text()).into_owned() })
        }
        _ => Err(ChatError::NoQuestion),
    }
}

fn is_empty(message: &ChatMessage) -> bool {
    message.text().trim().is_empty() && images(message).is_empty()
}

fn check(turn: &ChatTurn) -> Result<(), ChatError> {
    let mut bytes = 0;
    for (index, message) in turn.messages.iter().enumerate() {
        let text = message.text().len();
        let calls: usize = message.tool_calls.iter().map(|call| call.function.arguments.len()).sum();
        if text > crate::agent::TEXT || calls > crate::agent::TEXT {
            return Err(ChatError::TextTooLong { index, bytes: text.max(calls), limit: crate::agent::TEXT });
        }
        let mut of_images = 0;
        for image in images(message) {
            let (size, limit) = (image.bytes(), crate::agent::IMAGE * 4 / 3 + 4);
            if size > limit {
                return Err(ChatError::ImageTooLarge {
                    index,
                    bytes: size / 4 * 3,
                    limit: crate::agent::IMAGE,
                });
            }
            of_images += size;
        }
        bytes += text + calls + of_images;
    }
    if bytes > crate::agent::CONVERSATION {
        Err(ChatError::TooLong { bytes, limit: crate::agent::CONVERSATION })
    } else {
        Ok(())
    }
}

/// The instructions of the client, which follow those of the agent.
pub(crate) fn instructions(turn: &ChatTurn, redactor: &Redactor) -> String {
    let system = turn.messages.iter().filter(|message| is_instruction(message));
    let texts: Vec<String> = system.map(|message| redactor.text(&message.text()).into_owned()).collect();
    texts.join("\n\n")
}

fn is_instruction(message: &ChatMessage) -> bool {
    matches!(message.role, ChatRole::System | ChatRole::Developer)
}

/// The conversation as entries.
pub(crate) fn given(turn: &ChatTurn, redactor: &Redactor) -> Result<Vec<Entry>, StepError> {
    asked(turn, redactor).map_err(StepError::permanent)?;
    let mut entries = Vec::with_capacity(turn.messages.len());
    let mut results: Vec<ToolDone> = Vec::new();
    let mut calls = Calls::default();
    for message in turn.messages.iter().filter(|message| !is_instruction(message)) {
        if message.role == ChatRole::Tool {
            results.extend(result(message, &calls, redactor));
            continue;
        }
        flush(&mut entries, &mut results);
        match message.role {
            ChatRole::Assistant => {
                let parts = said(message, redactor, &mut calls);
                entries.push(Entry::Said { parts: parts.into() });
            }
            // Providers refuse empty messages.
            _ if is_empty(message) => {}
            _ => {
                let text = redactor.text(&message.text()).into_owned().into();
                entries.push(Entry::User { text, images: images(message).into() });
            }
        }
    }
    flush(&mut entries, &mut results);
    Ok(entries)
}

fn flush(entries: &mut Vec<Entry>, results: &mut Vec<ToolDone>) {
    if !results.is_empty() {
        entries.push(Entry::Results { results: std::mem::take(results) });
    }
}

/// The calls of a chat so far. Clients use ids that providers refuse, or one id again and again.
#[derive(Debug, Default)]
struct Calls {
    taken: HashSet<Arc<str>>,
    /// The client's id, and the call that has the agent's.
    known: Vec<(String, ToolCall)>,
}

impl Calls {
    /// An id that is fit and new: the client's own if possible. The same chat has the same ids in each turn.
    fn id(&mut self, wanted: &str) -> Arc<str> {
        let mut id: Arc<str> = wanted.into();
        let mut number = self.known.len();
        while !crate::tool::is_fit(&id) || !self.taken.insert(Arc::clone(&id)) {
            id = format!("chat_{number}").into();
            number += 1;
        }
        id
    }
}

fn said(message: &ChatMessage, redactor: &Redactor, calls: &mut Calls) -> Vec<Part> {
    let mut parts = Vec::new();
    let text = message.text();
    // Providers refuse blank texts.
    if !text.trim().is_empty() {
        parts.push(Part::Text(redactor.text(&text).into_owned()));
    }
    for call in &message.tool_calls {
        let mut arguments = ToolUse::parse_arguments(&call.function.arguments);
        redactor.value(&mut arguments);
        let (id, tool) = (calls.id(&call.id), crate::tool::fitted(&redactor.text(&call.function.name)));
        let known = ToolCall { call: Arc::clone(&id), tool: tool.as_str().into(), arguments: Value::Null };
        calls.known.push((call.id.clone(), known));
        parts.push(Part::Call(ToolUse::new(id, tool, arguments)));
    }
    parts
}

fn result(message: &ChatMessage, calls: &Calls, redactor: &Redactor) -> Option<ToolDone> {
    let id = message.tool_call_id.as_deref()?;
    let (_, call) = calls.known.iter().rev().find(|(theirs, _)| theirs == id)?;
    let text = redactor.text(&message.text()).into_owned();
    Some(ToolDone::new(call, crate::tool::cut(&text, crate::tool::OUTPUT).into_owned(), false))
}

fn images(message: &ChatMessage) -> Vec<Image> {
    let Some(ChatContent::Parts(parts)) = &message.content else { return Vec::new() };
    let images = parts.iter().filter_map(|part| match part {
        ChatPart::ImageUrl { image_url } => Some(image(&image_url.url)),
        _ => None,
    });
    images.collect()
}

/// A data URL is bytes, and any other is an address.
fn image(url: &str) -> Image {
    let data = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    match data {
        Some((media_type, base64)) => {
            Image::Data { media_type: media_type.to_owned(), base64: base64.to_owned() }
        }
        None => Image::Url(url.to_owned()),
    }
}
