//! Replies of chats, streamed and whole. A stream has lines of the same form as a whole reply.

use std::sync::Arc;

use serde_json::Value;

use super::super::assembly::{Assembly, count};
use super::super::ending::Ending;
use super::super::failure::Failure;
use super::super::wire::{Advance, Decoder, error_of, items_of, json_of, str_of};
use crate::model::{ModelEvent, ModelReply, Usage};

/// The field of thoughts.
const PLACE: &str = "thinking";

/// A reply so far.
pub(in super::super) struct Ollama {
    provider: Arc<str>,
    assembly: Assembly,
    is_done: bool,
    /// The reason for the end; empty without one.
    reason: String,
    usage: Option<Usage>,
}

impl Ollama {
    pub(in super::super) fn new(provider: Arc<str>) -> Self {
        Self { provider, assembly: Assembly::default(), is_done: false, reason: String::new(), usage: None }
    }

    fn read(&mut self, value: &Value) -> Result<Advance, Failure> {
        error_of(value)?;
        let message = value.get("message").unwrap_or(&Value::Null);
        self.assembly.thought(str_of(message, "thinking"), PLACE);
        self.assembly.text(str_of(message, "content"));
        for call in items_of(message, "tool_calls") {
            let function = call.get("function").unwrap_or(&Value::Null);
            let at = self.assembly.call(str_of(call, "id"), str_of(function, "name"))?;
            self.assembly.whole_arguments(at, function.get("arguments"));
        }
        self.usage = usage(value).or(self.usage);
        let reason = str_of(value, "done_reason");
        if !reason.is_empty() {
            reason.clone_into(&mut self.reason);
        }
        self.is_done |= value.get("done").and_then(Value::as_bool) == Some(true);
        Ok(if self.is_done { Advance::Done } else { Advance::Moved })
    }
}

impl Decoder for Ollama {
    fn event(&mut self, data: &str) -> Result<Advance, Failure> {
        self.read(&json_of(data)?)
    }

    fn shown(&mut self) -> Vec<ModelEvent> {
        std::mem::take(&mut self.assembly.shown)
    }

    /// A reply is whole once it is done, or if its body ends after a reason.
    fn finish(&mut self) -> Result<ModelReply, Failure> {
        if !self.is_done && self.reason.is_empty() {
            return Err(Failure::broken_off());
        }
        let finish = Ending::of(&self.reason)?.finish(&self.assembly);
        self.assembly.reply(&self.provider, finish, self.usage)
    }
}

/// A reply in one piece.
pub(in super::super) fn whole(provider: &Arc<str>, value: &Value) -> Result<ModelReply, Failure> {
    let mut ollama = Ollama::new(Arc::clone(provider));
    ollama.read(value)?;
    ollama.is_done |= value.get("message").is_some_and(Value::is_object) && value.get("done").is_none();
    ollama.finish()
}

fn usage(value: &Value) -> Option<Usage> {
    Some(Usage::new(count(value, "/prompt_eval_count")?, count(value, "/eval_count")?))
}
