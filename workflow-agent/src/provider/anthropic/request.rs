//! Requests for messages. Roles alternate, blocks are never empty, and results come first in the message after calls.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::schema::closed;
use super::super::wire::{Target, arguments_object, id_of, instructed, name_of, parameters};
use super::ID;
use crate::model::{Image, Message, ModelRequest, Part, ToolChoice, ToolResult, place_of};

/// Stands for a user's message without text, which the provider refuses.
const EMPTY: &str = "(no text)";

/// The body of a request.
pub(in super::super) fn body(target: &Target, request: &ModelRequest) -> Value {
    let output = request.output.as_deref();
    let native = output.and_then(closed);
    let system = instructed(request, output.filter(|_| native.is_none()));
    let mut body = json!({
        "model": &*target.model, "max_tokens": request.max_output.max(1), "messages": messages(target, request),
    });
    if !system.trim().is_empty() {
        body["system"] = system.into();
    }
    if target.streaming {
        body["stream"] = true.into();
    }
    if target.is_original {
        // The provider caches prefixes only if asked to.
        body["cache_control"] = json!({ "type": "ephemeral" });
    }
    let tools = tools(request);
    if !tools.is_empty() {
        if request.tools.is_empty() || request.tool_choice == ToolChoice::None {
            body["tool_choice"] = json!({ "type": "none" });
        }
        body["tools"] = tools.into();
    }
    if let Some(schema) = native {
        body["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
    }
    body
}

/// The tools on offer. If there are none, those of earlier calls: a conversation with calls must define tools.
fn tools(request: &ModelRequest) -> Vec<Value> {
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let mut sent = json!({ "name": tool.name(), "input_schema": parameters(tool.schema()) });
            if !tool.description().is_empty() {
                sent["description"] = tool.description().into();
            }
            sent
        });
        return tools.collect();
    }
    let parts = request.messages.iter().flat_map(|message| match message {
        Message::Assistant { parts } => &parts[..],
        _ => &[],
    });
    let names: BTreeSet<String> = parts
        .filter_map(|part| match part {
            Part::Call(call) => Some(name_of(&call.name)),
            _ => None,
        })
        .collect();
    names.into_iter().map(|name| json!({ "name": name, "input_schema": { "type": "object" } })).collect()
}

/// The messages: neighbours of the same role become one.
fn messages(target: &Target, request: &ModelRequest) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, blocks) = match message {
            Message::User { text, images } => ("user", user(text, images)),
            Message::Assistant { parts } => ("assistant", assistant(target, parts)),
            Message::Results(results) => ("user", results.iter().map(result).collect()),
        };
        if blocks.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    if turns.first().is_none_or(|(role, _)| *role == "assistant") {
        turns.insert(0, ("user", vec![text(EMPTY)]));
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn user(words: &str, images: &[Image]) -> Vec<Value> {
    let images = images.iter().map(|image| {
        let source = match image {
            Image::Url(url) => json!({ "type": "url", "url": url }),
            Image::Data { media_type, base64 } => {
                json!({ "type": "base64", "media_type": media_type, "data": base64 })
            }
        };
        json!({ "type": "image", "source": source })
    });
    let mut blocks: Vec<Value> = images.collect();
    if !words.trim().is_empty() {
        blocks.push(text(words));
    } else if blocks.is_empty() {
        blocks.push(text(EMPTY));
    }
    blocks
}

fn assistant(target: &Target, parts: &[Part]) -> Vec<Value> {
    let blocks = target.returning(parts).filter_map(|part| match part {
        Part::Text(words) => (!words.trim().is_empty()).then(|| text(words)),
        Part::Thought { text, signature } => {
            let data = target.own(signature.as_ref())?;
            match place_of(data) {
                None => Some(json!({ "type": "thinking", "thinking": text, "signature": data })),
                // Servers with the same interface sign nothing, and demand it back. Anthropic refuses it.
                Some(_) => (!target.is_original).then(|| json!({ "type": "thinking", "thinking": text })),
            }
        }
        Part::Call(call) => Some(json!({
            "type": "tool_use", "id": id_of(&call.id, ID), "name": name_of(&call.name), "input": arguments_object(call),
        })),
        Part::Opaque(opaque) => Some(opaque.data.clone()),
    });
    let mut blocks: Vec<Value> = blocks.collect();
    // Thoughts alone are no message, and none may be its last block.
    let is_said = |block: &Value| matches!(block["type"].as_str(), Some("text" | "tool_use"));
    if !blocks.iter().any(is_said) {
        return Vec::new();
    }
    let is_thought = |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    let end = blocks.iter().rposition(|block| !is_thought(block)).map_or(0, |last| last + 1);
    blocks.truncate(end);
    blocks
}

fn result(result: &ToolResult) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": id_of(&result.call, ID) });
    if !result.text.trim().is_empty() {
        block["content"] = (*result.text).into();
    }
    if result.is_error {
        block["is_error"] = true.into();
    }
    block
}
