//! The kind `openai_resp`: OpenAI's responses, without state at the provider.

mod reply;
mod request;

pub(super) use reply::{Responses, whole};
pub(super) use request::body;

/// The longest id of a call.
const ID: usize = 64;

/// The field of the state of reasoning.
const STATE: &str = "encrypted_content";
