//! Requests for generated content. Signatures go back on the parts that carried them.

use serde_json::{Map, Value, json};

use super::super::schema::known_to_gemini;
use super::super::wire::{Target, arguments_object, id_of, instructed, name_of, parameters};
use super::{ID, SIGNATURE};
use crate::model::{Image, Message, ModelRequest, Part, ToolChoice, ToolResult, place_of};

/// The value that the provider accepts instead of the signature of a call that it did not make.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Stands for a user's message without text.
const EMPTY: &str = "(no text)";

/// The body of a request.
pub(in super::super) fn body(target: &Target, request: &ModelRequest) -> Value {
    let contents = request.messages.iter().filter_map(|message| {
        let (role, parts) = match message {
            Message::User { text, images } => ("user", user(text, images)),
            Message::Assistant { parts } => ("model", model(target, parts)),
            Message::Results(results) => ("user", results.iter().map(result).collect()),
        };
        (!parts.is_empty()).then(|| json!({ "role": role, "parts": parts }))
    });
    let mut config = json!({ "maxOutputTokens": request.max_output });
    let output = request.output.as_deref();
    let is_native = request.tools.is_empty() || is_recent(&target.model);
    if let Some(schema) = output.filter(|_| is_native) {
        config["responseMimeType"] = "application/json".into();
        config["responseJsonSchema"] = known_to_gemini(schema);
    }
    let mut body = json!({ "contents": contents.collect::<Value>(), "generationConfig": config });
    let system = instructed(request, output.filter(|_| !is_native));
    if !system.trim().is_empty() {
        body["systemInstruction"] = json!({ "parts": [{ "text": system }] });
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "name": tool.name(), "description": tool.description(),
                "parametersJsonSchema": parameters(tool.schema()),
            })
        });
        body["tools"] = json!([{ "functionDeclarations": tools.collect::<Value>() }]);
        if request.tool_choice == ToolChoice::None {
            body["toolConfig"] = json!({ "functionCallingConfig": { "mode": "NONE" } });
        }
    }
    body
}

/// Models from the third generation on: they join schemas with tools, and demand signatures.
fn is_recent(model: &str) -> bool {
    !["gemini-1", "gemini-2", "gemma"].iter().any(|earlier| model.starts_with(earlier))
}

fn user(text: &str, images: &[Image]) -> Vec<Value> {
    // The provider refuses empty parts.
    let text = match text {
        "" if images.is_empty() => Some(json!({ "text": EMPTY })),
        "" => None,
        text => Some(json!({ "text": text })),
    };
    let images = images.iter().map(|image| match image {
        Image::Url(url) => {
            let mut file = json!({ "fileUri": url });
            if let Some(kind) = media_type(url) {
                file["mimeType"] = kind.into();
            }
            json!({ "fileData": file })
        }
        Image::Data { media_type, base64 } => {
            json!({ "inlineData": { "mimeType": media_type, "data": base64 } })
        }
    });
    text.into_iter().chain(images).collect()
}

/// The media type of an image by the ending of its address.
fn media_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    match path.rsplit('.').next()?.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "heic" => Some("image/heic"),
        "heif" => Some("image/heif"),
        _ => None,
    }
}

fn model(target: &Target, parts: &[Part]) -> Vec<Value> {
    let mut sent: Vec<Value> = Vec::new();
    let mut has_call = false;
    let mut is_said = false;
    for part in target.returning(parts) {
        match part {
            Part::Text(text) if text.is_empty() => {}
            Part::Text(text) => {
                is_said = true;
                sent.push(json!({ "text": text }));
            }
            Part::Thought { text, signature } => {
                let signature = target.own(signature.as_ref()).filter(|data| place_of(data).is_none());
                if text.is_empty() && signature.is_none() {
                    continue;
                }
                let mut part = json!({ "text": text, "thought": true });
                sign(&mut part, signature);
                sent.push(part);
            }
            Part::Call(call) => {
                let mut part = json!({ "functionCall": {
                    "id": id_of(&call.id, ID), "name": name_of(&call.name), "args": arguments_object(call),
                }});
                let own = target.own(call.signature.as_ref());
                let unsigned = Value::from(UNSIGNED);
                let stand_in = (!has_call && is_recent(&target.model)).then_some(&unsigned);
                sign(&mut part, own.or(stand_in));
                has_call = true;
                sent.push(part);
            }
            Part::Opaque(opaque) => signed_text(&mut sent, &opaque.data),
        }
    }
    if is_said || has_call { sent } else { Vec::new() }
}

fn sign(part: &mut Value, signature: Option<&Value>) {
    if let (Some(signature), Value::Object(fields)) = (signature, part) {
        fields.insert(SIGNATURE.to_owned(), signature.clone());
    }
}

/// The signature of a text: on the text before it, or on an empty part of its own.
fn signed_text(sent: &mut Vec<Value>, data: &Value) {
    let signature = data.get(SIGNATURE);
    let is_text = |part: &Value| part.as_object().map(Map::len) == Some(1) && part.get("text").is_some();
    if let Some(text) = sent.last_mut().filter(|part| data.get("text").is_some() && is_text(part)) {
        return sign(text, signature);
    }
    let mut part = json!({ "text": "" });
    sign(&mut part, signature);
    sent.push(part);
}

fn result(result: &ToolResult) -> Value {
    let field = if result.is_error { "error" } else { "output" };
    json!({ "functionResponse": {
        "id": id_of(&result.call, ID), "name": name_of(&result.name), "response": { field: &*result.text },
    }})
}
