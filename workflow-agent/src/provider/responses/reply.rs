//! Replies of the responses interface, streamed and whole.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::assembly::{Assembly, count};
use super::super::failure::Failure;
use super::super::wire::{Advance, Decoder, error_of, items_of, json_of, str_of};
use crate::model::{Finish, ModelEvent, ModelReply, Usage};

/// The most items of a reply that are read.
const ITEMS: usize = 4_096;

/// A streamed reply so far.
pub(in super::super) struct Responses {
    provider: Arc<str>,
    shown: Vec<ModelEvent>,
    /// Items that are whole, and of calls that are not, what has come of them.
    items: BTreeMap<u64, Value>,
    /// Arguments in fragments, for servers that never repeat the whole item.
    arguments: HashMap<u64, String>,
    /// The response as its last event has it.
    response: Option<Value>,
}

impl Responses {
    pub(in super::super) fn new(provider: Arc<str>) -> Self {
        Self {
            provider,
            shown: Vec::new(),
            items: BTreeMap::new(),
            arguments: HashMap::new(),
            response: None,
        }
    }

    fn item(&mut self, value: &Value, is_done: bool) -> Result<(), Failure> {
        let index = index_of(value);
        let item = value.get("item").unwrap_or(&Value::Null);
        if self.items.len() >= ITEMS && !self.items.contains_key(&index) {
            return Err(Failure::unusable(format!("the reply has more than {ITEMS} items")));
        }
        let is_call = str_of(item, "type") == "function_call";
        if is_call && !self.items.contains_key(&index) {
            self.shown.push(ModelEvent::CallBegun { name: str_of(item, "name").to_owned() });
        }
        if is_done || is_call {
            self.items.insert(index, item.clone());
        }
        if is_done {
            self.arguments.remove(&index);
        }
        Ok(())
    }

    fn show(&mut self, piece: &str, event: fn(String) -> ModelEvent) {
        if !piece.is_empty() {
            self.shown.push(event(piece.to_owned()));
        }
    }

    /// Reads an event by its type.
    fn read(&mut self, value: &Value) -> Result<Advance, Failure> {
        match str_of(value, "type") {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.show(str_of(value, "delta"), ModelEvent::Text);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.show(str_of(value, "delta"), ModelEvent::Thought);
            }
            "response.reasoning_summary_part.added" if value["summary_index"].as_u64() > Some(0) => {
                self.show("\n\n", ModelEvent::Thought);
            }
            "response.function_call_arguments.delta" => {
                self.arguments.entry(index_of(value)).or_default().push_str(str_of(value, "delta"));
            }
            "response.output_item.added" => self.item(value, false)?,
            "response.output_item.done" => self.item(value, true)?,
            "response.completed" | "response.incomplete" => {
                self.response = Some(value.get("response").cloned().unwrap_or(Value::Null));
                return Ok(Advance::Done);
            }
            "response.failed" => {
                let response = value.get("response").unwrap_or(&Value::Null);
                return Err(Failure::reported(response));
            }
            "error" => return Err(Failure::reported(value)),
            _ => {
                error_of(value)?;
                return Ok(Advance::Alive);
            }
        }
        Ok(Advance::Moved)
    }

    /// The items of the events, if the response does not repeat them.
    fn items(&mut self) -> Vec<Value> {
        for (index, arguments) in std::mem::take(&mut self.arguments) {
            if let Some(item) = self.items.get_mut(&index)
                && let Some(fields) = item.as_object_mut()
            {
                fields.insert("arguments".to_owned(), arguments.into());
            }
        }
        std::mem::take(&mut self.items).into_values().collect()
    }
}

impl Decoder for Responses {
    fn event(&mut self, data: &str) -> Result<Advance, Failure> {
        match data.trim() {
            "" | "[DONE]" => Ok(Advance::Alive),
            data => self.read(&json_of(data)?),
        }
    }

    fn shown(&mut self) -> Vec<ModelEvent> {
        std::mem::take(&mut self.shown)
    }

    fn finish(&mut self) -> Result<ModelReply, Failure> {
        let mut response = self.response.take().ok_or_else(Failure::broken_off)?;
        if items_of(&response, "output").is_empty()
            && let Some(fields) = response.as_object_mut()
        {
            fields.insert("output".to_owned(), self.items().into());
        }
        whole(&self.provider, &response)
    }
}

fn index_of(value: &Value) -> u64 {
    value.get("output_index").and_then(Value::as_u64).unwrap_or(0)
}

/// A response in one piece.
pub(in super::super) fn whole(provider: &Arc<str>, response: &Value) -> Result<ModelReply, Failure> {
    error_of(response)?;
    let mut assembly = Assembly::default();
    let mut is_refusal = false;
    for item in items_of(response, "output") {
        match str_of(item, "type") {
            "message" => is_refusal |= message(&mut assembly, item),
            "reasoning" => reasoning(&mut assembly, item),
            "function_call" => {
                let at = assembly.call(str_of(item, "call_id"), str_of(item, "name"))?;
                assembly.whole_arguments(at, item.get("arguments"));
            }
            "" => {}
            _ => assembly.opaque(item.clone()),
        }
    }
    let finish = finish(response, is_refusal, &assembly)?;
    let usage = usage(response.get("usage").unwrap_or(&Value::Null));
    Ok(assembly.reply(provider, finish, usage))
}

fn finish(response: &Value, is_refusal: bool, assembly: &Assembly) -> Result<Finish, Failure> {
    let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str).unwrap_or_default();
    Ok(match (str_of(response, "status"), reason) {
        ("completed", _) if is_refusal => Finish::Refusal,
        ("completed", _) => assembly.complete(),
        ("incomplete", "max_output_tokens") => Finish::Length,
        ("incomplete", "content_filter") => Finish::Refusal,
        ("incomplete", reason) => return Err(Failure::unknown_finish(reason)),
        ("failed", _) => return Err(Failure::transient("the response failed, and says nothing more")),
        (status, _) => return Err(Failure::unknown_finish(status)),
    })
}

/// A message of the model. Returns whether it is a refusal.
fn message(assembly: &mut Assembly, item: &Value) -> bool {
    if let Some(phase) = item.get("phase").filter(|phase| phase.is_string()) {
        assembly.opaque(json!({ "phase": phase }));
    }
    assembly.begin_text();
    let mut is_refusal = false;
    for part in items_of(item, "content") {
        let refusal = str_of(part, "refusal");
        is_refusal |= !refusal.is_empty();
        assembly.text(str_of(part, "text"));
        assembly.text(refusal);
    }
    is_refusal
}

/// Reasoning goes back as it came if it carries its state; without, the provider could not find it.
fn reasoning(assembly: &mut Assembly, item: &Value) {
    let texts =
        |key| items_of(item, key).iter().map(|part| str_of(part, "text")).collect::<Vec<_>>().join("\n\n");
    let summary = texts("summary");
    assembly.begin_thought();
    assembly.thought(if summary.is_empty() { texts("content") } else { summary }.as_str());
    if !str_of(item, "encrypted_content").is_empty() {
        assembly.sign_thought(item.clone());
    }
}

fn usage(value: &Value) -> Option<Usage> {
    let usage = Usage::new(count(value, "/input_tokens")?, count(value, "/output_tokens")?);
    Some(usage.cached(count(value, "/input_tokens_details/cached_tokens").unwrap_or(0)))
}
