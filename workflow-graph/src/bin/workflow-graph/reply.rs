//! Answers as people type them: JSON, or plain words where the schema is one boolean, text or number.

use serde_json::{Map, Value, json};

use crate::text::{plain, short};

/// The most fields that are listed, and the most characters of a description.
const FIELDS: usize = 32;
const TEXT: usize = 200;

/// The one value that a schema asks for.
struct Single<'a> {
    /// The property that holds it, if it is not the whole answer.
    property: Option<&'a str>,
    kind: Kind<'a>,
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    Boolean,
    Text,
    Number,
    /// One of these values.
    Choice(&'a [Value]),
}

fn single(schema: &Value) -> Option<Single<'_>> {
    if let Some(kind) = kind(schema) {
        return Some(Single { property: None, kind });
    }
    let properties = schema.get("properties")?.as_object()?;
    let mut all = properties.iter();
    let (name, property) = all.next().filter(|_| properties.len() == 1)?;
    Some(Single { property: Some(name), kind: kind(property)? })
}

fn kind(schema: &Value) -> Option<Kind<'_>> {
    if let Some(choices) = choices(schema) {
        return Some(Kind::Choice(choices));
    }
    match schema.get("type")?.as_str()? {
        "boolean" => Some(Kind::Boolean),
        "string" => Some(Kind::Text),
        "number" | "integer" => Some(Kind::Number),
        _ => None,
    }
}

/// The values of an enumeration that can be typed as words.
fn choices(schema: &Value) -> Option<&[Value]> {
    let all = schema.get("enum")?.as_array()?;
    all.iter().all(|choice| !choice.is_object() && !choice.is_array()).then_some(all)
}

/// A choice as it is typed.
fn word(choice: &Value) -> String {
    choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)
}

fn words(choices: &[Value]) -> String {
    short(&choices.iter().map(word).collect::<Vec<_>>().join(", "), TEXT)
}

/// The answer that a line stands for.
///
/// # Errors
///
/// The line is neither JSON nor words that the schema makes readable.
pub(crate) fn read(schema: Option<&Value>, line: &str) -> Result<Value, String> {
    let line = line.trim();
    let parsed = serde_json::from_str::<Value>(line);
    let Some(schema) = schema else {
        return Ok(parsed.unwrap_or_else(|_| line.into()));
    };
    let Some(single) = single(schema) else {
        return parsed.map_err(|error| format!("the answer is no JSON: {error}"));
    };
    let value = match (single.kind, parsed) {
        // The answer as a whole.
        (_, Ok(Value::Object(whole))) if single.property.is_some() => return Ok(Value::Object(whole)),
        (Kind::Choice(choices), parsed) => {
            let is_meant =
                |choice: &&Value| parsed.as_ref().is_ok_and(|value| value == *choice) || word(choice) == line;
            let choice = choices.iter().find(is_meant).cloned();
            choice.ok_or_else(|| format!("answer with one of: {}", words(choices)))?
        }
        (Kind::Boolean, Err(_)) => match line.to_lowercase().as_str() {
            "yes" | "y" => true.into(),
            "no" | "n" => false.into(),
            _ => return Err("answer with yes or no".into()),
        },
        (Kind::Text, Ok(Value::String(text))) => text.into(),
        (Kind::Text, _) => line.into(),
        (_, Ok(value)) => value,
        (_, Err(_)) => return Err("answer with a number".into()),
    };
    Ok(match single.property {
        Some(property) => Value::Object(Map::from_iter([(property.to_owned(), value)])),
        None => value,
    })
}

/// How the answer is typed.
pub(crate) fn expected(schema: Option<&Value>) -> String {
    match schema.map(|schema| single(schema).map(|single| single.kind)) {
        None => "anything".into(),
        Some(Some(Kind::Boolean)) => "yes or no".into(),
        Some(Some(Kind::Text)) => "text".into(),
        Some(Some(Kind::Number)) => "a number".into(),
        Some(Some(Kind::Choice(choices))) => words(choices),
        Some(None) => "JSON".into(),
    }
}

/// An answer in the form of the schema, for people to fill in.
pub(crate) fn sample(schema: Option<&Value>) -> Value {
    let Some(schema) = schema else { return json!("…") };
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|all| all.first()) {
        return first.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => json!(true),
        Some("number" | "integer") => schema.get("minimum").cloned().unwrap_or(json!(0)),
        Some("array") => json!([]),
        Some("string") => json!("…"),
        Some("null") => Value::Null,
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let simple = properties.take(FIELDS).map(|(name, property)| {
                let is_nested = property.get("properties").is_some();
                (name.clone(), if is_nested { json!({}) } else { sample(Some(property)) })
            });
            Value::Object(simple.collect())
        }
    }
}

/// The fields of the schema, a line each, or its choices.
pub(crate) fn fields(schema: Option<&Value>) -> Vec<String> {
    if let Some(choices) = schema.and_then(choices) {
        return vec![format!("one of: {}", words(choices))];
    }
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let required = schema.and_then(|schema| schema.get("required")?.as_array());
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    let lines = properties.into_iter().flatten().take(FIELDS).map(|(name, property)| {
        let mut facts = Vec::new();
        facts.extend(property.get("type").map(|kind| kind.as_str().map_or(kind.to_string(), str::to_owned)));
        facts.extend(property.get("enum").map(|all| format!("one of {}", short(&all.to_string(), TEXT))));
        facts.extend(is_required(name).then(|| "required".to_owned()));
        let about = property.get("description").and_then(Value::as_str);
        let about = about.map(|about| format!(": {}", short(about, TEXT))).unwrap_or_default();
        plain(&format!("{name} ({}){about}", facts.join(", ")))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // G38
    #[test]
    fn a_schema_of_one_value_takes_plain_words() {
        let granted = json!({"type": "object", "properties": {"granted": {"type": "boolean"}}});
        assert_eq!(read(Some(&granted), " Yes\n"), Ok(json!({"granted": true})));
        assert_eq!(read(Some(&granted), "false"), Ok(json!({"granted": false})));
        assert_eq!(read(Some(&granted), r#"{"granted": true}"#), Ok(json!({"granted": true})));
        assert!(read(Some(&granted), "perhaps").is_err());
        let topic = json!({"type": "object", "properties": {"topic": {"type": "string"}}});
        assert_eq!(read(Some(&topic), "7 lamps"), Ok(json!({"topic": "7 lamps"})));
        assert_eq!(read(Some(&topic), "7"), Ok(json!({"topic": "7"})));
        assert_eq!(read(Some(&json!({"type": "string"})), "\"quoted\""), Ok(json!("quoted")));
        assert_eq!(read(Some(&json!({"type": "integer"})), "7"), Ok(json!(7)));
        assert!(read(Some(&json!({"type": "integer"})), "seven").is_err());
    }

    // G27, G38
    #[test]
    fn an_enumeration_lists_its_choices_and_takes_them_as_words() {
        let mode = json!({"enum": ["yes", "no", 7, "later"]});
        assert_eq!(fields(Some(&mode)), ["one of: yes, no, 7, later"]);
        assert_eq!(expected(Some(&mode)), "yes, no, 7, later");
        assert_eq!(read(Some(&mode), "later\n"), Ok(json!("later")));
        assert_eq!(read(Some(&mode), "\"yes\""), Ok(json!("yes")));
        assert_eq!(read(Some(&mode), "7"), Ok(json!(7)));
        assert_eq!(read(Some(&mode), "never"), Err("answer with one of: yes, no, 7, later".into()));
        let within = json!({"type": "object", "properties": {"mode": mode}});
        assert_eq!(read(Some(&within), "no"), Ok(json!({"mode": "no"})));
    }

    // G38
    #[test]
    fn other_schemas_take_json_and_no_schema_takes_anything() {
        let two = json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        assert!(read(Some(&two), "a").is_err());
        assert_eq!(read(Some(&two), r#"{"a": "1"}"#), Ok(json!({"a": "1"})));
        assert_eq!(read(None, "so be it"), Ok(json!("so be it")));
        assert_eq!(read(None, "[1]"), Ok(json!([1])));
    }

    #[test]
    fn a_sample_has_every_field() {
        let schema = json!({"type": "object", "properties": {
            "granted": {"type": "boolean"}, "mode": {"enum": ["fast"]}, "note": {"type": "string"}}});
        assert_eq!(sample(Some(&schema)), json!({"granted": true, "mode": "fast", "note": "…"}));
        assert_eq!(fields(Some(&schema)), ["granted (boolean)", "mode (one of [\"fast\"])", "note (string)"]);
    }
}
