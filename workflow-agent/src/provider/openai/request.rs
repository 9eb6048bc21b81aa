//! Requests for chat completions.

use serde_json::{Map, Value, json};

use super::super::schema::is_strict;
use super::super::wire::{Target, arguments_text, id_of, image_url, name_of, parameters, str_of};
use super::ID;
use super::thoughts::{DETAILS, PARTS, text_field};
use crate::model::{Image, Message, ModelRequest, Part, ToolChoice, ToolUse, place_of};

/// The body of a request.
pub(in super::super) fn body(target: &Target, request: &ModelRequest) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": &*request.system }));
    }
    for message in &request.messages {
        match message {
            Message::User { text, images } => {
                messages.push(json!({ "role": "user", "content": content(text, images) }));
            }
            Message::Assistant { parts } => messages.extend(assistant(target, parts)),
            Message::Results(results) => messages.extend(results.iter().map(|result| {
                json!({ "role": "tool", "tool_call_id": id_of(&result.call, ID), "content": &*result.text })
            })),
        }
    }
    // Reasoning models of OpenAI refuse `max_tokens`, and many other servers know nothing else.
    let longest = if target.is_original { "max_completion_tokens" } else { "max_tokens" };
    let mut body = json!({ "model": &*target.model, "messages": messages, longest: request.max_output });
    if target.streaming {
        body["stream"] = true.into();
        body["stream_options"] = json!({ "include_usage": true });
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name(), "description": tool.description(), "parameters": parameters(tool.schema()),
            }})
        });
        body["tools"] = tools.collect();
        if request.tool_choice == ToolChoice::None {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(schema) = request.output.as_deref() {
        body["response_format"] = json!({ "type": "json_schema", "json_schema": {
            "name": "answer", "schema": schema, "strict": is_strict(schema),
        }});
    }
    body
}

fn content(text: &str, images: &[Image]) -> Value {
    if images.is_empty() {
        return text.into();
    }
    let text = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
    let images =
        images.iter().map(|image| json!({ "type": "image_url", "image_url": { "url": image_url(image) } }));
    text.into_iter().chain(images).collect()
}

/// An assistant's message, unless nothing of it may go back.
fn assistant(target: &Target, parts: &[Part]) -> Option<Value> {
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut thoughts = Map::new();
    for part in target.returning(parts) {
        match part {
            Part::Text(piece) => text.push_str(piece),
            Part::Call(one) => calls.push(call(target, one)),
            Part::Thought { text, signature } => {
                if let Some(data) = target.own(signature.as_ref()) {
                    thought(&mut thoughts, text, place_of(data).unwrap_or(data));
                }
            }
            Part::Opaque(_) => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = match thoughts.remove(PARTS) {
        Some(Value::Array(mut all)) => {
            all.extend((!text.is_empty()).then(|| json!({ "type": "text", "text": text })));
            Value::Array(all)
        }
        _ if text.is_empty() => Value::Null,
        _ => text.into(),
    };
    let mut message = json!({ "role": "assistant", "content": content });
    if let Some(fields) = message.as_object_mut() {
        fields.append(&mut thoughts);
        if !calls.is_empty() {
            fields.insert("tool_calls".to_owned(), calls.into());
        }
    }
    Some(message)
}

/// Adds a thought to the field in which it came.
fn thought(fields: &mut Map<String, Value>, text: &str, place: &Value) {
    match place {
        Value::String(field) if field == PARTS => {
            let part = json!({ "type": PARTS, "thinking": [{ "type": "text", "text": text }] });
            push(fields, PARTS, part);
        }
        Value::String(field) => match fields.get_mut(field) {
            Some(Value::String(before)) => before.push_str(text),
            _ => drop(fields.insert(field.clone(), text.into())),
        },
        Value::Object(detail) => {
            let mut detail = detail.clone();
            if let Some(field) = text_field(str_of(place, "type")).filter(|_| !text.is_empty()) {
                detail.insert(field.to_owned(), text.into());
            }
            push(fields, DETAILS, detail.into());
        }
        _ => {}
    }
}

fn push(fields: &mut Map<String, Value>, field: &str, item: Value) {
    if let Value::Array(items) = fields.entry(field).or_insert_with(|| json!([])) {
        items.push(item);
    }
}

fn call(target: &Target, call: &ToolUse) -> Value {
    let mut sent = json!({ "type": "function", "id": id_of(&call.id, ID), "function": {
        "name": name_of(&call.name), "arguments": arguments_text(call),
    }});
    if let Some(extra) = target.own(call.signature.as_ref()) {
        sent["extra_content"] = extra.clone();
    }
    sent
}
