//! The providers of `workflow-agent`, and those of `genai`, whose dependency switches on `serde_json/preserve_order`.

mod providers;
mod validate;
