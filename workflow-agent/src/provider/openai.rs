//! The kind `openai`: the chat completions of OpenAI, and of the many servers that copied them.

mod calls;
mod reply;
mod request;
mod thoughts;

pub(super) use reply::{Chat, whole};
pub(super) use request::body;

/// The longest id of a call.
const ID: usize = 40;
