//! The kind `gemini`: Google's Gemini API.

mod reply;
mod request;

pub(super) use reply::{Gemini, whole};
pub(super) use request::body;

/// The longest id of a call.
const ID: usize = 64;

/// The field of a signature, on a part of any type.
const SIGNATURE: &str = "thoughtSignature";

/// Where thoughts without a signature stand.
const PLACE: &str = "thought";
