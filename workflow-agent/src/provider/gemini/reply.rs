//! Replies of generated content, streamed and whole. A stream has pieces of the same form as a whole reply.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::assembly::{Assembly, count};
use super::super::failure::Failure;
use super::super::wire::{Advance, Decoder, error_of, items_of, json_of, str_of};
use super::{PLACE, SIGNATURE};
use crate::model::{Finish, ModelEvent, ModelReply, Usage};

/// Reasons that are refusals of the provider.
const REFUSALS: [&str; 11] = [
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "ESCALATION",
];

/// A reply so far.
pub(in super::super) struct Gemini {
    provider: Arc<str>,
    assembly: Assembly,
    finish: Option<String>,
    /// Why the provider refused the request before the model read it.
    blocked: Option<String>,
    usage: Option<Usage>,
}

impl Gemini {
    pub(in super::super) fn new(provider: Arc<str>) -> Self {
        Self { provider, assembly: Assembly::default(), finish: None, blocked: None, usage: None }
    }

    fn read(&mut self, value: &Value) -> Result<Advance, Failure> {
        error_of(value)?;
        let mut advance = Advance::Alive;
        if let Some(usage) = usage(value.get("usageMetadata").unwrap_or(&Value::Null)) {
            self.usage = Some(usage);
        }
        if let Some(reason) = value.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            self.blocked = Some(reason.to_owned());
            advance = Advance::Moved;
        }
        for candidate in items_of(value, "candidates") {
            if candidate.get("index").and_then(Value::as_u64).unwrap_or(0) != 0 {
                continue;
            }
            for part in candidate.get("content").map_or(&[][..], |content| items_of(content, "parts")) {
                self.part(part)?;
                advance = Advance::Moved;
            }
            if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
                self.finish = Some(reason.to_owned());
                advance = Advance::Moved;
            }
        }
        Ok(advance)
    }

    fn part(&mut self, part: &Value) -> Result<(), Failure> {
        let signature = part.get(SIGNATURE).filter(|signature| signature.is_string());
        let text = str_of(part, "text");
        if let Some(call) = part.get("functionCall") {
            let at = self.assembly.call(str_of(call, "id"), str_of(call, "name"))?;
            self.assembly.whole_arguments(at, call.get("args"));
            if let Some(signature) = signature {
                self.assembly.sign_call(at, signature.clone());
            }
        } else if part.get("thought").and_then(Value::as_bool) == Some(true) {
            self.assembly.thought(text, PLACE);
            if let Some(signature) = signature {
                self.assembly.sign_thought(signature.clone());
            }
        } else if part.get("text").is_some() {
            self.text(text, signature);
        }
        Ok(())
    }

    /// A text with a signature stays a part of its own, so that both go back together.
    fn text(&mut self, text: &str, signature: Option<&Value>) {
        let Some(signature) = signature else { return self.assembly.text(text) };
        if text.trim().is_empty() {
            // A blank text has no part of its own: others refuse it.
            self.assembly.text(text);
            self.assembly.opaque(json!({ SIGNATURE: signature }));
        } else {
            self.assembly.begin_text();
            self.assembly.text(text);
            self.assembly.opaque(json!({ SIGNATURE: signature, "text": true }));
        }
    }
}

impl Decoder for Gemini {
    fn event(&mut self, data: &str) -> Result<Advance, Failure> {
        match data.trim() {
            "" | "[DONE]" => Ok(Advance::Alive),
            data => self.read(&json_of(data)?),
        }
    }

    fn shown(&mut self) -> Vec<ModelEvent> {
        std::mem::take(&mut self.assembly.shown)
    }

    /// No event ends a stream: a reply is whole if the stream ends after a reason.
    fn finish(&mut self) -> Result<ModelReply, Failure> {
        // A request that the provider refused has no candidate, and so no reason but that one.
        let refused = self.blocked.as_ref().map(|_| "SAFETY");
        let finish = match self.finish.as_deref().or(refused).ok_or_else(Failure::broken_off)? {
            "STOP" => self.assembly.complete(),
            "MAX_TOKENS" => Finish::Length,
            reason if REFUSALS.contains(&reason) => Finish::Refusal,
            unknown => return Err(Failure::unknown_finish(unknown)),
        };
        self.assembly.reply(&self.provider, finish, self.usage)
    }
}

/// A reply in one piece.
pub(in super::super) fn whole(provider: &Arc<str>, value: &Value) -> Result<ModelReply, Failure> {
    let mut gemini = Gemini::new(Arc::clone(provider));
    gemini.read(value)?;
    // The body is whole, and so is a candidate in it.
    let has_parts = value.pointer("/candidates/0/content/parts").is_some();
    gemini.finish = gemini.finish.take().or_else(|| has_parts.then(|| "STOP".to_owned()));
    gemini.finish()
}

fn usage(value: &Value) -> Option<Usage> {
    let also = |pointer| count(value, pointer).unwrap_or(0);
    let input = count(value, "/promptTokenCount")?.saturating_add(also("/toolUsePromptTokenCount"));
    let output = also("/candidatesTokenCount").saturating_add(also("/thoughtsTokenCount"));
    Some(Usage::new(input, output).cached(also("/cachedContentTokenCount")))
}
