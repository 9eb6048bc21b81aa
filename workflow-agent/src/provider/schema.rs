//! Schemas of answers in the dialects of the providers. The agent validates each answer against the original schema, so
//! a dialect may be wider than it, and never narrower.

use serde_json::{Map, Value, json};

/// Keywords of a schema that OpenAI's strict mode accepts.
const STRICT: [&str; 11] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "type",
];

/// Whether OpenAI's strict mode accepts the schema: all objects are closed, and all their fields are required.
pub(super) fn is_strict(schema: &Value) -> bool {
    let Value::Object(fields) = schema else { return false };
    let required = fields.get("required").and_then(Value::as_array);
    let is_closed = match fields.get("properties").and_then(Value::as_object) {
        Some(properties) => {
            fields.get("additionalProperties") == Some(&Value::Bool(false))
                && properties.keys().all(|key| required.is_some_and(|all| all.iter().any(|one| one == key)))
        }
        None => !is_object(fields),
    };
    is_closed
        && fields.keys().all(|key| STRICT.contains(&key.as_str()))
        && children(fields).into_iter().all(is_strict)
}

/// The schema for Anthropic: objects closed, bounds moved to descriptions. `None` if closing an object would exclude
/// answers, because its fields are not all named.
pub(super) fn closed(schema: &Value) -> Option<Value> {
    let Value::Object(fields) = schema else { return None };
    let mut closed = Map::new();
    let mut notes = Vec::new();
    for (key, value) in fields {
        match key.as_str() {
            "properties" | "$defs" => {
                let inner = value.as_object()?.iter();
                let inner = inner.map(|(name, schema)| Some((name.clone(), self::closed(schema)?)));
                closed.insert(key.clone(), Value::Object(inner.collect::<Option<_>>()?));
            }
            "items" => drop(closed.insert(key.clone(), self::closed(value)?)),
            "anyOf" | "oneOf" => {
                let inner: Option<Vec<_>> = value.as_array()?.iter().map(self::closed).collect();
                closed.insert("anyOf".to_owned(), Value::Array(inner?));
            }
            "type" | "enum" | "const" | "required" | "$ref" | "description" | "title" => {
                closed.insert(key.clone(), value.clone());
            }
            "additionalProperties" if *value == Value::Bool(false) => {}
            "additionalProperties" | "allOf" | "not" | "patternProperties" | "prefixItems" => return None,
            "$schema" | "default" | "examples" => {}
            other => notes.push(format!("{other}: {value}")),
        }
    }
    if is_object(fields) {
        if !fields.contains_key("properties") {
            return None;
        }
        closed.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    // Neither a type nor anything else that limits the value: any JSON, which cannot be said.
    if !["type", "enum", "const", "$ref", "anyOf"].iter().any(|key| closed.contains_key(*key)) {
        return None;
    }
    if !notes.is_empty() {
        let description = closed.get("description").and_then(Value::as_str).unwrap_or_default();
        let described = format!("{description} {{{}}}", notes.join(", "));
        closed.insert("description".to_owned(), described.trim_start().into());
    }
    Some(Value::Object(closed))
}

/// The schema with the keywords that Gemini knows.
pub(super) fn known_to_gemini(schema: &Value) -> Value {
    const KNOWN: [&str; 22] = [
        "$anchor",
        "$defs",
        "$id",
        "$ref",
        "additionalProperties",
        "anyOf",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "oneOf",
        "prefixItems",
        "properties",
        "propertyOrdering",
        "required",
        "title",
        "type",
        "nullable",
    ];
    let Value::Object(fields) = schema else { return schema.clone() };
    let mut known = Map::new();
    for (key, value) in fields {
        let value = match (key.as_str(), value) {
            ("const", value) => {
                known.insert("enum".to_owned(), json!([value]));
                continue;
            }
            ("properties" | "$defs", Value::Object(inner)) => {
                inner.iter().map(|(name, schema)| (name.clone(), known_to_gemini(schema))).collect()
            }
            ("items" | "additionalProperties", inner) => known_to_gemini(inner),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(inner)) => {
                inner.iter().map(known_to_gemini).collect()
            }
            (key, value) if KNOWN.contains(&key) => value.clone(),
            _ => continue,
        };
        known.insert(key.clone(), value);
    }
    Value::Object(known)
}

fn is_object(fields: &Map<String, Value>) -> bool {
    match fields.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
        None => false,
    }
}

fn children(fields: &Map<String, Value>) -> Vec<&Value> {
    let mut children = Vec::new();
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(inner)) => children.extend(inner.values()),
            ("anyOf", Value::Array(inner)) => children.extend(inner),
            ("items", inner) => children.push(inner),
            _ => {}
        }
    }
    children
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{closed, is_strict, known_to_gemini};

    /// A80
    #[test]
    fn schemas_are_strict_only_if_every_object_is_closed_and_complete() {
        let schema = |extra: &str, required: &[&str]| {
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items":
                {"type": "object", "properties": {}, "additionalProperties": false, "required": []}}},
                "additionalProperties": false, "required": required, extra: "x"})
        };
        assert!(is_strict(&schema("description", &["a", "b"])));
        assert!(!is_strict(&schema("description", &["a"])));
        assert!(!is_strict(&schema("pattern", &["a", "b"])));
        assert!(!is_strict(&json!({"type": "object"})));
        assert!(!is_strict(&json!(true)));
    }

    /// A80
    #[test]
    fn objects_are_closed_and_bounds_become_descriptions() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "description": "N."}},
            "required": ["n"]});
        let expected = json!({"type": "object", "properties": {"n": {"type": "integer", "description": "N. {minimum: 1}"}},
            "required": ["n"], "additionalProperties": false});
        assert_eq!(closed(&schema), Some(expected));
        let maps = [
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object"}),
            json!(true),
            json!({"type": "array", "items": {}}),
        ];
        for map in maps {
            assert_eq!(closed(&map), None, "{map}");
        }
    }

    /// A80
    #[test]
    fn gemini_gets_the_keywords_that_it_knows() {
        let schema = json!({"type": "object", "$schema": "x", "properties": {"kind": {"const": "a", "pattern": "b"},
            "default": {"type": "string", "default": "c"}}});
        let expected =
            json!({"type": "object", "properties": {"kind": {"enum": ["a"]}, "default": {"type": "string"}}});
        assert_eq!(known_to_gemini(&schema), expected);
    }
}
