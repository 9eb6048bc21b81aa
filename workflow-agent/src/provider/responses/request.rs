//! Requests for responses. Each has the whole conversation: the provider stores nothing.

use serde_json::{Value, json};

use super::super::schema::is_strict;
use super::super::wire::{Target, arguments_text, id_of, image_url, name_of, parameters, str_of};
use super::{ID, STATE};
use crate::model::{Message, ModelRequest, Part, ToolChoice};

/// The smallest bound of a reply that the provider accepts.
const SHORTEST: u64 = 16;

/// The body of a request.
pub(in super::super) fn body(target: &Target, request: &ModelRequest) -> Value {
    let mut input = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match message {
            Message::User { text, images } => {
                let text = (!text.is_empty() || images.is_empty())
                    .then(|| json!({ "type": "input_text", "text": &**text }));
                let images = images.iter().map(
                    |image| json!({ "type": "input_image", "detail": "auto", "image_url": image_url(image) }),
                );
                let content: Value = text.into_iter().chain(images).collect();
                input.push(json!({ "type": "message", "role": "user", "content": content }));
            }
            Message::Assistant { parts } => input.extend(assistant(target, parts)),
            Message::Results(results) => input.extend(results.iter().map(|result| {
                let id = id_of(&result.call, ID);
                json!({ "type": "function_call_output", "call_id": id, "output": &*result.text })
            })),
        }
    }
    let mut body = json!({
        "model": &*target.model, "input": input, "store": false, "max_output_tokens": request.max_output.max(SHORTEST),
    });
    // Models that do not reason refuse the request.
    if !["gpt-3", "gpt-4", "chatgpt"].iter().any(|name| target.model.starts_with(name)) {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if !request.system.is_empty() {
        body["instructions"] = (*request.system).into();
    }
    if target.streaming {
        body["stream"] = true.into();
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function", "name": tool.name(), "description": tool.description(),
                "parameters": parameters(tool.schema()), "strict": false,
            })
        });
        body["tools"] = tools.collect();
        if request.tool_choice == ToolChoice::None {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(schema) = request.output.as_deref() {
        body["text"] = json!({ "format": {
            "type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema),
        }});
    }
    body
}

/// The items of an assistant's message. Reasoning that nothing follows is left out: the provider refuses it.
fn assistant(target: &Target, parts: &[Part]) -> Vec<Value> {
    let mut items = Vec::new();
    let mut phase = None;
    let mut useful = 0;
    for part in target.returning(parts) {
        match part {
            Part::Thought { signature, .. } => {
                // OpenAI stores nothing here, and so it finds no reasoning without its state.
                let is_found = |item: &&Value| !target.is_original || !str_of(item, STATE).is_empty();
                items.extend(target.own(signature.as_ref()).filter(is_found).cloned());
            }
            Part::Opaque(opaque) => match opaque.data.get("type") {
                Some(_) => items.push(opaque.data.clone()),
                None => phase = opaque.data.get("phase").cloned(),
            },
            Part::Text(text) => {
                let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
                let mut item = json!({ "type": "message", "role": "assistant", "content": content });
                if let Some(phase) = phase.take() {
                    item["phase"] = phase;
                }
                items.push(item);
                useful = items.len();
            }
            Part::Call(call) => {
                items.push(json!({
                    "type": "function_call", "call_id": id_of(&call.id, ID), "name": name_of(&call.name),
                    "arguments": arguments_text(call),
                }));
                useful = items.len();
            }
        }
    }
    items.truncate(useful);
    items
}
