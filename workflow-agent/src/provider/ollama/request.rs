//! Requests for chats. Calls have no ids: results are matched by name and order.

use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::wire::{Target, arguments_object, instructed, name_of, parameters};
use crate::model::{Image, Message, ModelRequest, Part, ToolChoice};

/// The body of a request.
pub(in super::super) fn body(target: &Target, request: &ModelRequest) -> Result<Value, Failure> {
    // There is no other way to forbid calls, and a format forbids them too.
    let tools = if request.tool_choice == ToolChoice::None { &[][..] } else { &request.tools[..] };
    let output = request.output.as_deref();
    let system = instructed(request, output.filter(|_| !tools.is_empty()));
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !system.is_empty() {
        messages.push(json!({ "role": "system", "content": system }));
    }
    for message in &request.messages {
        match message {
            Message::User { text, images } => messages.push(user(text, images)?),
            Message::Assistant { parts } => messages.extend(assistant(target, parts)),
            Message::Results(results) => messages.extend(results.iter().map(|result| {
                json!({ "role": "tool", "tool_name": name_of(&result.name), "content": &*result.text })
            })),
        }
    }
    let mut body = json!({
        "model": &*target.model, "messages": messages, "stream": target.streaming,
        "options": { "num_ctx": target.context, "num_predict": request.max_output },
        // Otherwise the server leaves out messages and says nothing.
        "truncate": false, "shift": false,
    });
    if !tools.is_empty() {
        let tools = tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name(), "description": tool.description(), "parameters": parameters(tool.schema()),
            }})
        });
        body["tools"] = tools.collect();
    } else if let Some(schema) = output {
        body["format"] = schema.clone();
    }
    Ok(body)
}

fn user(text: &str, images: &[Image]) -> Result<Value, Failure> {
    let mut message = json!({ "role": "user", "content": text });
    if !images.is_empty() {
        let images = images.iter().map(|image| match image {
            Image::Data { base64, .. } => Ok(Value::from(&**base64)),
            Image::Url(_) => Err(Failure::permanent(
                "Ollama reads images as data only, not from an address: send its bytes",
            )),
        });
        message["images"] = images.collect::<Result<Value, Failure>>()?;
    }
    Ok(message)
}

fn assistant(target: &Target, parts: &[Part]) -> Option<Value> {
    let mut text = String::new();
    let mut thoughts = String::new();
    let mut calls = Vec::new();
    for part in target.returning(parts) {
        match part {
            Part::Text(piece) => text.push_str(piece),
            Part::Call(call) => calls.push(json!({ "function": {
                "name": name_of(&call.name), "arguments": arguments_object(call),
            }})),
            Part::Thought { text, .. } => thoughts.push_str(text),
            Part::Opaque(_) => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if !thoughts.is_empty() {
        message["thinking"] = thoughts.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    Some(message)
}
