//! Replies of chat completions, streamed and whole.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::assembly::{Assembly, CallAt, count};
use super::super::failure::Failure;
use super::super::wire::{Advance, Decoder, error_of, items_of, json_of, str_of};
use crate::model::{Finish, ModelEvent, ModelReply, Usage};

/// A streamed reply so far.
pub(in super::super) struct Chat {
    provider: Arc<str>,
    assembly: Assembly,
    /// The call that fragments with this index belong to.
    by_index: HashMap<u64, CallAt>,
    last: Option<CallAt>,
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
            by_index: HashMap::new(),
            last: None,
            is_refusal: false,
            finish: None,
            usage: None,
            is_done: false,
        }
    }

    /// Reads the first choice. Returns whether the reply has more than before.
    fn choice(&mut self, choice: &Value, message: &Value) -> Result<bool, Failure> {
        let thought = ["reasoning_content", "reasoning"].map(|key| str_of(message, key));
        let thought = thought.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        self.assembly.thought(thought);
        let mut moved = !thought.is_empty() | self.content(message.get("content"));
        let refusal = str_of(message, "refusal");
        if !refusal.is_empty() {
            self.is_refusal = true;
            self.assembly.text(refusal);
            moved = true;
        }
        for fragment in items_of(message, "tool_calls") {
            self.call(fragment)?;
            moved = true;
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
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
                        self.assembly.thought(str_of(thought, "text"));
                    }
                }
                !parts.is_empty()
            }
            _ => false,
        }
    }

    /// A fragment of a call. Its index may be missing, or be that of an earlier call with another id.
    fn call(&mut self, fragment: &Value) -> Result<(), Failure> {
        let index = fragment.get("index").and_then(Value::as_u64);
        let function = fragment.get("function").unwrap_or(&Value::Null);
        let (id, name) = (str_of(fragment, "id"), str_of(function, "name"));
        let known = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None if id.is_empty() && !name.is_empty() => {
                self.last.filter(|last| !self.assembly.has_arguments(*last))
            }
            None => self.last,
        };
        let known = known.filter(|at| id.is_empty() || self.assembly.has_id(*at, id));
        let at = match known {
            Some(at) => at,
            None => self.assembly.call(id, name)?,
        };
        self.assembly.id(at, id);
        self.assembly.name(at, name);
        match function.get("arguments") {
            Some(Value::String(piece)) => self.assembly.arguments(at, piece),
            value => {
                if value.is_some_and(Value::is_object) {
                    self.assembly.whole_arguments(at, value);
                }
            }
        }
        if let Some(extra) = fragment.get("extra_content").filter(|extra| !extra.is_null()) {
            self.assembly.sign_call(at, extra.clone());
        }
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        self.last = Some(at);
        Ok(())
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

    fn reply(&mut self) -> Result<ModelReply, Failure> {
        let reason = self.finish.as_deref().ok_or_else(Failure::broken_off)?;
        let finish = match reason {
            _ if self.is_refusal => Finish::Refusal,
            "stop" => self.assembly.complete(),
            "tool_calls" | "function_call" => Finish::ToolUse,
            "length" | "model_length" => Finish::Length,
            "content_filter" => Finish::Refusal,
            "insufficient_system_resource" => {
                return Err(Failure::transient("the provider lacked resources to end the reply"));
            }
            unknown => return Err(Failure::unknown_finish(unknown)),
        };
        Ok(self.assembly.reply(&self.provider, finish, self.usage))
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
        if !self.is_done {
            return Err(Failure::broken_off());
        }
        self.reply()
    }
}

/// A reply in one piece.
pub(in super::super) fn whole(provider: &Arc<str>, value: &Value) -> Result<ModelReply, Failure> {
    let mut chat = Chat::new(Arc::clone(provider));
    chat.read(value, "message")?;
    chat.reply()
}

fn usage(value: &Value) -> Option<Usage> {
    let usage = Usage::new(count(value, "/prompt_tokens")?, count(value, "/completion_tokens")?);
    let cached = ["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"];
    Some(usage.cached(cached.iter().find_map(|pointer| count(value, pointer)).unwrap_or(0)))
}
