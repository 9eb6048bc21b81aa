//! The kind `anthropic`: Anthropic's messages.

mod reply;
mod request;

pub(super) use reply::{Messages, whole};
pub(super) use request::body;

/// The longest id of a call.
const ID: usize = 64;
