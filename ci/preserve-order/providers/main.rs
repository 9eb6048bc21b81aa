//! The tests of the providers of `workflow-agent`, with those of `genai`, which switches on `serde_json/preserve_order`.

mod providers;
mod validate;
