//! Replies of chat completions, streamed and whole.

use std::sync::Arc;

use serde_json::Value;

use super::super::assembly::{Assembly, count};
use super::super::ending::Ending;
use super::super::failure::Failure;
use super::super::wire::{Advance, Decoder, error_of, items_of, json_of, str_of};
use super::calls::{self, Calls};
use super::thoughts::{PARTS, Thoughts};
use crate::model::{Finish, ModelEvent, ModelReply, Usage};

/// A streamed reply so far.
pub(in super::super) struct Chat {
    provider: Arc<str>,
    assembly: Assembly,
    thoughts: Thoughts,
    calls: Calls,
    /// Whether the reply comes in one piece.
    is_whole: bool,
    is_refusal: bool,
    finish: Option<String>,
    usage: Option<Usage>,
    is_done: bool,
}

impl Chat {
    pub(in super::super) fn new(provider: Arc<str>) -> Self {
        Self {
            provider,
            assembly: Assembly::default(),
            thoughts: Thoughts::default(),
            calls: Calls::default(),
            is_whole: false,
            is_refusal: false,
            finish: None,
            usage: None,
            is_done: false,
        }
    }

    /// Reads the first choice. Returns whether the reply has more than before.
    fn choice(&mut self, choice: &Value, message: &Value) -> Result<bool, Failure> {
        let mut moved = self.thoughts.add(&mut self.assembly, message);
        moved |= self.content(message.get("content"));
        let refusal = str_of(message, "refusal");
        if !refusal.is_empty() {
            self.is_refusal = true;
            self.assembly.text(refusal);
            moved = true;
        }
        let calls = items_of(message, "tool_calls");
        moved |= !calls.is_empty();
        if self.is_whole {
            calls.iter().try_for_each(|call| calls::whole(&mut self.assembly, call))?;
        } else {
            self.calls.add(&mut self.assembly, calls)?;
        }
        let reason = str_of(choice, "finish_reason");
        if !reason.is_empty() {
            self.finish = Some(reason.to_owned());
            moved = true;
        }
        Ok(moved)
    }

    /// Text, or a list of parts, as some servers send it.
    fn content(&mut self, content: Option<&Value>) -> bool {
        match content {
            Some(Value::String(text)) => {
                self.assembly.text(text);
                !text.is_empty()
            }
            Some(Value::Array(parts)) => {
                for part in parts {
                    self.assembly.text(str_of(part, "text"));
                    for thought in items_of(part, "thinking") {
                        self.assembly.thought(str_of(thought, "text"), PARTS);
                    }
                }
                !parts.is_empty()
            }
            _ => false,
        }
    }

    fn read(&mut self, value: &Value, key: &str) -> Result<bool, Failure> {
        error_of(value)?;
        let mut moved = false;
        if let Some(usage) = usage(value.get("usage").unwrap_or(&Value::Null)) {
            self.usage = Some(usage);
            moved = true;
        }
        for choice in items_of(value, "choices") {
            if choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0 {
                moved |= self.choice(choice, choice.get(key).unwrap_or(&Value::Null))?;
            }
        }
        Ok(moved)
    }

    /// The reply. `is_ended` says that it is whole also without a reason for its end.
    fn reply(&mut self, is_ended: bool) -> Result<ModelReply, Failure> {
        let reason = self.finish.as_deref();
        let finish = match reason {
            None if !is_ended => return Err(Failure::broken_off()),
            _ if self.is_refusal => Finish::Refusal,
            Some("insufficient_system_resource") => {
                return Err(Failure::transient("the provider lacked resources to end the reply"));
            }
            reason => Ending::of(reason.unwrap_or_default())?.finish(&self.assembly),
        };
        self.thoughts.end(&mut self.assembly);
        self.assembly.reply(&self.provider, finish, self.usage)
    }
}

impl Decoder for Chat {
    fn event(&mut self, data: &str) -> Result<Advance, Failure> {
        if data.trim().is_empty() {
            return Ok(Advance::Alive);
        }
        if data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(Advance::Done);
        }
        let moved = self.read(&json_of(data)?, "delta")?;
        Ok(if moved { Advance::Moved } else { Advance::Alive })
    }

    fn shown(&mut self) -> Vec<ModelEvent> {
        std::mem::take(&mut self.assembly.shown)
    }

    fn finish(&mut self) -> Result<ModelReply, Failure> {
        self.reply(self.is_done)
    }
}

/// A reply in one piece.
pub(in super::super) fn whole(provider: &Arc<str>, value: &Value) -> Result<ModelReply, Failure> {
    let mut chat = Chat { is_whole: true, ..Chat::new(Arc::clone(provider)) };
    chat.read(value, "message")?;
    chat.reply(!items_of(value, "choices").is_empty())
}

fn usage(value: &Value) -> Option<Usage> {
    let usage = Usage::new(count(value, "/prompt_tokens")?, count(value, "/completion_tokens")?);
    let cached = ["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"];
    Some(usage.cached(cached.iter().find_map(|pointer| count(value, pointer)).unwrap_or(0)))
}
