//! Replies of the responses interface, streamed and whole.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::assembly::{Assembly, count};
use super::super::ending::Ending;
use super::super::failure::Failure;
use super::super::wire::{Advance, Decoder, error_of, items_of, json_of, str_of};
use super::STATE;
use crate::model::{Finish, ModelEvent, ModelReply, Usage};

/// The most items of a reply that are read.
const ITEMS: usize = 4_096;

/// A streamed reply so far.
pub(in super::super) struct Responses {
    provider: Arc<str>,
    shown: Vec<ModelEvent>,
    items: Vec<Item>,
    /// The response as its last event has it.
    response: Option<Value>,
}

/// An item of a streamed reply.
struct Item {
    /// Its place in the response, if the server says it.
    index: Option<u64>,
    value: Value,
    /// The arguments of a call as they come, for servers that never repeat the whole item.
    arguments: String,
    is_done: bool,
}

impl Item {
    fn is_call(&self) -> bool {
        str_of(&self.value, "type") == "function_call"
    }

    /// Whether the item has an id, and this is a different one.
    fn is_other(&self, id: &str) -> bool {
        let own = str_of(&self.value, "id");
        !own.is_empty() && !id.is_empty() && own != id
    }

    fn finish(mut self) -> Option<Value> {
        if self.is_done || !self.is_call() {
            return self.is_done.then_some(self.value);
        }
        if let Some(fields) = self.value.as_object_mut().filter(|_| !self.arguments.is_empty()) {
            fields.insert("arguments".to_owned(), self.arguments.into());
        }
        Some(self.value)
    }
}

impl Responses {
    pub(in super::super) fn new(provider: Arc<str>) -> Self {
        Self { provider, shown: Vec::new(), items: Vec::new(), response: None }
    }

    /// The item that an event is about: by the id of the item, else by its place, else the one that is not done. Some servers have
    /// one place for all items, and some have another id in each event.
    fn known(&mut self, id: &str, index: Option<u64>, begins: bool) -> Option<&mut Item> {
        let has_id = |item: &Item| !id.is_empty() && str_of(&item.value, "id") == id;
        let is_there = |item: &Item| {
            let is_over = item.is_done || begins && item.is_other(id);
            !is_over && (item.index == index || index.is_none() && !begins)
        };
        let found = self.items.iter().rposition(has_id).or_else(|| self.items.iter().rposition(is_there));
        self.items.get_mut(found?)
    }

    fn item(&mut self, value: &Value, is_done: bool) -> Result<(), Failure> {
        let index = index_of(value);
        let item = value.get("item").unwrap_or(&Value::Null);
        if let Some(known) = self.known(str_of(item, "id"), index, !is_done) {
            known.value = item.clone();
            known.is_done = is_done;
            return Ok(());
        }
        if self.items.len() >= ITEMS {
            return Err(Failure::unusable(format!("the reply has more than {ITEMS} items")));
        }
        let item = Item { index, value: item.clone(), arguments: String::new(), is_done };
        if item.is_call() {
            self.shown.push(ModelEvent::CallBegun { name: str_of(&item.value, "name").to_owned() });
        }
        self.items.push(item);
        Ok(())
    }

    /// Adds to the arguments of a call. Those that belong to no call make the reply unusable: their call would run with others.
    fn arguments(&mut self, value: &Value) -> Result<(), Failure> {
        let known = self.known(str_of(value, "item_id"), index_of(value), false);
        match known.filter(|item| item.is_call()) {
            Some(item) => item.arguments.push_str(str_of(value, "delta")),
            None if str_of(value, "delta").is_empty() => {}
            None => return Err(Failure::unusable("arguments of the reply belong to no call")),
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
                self.arguments(value)?;
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
        let mut items = std::mem::take(&mut self.items);
        items.sort_by_key(|item| item.index);
        items.into_iter().filter_map(Item::finish).collect()
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

fn index_of(value: &Value) -> Option<u64> {
    value.get("output_index").and_then(Value::as_u64)
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
    assembly.reply(provider, finish, usage)
}

fn finish(response: &Value, is_refusal: bool, assembly: &Assembly) -> Result<Finish, Failure> {
    let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str).unwrap_or_default();
    Ok(match (str_of(response, "status"), reason) {
        ("completed" | "", _) if is_refusal => Finish::Refusal,
        ("completed", _) => assembly.complete(),
        // Some servers leave out the status of a whole response.
        ("", _) if response.get("output").is_some() => assembly.complete(),
        ("", _) => return Err(Failure::broken_off()),
        // It has an end, and is not complete.
        ("incomplete", "") => Finish::Length,
        ("incomplete", reason) => match Ending::of(reason)? {
            Ending::Complete | Ending::Calls => return Err(Failure::unknown_finish(reason)),
            ending => ending.finish(assembly),
        },
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

/// Reasoning goes back as it came. Whether its provider finds it without its state is the concern of requests.
fn reasoning(assembly: &mut Assembly, item: &Value) {
    let texts =
        |key| items_of(item, key).iter().map(|part| str_of(part, "text")).collect::<Vec<_>>().join("\n\n");
    let summary = texts("summary");
    let text = if summary.is_empty() { texts("content") } else { summary };
    assembly.begin_thought("item");
    assembly.thought(&text, "item");
    if !text.is_empty() || !str_of(item, STATE).is_empty() {
        assembly.sign_thought(item.clone());
    }
}

fn usage(value: &Value) -> Option<Usage> {
    let usage = Usage::new(count(value, "/input_tokens")?, count(value, "/output_tokens")?);
    Some(usage.cached(count(value, "/input_tokens_details/cached_tokens").unwrap_or(0)))
}
