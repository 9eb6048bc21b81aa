//! Replies of chats, streamed and whole. A stream has lines of the same form as a whole reply.

use std::sync::Arc;

use serde_json::Value;

use super::super::assembly::{Assembly, count};
use super::super::failure::Failure;
use super::super::wire::{Advance, Decoder, error_of, items_of, json_of, str_of};
use crate::model::{Finish, ModelEvent, ModelReply, Usage};

/// A reply so far.
pub(in super::super) struct Ollama {
    provider: Arc<str>,
    assembly: Assembly,
    /// The reason, once the reply is done.
    done: Option<String>,
    usage: Option<Usage>,
}

impl Ollama {
    pub(in super::super) fn new(provider: Arc<str>) -> Self {
        Self { provider, assembly: Assembly::default(), done: None, usage: None }
    }

    fn read(&mut self, value: &Value) -> Result<Advance, Failure> {
        error_of(value)?;
        let message = value.get("message").unwrap_or(&Value::Null);
        self.assembly.thought(str_of(message, "thinking"));
        self.assembly.text(str_of(message, "content"));
        for call in items_of(message, "tool_calls") {
            let function = call.get("function").unwrap_or(&Value::Null);
            let at = self.assembly.call(str_of(call, "id"), str_of(function, "name"))?;
            self.assembly.whole_arguments(at, function.get("arguments"));
        }
        if value.get("done").and_then(Value::as_bool) != Some(true) {
            return Ok(Advance::Moved);
        }
        self.done = Some(str_of(value, "done_reason").to_owned());
        self.usage = usage(value);
        Ok(Advance::Done)
    }
}

impl Decoder for Ollama {
    fn event(&mut self, data: &str) -> Result<Advance, Failure> {
        self.read(&json_of(data)?)
    }

    fn shown(&mut self) -> Vec<ModelEvent> {
        std::mem::take(&mut self.assembly.shown)
    }

    fn finish(&mut self) -> Result<ModelReply, Failure> {
        let finish = match self.done.as_deref().ok_or_else(Failure::broken_off)? {
            "stop" => self.assembly.complete(),
            "length" => Finish::Length,
            unknown => return Err(Failure::unknown_finish(unknown)),
        };
        Ok(self.assembly.reply(&self.provider, finish, self.usage))
    }
}

/// A reply in one piece.
pub(in super::super) fn whole(provider: &Arc<str>, value: &Value) -> Result<ModelReply, Failure> {
    let mut ollama = Ollama::new(Arc::clone(provider));
    ollama.read(value)?;
    ollama.finish()
}

fn usage(value: &Value) -> Option<Usage> {
    Some(Usage::new(count(value, "/prompt_eval_count")?, count(value, "/eval_count")?))
}
