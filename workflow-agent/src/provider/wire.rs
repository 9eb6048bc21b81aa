//! The common ground of the formats of all kinds: their two directions as one interface, ids, names, arguments and images. The
//! formats themselves are in files of their own.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::failure::Failure;
use crate::model::{Image, ModelEvent, ModelReply, ModelRequest, Opaque, Part, ToolUse};
use crate::tool;

/// Where a request goes, as far as its body depends on it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) model: Arc<str>,
    /// The provider to whom signatures and opaque parts belong.
    pub(crate) provider: Arc<str>,
    /// Whether the endpoint is that of the provider itself, and not of a server with the same interface.
    pub(crate) is_original: bool,
    pub(crate) streaming: bool,
    /// The context window in tokens.
    pub(crate) context: u64,
}

impl Target {
    /// The data of a signature that this provider made.
    pub(crate) fn own<'a>(&self, opaque: Option<&'a Opaque>) -> Option<&'a Value> {
        opaque.filter(|opaque| opaque.provider == self.provider).map(|opaque| &opaque.data)
    }

    /// The parts of an assistant's message that may go back: everything but thoughts and opaque parts of others.
    pub(crate) fn returning<'a>(&self, parts: &'a [Part]) -> impl Iterator<Item = &'a Part> {
        let target = self.clone();
        parts.iter().filter(move |part| match part {
            Part::Thought { signature, .. } => target.own(signature.as_ref()).is_some(),
            Part::Opaque(opaque) => target.own(Some(opaque)).is_some(),
            Part::Text(_) | Part::Call(_) => true,
        })
    }
}

/// How far an event brought a reply, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Advance {
    /// Not at all: a comment.
    Nothing,
    /// The provider is alive.
    Alive,
    /// The reply has more than before.
    Moved,
    /// The reply is whole.
    Done,
}

/// A reader of the events of a streamed reply.
pub(crate) trait Decoder: Send {
    /// Reads the data of an event.
    fn event(&mut self, data: &str) -> Result<Advance, Failure>;

    /// Takes what viewers have not seen yet.
    fn shown(&mut self) -> Vec<ModelEvent>;

    /// The reply, if it is whole.
    fn finish(&mut self) -> Result<ModelReply, Failure>;
}

/// Reads JSON of a provider.
pub(crate) fn json_of(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::no_json(&error))
}

/// The string in a field, or nothing.
pub(crate) fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list, or nothing.
pub(crate) fn items_of<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The error of a reply, if it has one.
pub(crate) fn error_of(value: &Value) -> Result<(), Failure> {
    match value.get("error") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Failure::reported(value)),
    }
}

/// A name of a tool as every provider accepts it, also one that a model made up.
pub(crate) fn name_of(name: &str) -> String {
    tool::fitted(name)
}

/// An id of a call with at most `longest` letters, digits, `_` and `-`: an id of another provider may have others.
pub(crate) fn id_of(id: &str, longest: usize) -> String {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=longest).contains(&id.len()) && id.bytes().all(is_fit) {
        return id.to_owned();
    }
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("call_{hash:016x}")
}

/// The arguments as an object. A text that is no JSON becomes a field of one.
pub(crate) fn arguments_object(call: &ToolUse) -> Value {
    match &call.arguments {
        Value::Object(_) => call.arguments.clone(),
        Value::String(text) => json!({ "unreadable": text }),
        other => json!({ "unreadable": other.to_string() }),
    }
}

/// The arguments as text.
pub(crate) fn arguments_text(call: &ToolUse) -> String {
    match &call.arguments {
        Value::String(text) => text.clone(),
        other => {
            let mut sorted = other.clone();
            sorted.sort_all_objects();
            sorted.to_string()
        }
    }
}

/// The address of an image, as a data URL if it is bytes.
pub(crate) fn image_url(image: &Image) -> String {
    match image {
        Image::Url(url) => url.clone(),
        Image::Data { media_type, base64 } => format!("data:{media_type};base64,{base64}"),
    }
}

/// A schema of arguments, which every provider wants to be one of an object.
pub(crate) fn parameters(schema: &Value) -> Value {
    let mut schema = match schema {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    if schema.get("type").is_some_and(|kind| kind == "object") {
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    Value::Object(schema)
}

/// The instructions, with the schema of the answer for a model that cannot be bound to it.
pub(crate) fn instructed(request: &ModelRequest, output: Option<&Value>) -> String {
    match output {
        None => request.system.to_string(),
        Some(schema) => {
            let mut schema = schema.clone();
            schema.sort_all_objects();
            let before = if request.system.is_empty() { "" } else { "\n\n" };
            format!(
                "{}{before}Answer with one JSON value that fits this JSON schema, and with nothing else:\n{schema}",
                request.system
            )
        }
    }
}

/// Merges options into a body: objects field by field, `null` removes, and anything else replaces.
pub(crate) fn merge(body: &mut Value, options: &Map<String, Value>) {
    let Value::Object(fields) = body else { return };
    for (key, option) in options {
        match (fields.get_mut(key), option) {
            (_, Value::Null) => drop(fields.remove(key)),
            (Some(field @ Value::Object(_)), Value::Object(more)) => merge(field, more),
            _ => drop(fields.insert(key.clone(), option.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{id_of, merge};

    /// A80
    #[test]
    fn options_merge_into_objects_and_null_removes() {
        let mut body = json!({"a": {"b": 1, "c": 2}, "d": 3, "e": [1]});
        let options = json!({"a": {"c": null, "f": 4}, "d": null, "e": [2], "g": {"h": 5}});
        merge(&mut body, options.as_object().unwrap());
        assert_eq!(body, json!({"a": {"b": 1, "f": 4}, "e": [2], "g": {"h": 5}}));
    }

    /// A80
    #[test]
    fn fit_ids_stay_and_others_become_fit_and_stay_different() {
        assert_eq!(id_of("toolu_01-A", 64), "toolu_01-A");
        let odd = ["", "a.b", "a/b", "ä", &"x".repeat(65)].map(|id| id_of(id, 40));
        assert!(odd.iter().all(|id| id_of(id, 40) == *id && id.starts_with("call_")));
        assert_eq!(odd.iter().collect::<std::collections::BTreeSet<_>>().len(), odd.len());
    }
}
