//! The kind `ollama`: the native interface of Ollama.

mod reply;
mod request;

pub(super) use reply::{Ollama, whole};
pub(super) use request::body;
