//! Thoughts of chat completions. Each server has them in a field of its own, and some demand them back in that field:
//! `reasoning_content`, `reasoning`, parts of the content, or the list `reasoning_details`.

use serde_json::{Map, Value};

use super::super::assembly::{Assembly, ThoughtAt};
use super::super::wire::{items_of, str_of};

/// The fields that have thoughts as text.
pub(super) const FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];
/// The list of details.
pub(super) const DETAILS: &str = "reasoning_details";
/// Stands for parts of the content.
pub(super) const PARTS: &str = "thinking";

/// The details of a streamed reply so far.
#[derive(Debug, Default)]
pub(super) struct Thoughts {
    details: Vec<Detail>,
    /// A field that came, and was empty each time.
    empty: Option<&'static str>,
}

#[derive(Debug)]
struct Detail {
    kind: String,
    index: Option<u64>,
    at: ThoughtAt,
}

/// The field of a detail that has its text.
pub(super) fn text_field(kind: &str) -> Option<&'static str> {
    match kind {
        "reasoning.text" => Some("text"),
        "reasoning.summary" => Some("summary"),
        _ => None,
    }
}

impl Thoughts {
    /// Adds the thoughts of an event, or of a whole message. Returns whether there are any.
    pub(super) fn add(&mut self, assembly: &mut Assembly, message: &Value) -> bool {
        let details = items_of(message, DETAILS);
        let mut has_text = false;
        for detail in details {
            has_text |= self.detail(assembly, detail);
        }
        // The text of details stands in a field too.
        let mut moved = !details.is_empty();
        for field in FIELDS.into_iter().filter(|_| !has_text) {
            let Some(text) = message.get(field).and_then(Value::as_str) else { continue };
            if text.is_empty() {
                self.empty = self.empty.or(Some(field));
                continue;
            }
            assembly.thought(text, field);
            moved = true;
            break;
        }
        moved
    }

    /// Adds a detail, or a fragment of one. Returns whether it has a text.
    fn detail(&mut self, assembly: &mut Assembly, value: &Value) -> bool {
        let Value::Object(fields) = value else { return false };
        let kind = str_of(value, "type");
        let text = text_field(kind).map(|field| str_of(value, field));
        let index = value.get("index").and_then(Value::as_u64);
        let same = |detail: &&Detail| detail.kind == kind && detail.index == index;
        let known = match index {
            Some(_) => self.details.iter().rev().find(same),
            None => self.details.last().filter(same),
        };
        // Encrypted data comes whole.
        let at = if let Some(detail) = known.filter(|_| text.is_some()) {
            detail.at
        } else {
            let at = assembly.begin_detail();
            self.details.push(Detail { kind: kind.to_owned(), index, at });
            at
        };
        let rest =
            fields.iter().filter(|(key, value)| Some(key.as_str()) != text_field(kind) && !value.is_null());
        let rest: Map<String, Value> = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
        assembly.add_detail(at, text.unwrap_or_default(), rest);
        text.is_some_and(|text| !text.is_empty())
    }

    /// A server that sends an empty field with calls wants it back with them.
    pub(super) fn end(&self, assembly: &mut Assembly) {
        if let Some(field) = self.empty.filter(|_| assembly.has_calls() && !assembly.has_thoughts()) {
            assembly.empty_thought(field);
        }
    }
}
