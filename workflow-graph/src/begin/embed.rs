//! A schema as a part of another one: its references lead to its new place.

use jsonschema::Draft;
use serde_json::{Map, Value, json};

/// The keywords by which a schema names itself or its parts, and refers to such names.
const NAMES: [&str; 6] =
    ["$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"];

/// The keywords that hold data.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// The keywords that hold a map of schemas.
const MAPS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// The id of a schema that has none, and needs one.
const ID: &str = "urn:workflow-graph:input";

/// The schema of `input`, below `properties`.
pub(super) fn whole(schema: &Value, draft: Draft) -> Value {
    let mut part = if is_plain(schema) {
        moved(schema, "#/properties/input")
    } else {
        // Names stay unique, and references stay within the schema, if it is a resource of its own.
        let mut part = schema.clone();
        if let Some(map) = part.as_object_mut() {
            map.entry(if draft == Draft::Draft4 { "id" } else { "$id" }).or_insert_with(|| json!(ID));
        }
        part
    };
    if let Some(map) = part.as_object_mut() {
        map.remove("$schema");
    }
    part
}

/// Whether references are all pointers into the schema itself.
pub(super) fn is_plain(schema: &Value) -> bool {
    let mut is_plain = true;
    each(schema, &mut |map| {
        let is_pointer =
            |reference: &Value| reference.as_str().is_some_and(|text| text == "#" || text.starts_with("#/"));
        // In the oldest draft `id` is the keyword; in later ones it is none, and no text.
        let is_named =
            NAMES.iter().any(|name| map.contains_key(*name)) || map.get("id").is_some_and(Value::is_string);
        is_plain &= !is_named && map.get("$ref").is_none_or(is_pointer);
    });
    is_plain
}

/// Whether it has references.
pub(super) fn refers(schema: &Value) -> bool {
    let mut refers = false;
    each(schema, &mut |map| refers |= map.contains_key("$ref"));
    refers
}

/// The same plain schema, whose root is at the pointer `root`.
pub(super) fn moved(schema: &Value, root: &str) -> Value {
    match schema {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| {
                    let value = match value {
                        Value::String(text) if key == "$ref" => format!("{root}{}", &text[1..]).into(),
                        Value::Object(parts) if MAPS.contains(&&**key) => Value::Object(
                            parts.iter().map(|(name, part)| (name.clone(), moved(part, root))).collect(),
                        ),
                        value if DATA.contains(&&**key) => value.clone(),
                        value => moved(value, root),
                    };
                    (key.clone(), value)
                })
                .collect(),
        ),
        Value::Array(items) => items.iter().map(|item| moved(item, root)).collect(),
        value => value.clone(),
    }
}

/// Calls `with` for every schema that is a map, in a schema, which is at most 64 deep. Unknown keywords may hold schemas, too.
fn each(schema: &Value, with: &mut dyn FnMut(&Map<String, Value>)) {
    match schema {
        Value::Object(map) => {
            with(map);
            for (key, value) in map {
                match value {
                    Value::Object(parts) if MAPS.contains(&&**key) => {
                        parts.values().for_each(|part| each(part, with));
                    }
                    _ if DATA.contains(&&**key) => {}
                    value => each(value, with),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, with)),
        _ => {}
    }
}
