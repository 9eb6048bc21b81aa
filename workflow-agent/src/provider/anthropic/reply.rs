//! Replies of messages, streamed and whole.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::assembly::{Assembly, CallAt, count};
use super::super::ending::Ending;
use super::super::failure::Failure;
use super::super::wire::{Advance, Decoder, error_of, items_of, json_of, str_of};
use crate::model::{ModelEvent, ModelReply, Usage};

/// A block of a reply that deltas add to.
#[derive(Debug, Clone, Copy)]
enum Block {
    Text,
    Thought,
    Call(CallAt),
    /// One that needs no deltas, or of an unknown type.
    Other,
}

/// Where thoughts without a signature stand.
const PLACE: &str = "thinking";

/// A streamed reply so far.
pub(in super::super) struct Messages {
    provider: Arc<str>,
    assembly: Assembly,
    /// The blocks that have not ended.
    blocks: HashMap<u64, Block>,
    /// The index of the block that began last.
    last: u64,
    stop: Stop,
    tokens: Tokens,
    is_done: bool,
}

/// Why a reply ended.
#[derive(Debug, Default)]
struct Stop {
    reason: Option<String>,
    /// The explanation of a refusal.
    explanation: String,
}

/// Tokens as far as they are reported: later reports replace earlier ones.
#[derive(Debug, Default)]
struct Tokens {
    input: Option<u64>,
    cache_read: u64,
    cache_written: u64,
    output: Option<u64>,
}

impl Messages {
    pub(in super::super) fn new(provider: Arc<str>) -> Self {
        Self {
            provider,
            assembly: Assembly::default(),
            blocks: HashMap::new(),
            last: 0,
            stop: Stop::default(),
            tokens: Tokens::default(),
            is_done: false,
        }
    }

    fn read(&mut self, value: &Value) -> Result<Advance, Failure> {
        match str_of(value, "type") {
            "message_start" => {
                self.tokens.read(value.pointer("/message/usage").unwrap_or(&Value::Null));
            }
            "content_block_start" => {
                let block = begin(&mut self.assembly, value.get("content_block").unwrap_or(&Value::Null))?;
                self.last = value.get("index").and_then(Value::as_u64).unwrap_or(self.last.saturating_add(1));
                self.blocks.insert(self.last, block);
            }
            "content_block_delta" => self.delta(value)?,
            "content_block_stop" => drop(self.blocks.remove(&self.index_of(value))),
            "message_delta" => {
                self.tokens.read(value.get("usage").unwrap_or(&Value::Null));
                self.stop.read(value.get("delta").unwrap_or(&Value::Null));
            }
            "message_stop" => {
                self.is_done = true;
                return Ok(Advance::Done);
            }
            "error" => return Err(Failure::reported(value)),
            _ => {
                error_of(value)?;
                return Ok(Advance::Alive);
            }
        }
        Ok(Advance::Moved)
    }

    /// The index of an event. Without one, it is about the block that began last.
    fn index_of(&self, value: &Value) -> u64 {
        value.get("index").and_then(Value::as_u64).unwrap_or(self.last)
    }

    /// Adds to a block. Arguments that belong to no open call make the reply unusable: without them, their call would run with
    /// others.
    fn delta(&mut self, value: &Value) -> Result<(), Failure> {
        let delta = value.get("delta").unwrap_or(&Value::Null);
        let block = self.blocks.get(&self.index_of(value)).copied();
        match (block, str_of(delta, "type")) {
            (Some(Block::Text) | None, "text_delta") => self.assembly.text(str_of(delta, "text")),
            (Some(Block::Thought) | None, "thinking_delta") => {
                self.assembly.thought(str_of(delta, "thinking"), PLACE);
            }
            (Some(Block::Thought), "signature_delta") => self.assembly.sign_on(str_of(delta, "signature")),
            (Some(Block::Call(at)), "input_json_delta") => {
                self.assembly.arguments(at, str_of(delta, "partial_json"));
            }
            (Some(Block::Text | Block::Thought) | None, "input_json_delta")
                if !str_of(delta, "partial_json").is_empty() =>
            {
                return Err(Failure::unusable("arguments of the reply belong to no call"));
            }
            _ => {}
        }
        Ok(())
    }

    /// The reply. `is_ended` says that it is whole also without a reason for its end.
    fn reply(&mut self, is_ended: bool) -> Result<ModelReply, Failure> {
        let ending = match self.stop.reason.as_deref() {
            None if !is_ended => return Err(Failure::broken_off()),
            reason => Ending::of(reason.unwrap_or_default())?,
        };
        if ending == Ending::Refusal && !self.assembly.has_text() {
            self.assembly.text(&self.stop.explanation);
        }
        let finish = ending.finish(&self.assembly);
        self.assembly.reply(&self.provider, finish, self.tokens.usage())
    }
}

/// Begins a block. A block of an unknown type is skipped.
fn begin(assembly: &mut Assembly, block: &Value) -> Result<Block, Failure> {
    Ok(match str_of(block, "type") {
        "text" => {
            assembly.begin_text();
            assembly.text(str_of(block, "text"));
            Block::Text
        }
        "thinking" => {
            assembly.begin_thought(PLACE);
            assembly.thought(str_of(block, "thinking"), PLACE);
            assembly.sign_on(str_of(block, "signature"));
            Block::Thought
        }
        "redacted_thinking" => {
            assembly.opaque(block.clone());
            Block::Other
        }
        "tool_use" => {
            let at = assembly.call(str_of(block, "id"), str_of(block, "name"))?;
            assembly.whole_arguments(at, block.get("input"));
            Block::Call(at)
        }
        _ => Block::Other,
    })
}

impl Stop {
    fn read(&mut self, value: &Value) {
        if let Some(reason) = value.get("stop_reason").and_then(Value::as_str) {
            self.reason = Some(reason.to_owned());
        }
        if let Some(details) = value.get("stop_details") {
            str_of(details, "explanation").clone_into(&mut self.explanation);
        }
    }
}

impl Tokens {
    fn read(&mut self, usage: &Value) {
        self.input = count(usage, "/input_tokens").or(self.input);
        self.cache_read = count(usage, "/cache_read_input_tokens").unwrap_or(self.cache_read);
        self.cache_written = count(usage, "/cache_creation_input_tokens").unwrap_or(self.cache_written);
        self.output = count(usage, "/output_tokens").or(self.output);
    }

    fn usage(&self) -> Option<Usage> {
        let input = self.input?.saturating_add(self.cache_read).saturating_add(self.cache_written);
        Some(Usage::new(input, self.output?).cached(self.cache_read))
    }
}

impl Decoder for Messages {
    fn event(&mut self, data: &str) -> Result<Advance, Failure> {
        match data.trim() {
            "" => Ok(Advance::Alive),
            data => self.read(&json_of(data)?),
        }
    }

    fn shown(&mut self) -> Vec<ModelEvent> {
        std::mem::take(&mut self.assembly.shown)
    }

    fn finish(&mut self) -> Result<ModelReply, Failure> {
        self.reply(self.is_done)
    }
}

/// A message in one piece.
pub(in super::super) fn whole(provider: &Arc<str>, value: &Value) -> Result<ModelReply, Failure> {
    error_of(value)?;
    let mut messages = Messages::new(Arc::clone(provider));
    for block in items_of(value, "content") {
        begin(&mut messages.assembly, block)?;
    }
    messages.stop.read(value);
    messages.tokens.read(value.get("usage").unwrap_or(&Value::Null));
    messages.reply(value.get("content").is_some_and(Value::is_array))
}
