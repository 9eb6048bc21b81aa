//! `inputs`: the input of a run, as a JSON Schema. Undeclared keys pass.

use std::sync::Arc;

use jsonschema::PatternOptions;
use serde_json::{Map, Value, json};

use crate::document::model::Schema;
use crate::document::native::Reading;
use crate::document::native::fields::Fields;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;

const KEYS: [&str; 5] = ["type", "required", "default", "enum", "description"];

const TYPES: [(&str, &str); 4] =
    [("string", "string"), ("number", "number"), ("boolean", "boolean"), ("string[]", "array")];

/// The schema, and the names of the inputs.
pub(super) fn read(tree: &Tree, reading: &mut Reading<'_>) -> (Option<Schema>, Vec<Arc<str>>) {
    let Kind::Map(pairs) = &tree.kind else {
        reading.wrong_type(tree, "`inputs`", "a map of names to inputs");
        return (None, Vec::new());
    };
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (key, tree) in pairs {
        let Some((schema, is_required)) = input(&key.name, tree, reading) else { continue };
        properties.insert(key.name.to_string(), schema);
        required.extend(is_required.then(|| Value::from(&*key.name)));
    }
    let value = json!({ "type": "object", "properties": properties, "required": required });
    let names = pairs.iter().map(|(key, _)| key.name.clone()).collect();
    (compiled(value).map(|validator| Schema { at: tree.at, ..validator }), names)
}

fn compiled(value: Value) -> Option<Schema> {
    let validator = jsonschema::options().with_pattern_options(PatternOptions::regex()).build(&value).ok()?;
    let at = crate::problem::sink::At::default();
    Some(Schema { at, value: Arc::new(value), validator: Arc::new(validator) })
}

fn input(name: &str, tree: &Tree, reading: &mut Reading<'_>) -> Option<(Value, bool)> {
    let fields = Fields::new(tree, "an input", &KEYS, reading)?;
    let kind = fields.required("type", reading).map(|tree| reading.word(tree, "type", &TYPES));
    let is_required = fields.truth("required", reading).unwrap_or_default();
    let description = fields.text("description", reading);
    let choices = fields.get("enum").map(|tree| reading.list(tree, "enum"));
    let mut schema = Map::new();
    if let Some(kind) = kind.flatten() {
        schema.insert("type".into(), kind.into());
        if kind == "array" {
            schema.insert("items".into(), json!({ "type": "string" }));
        }
    }
    if let Some(choices) = choices {
        if choices.is_empty() && fields.get("enum").is_some_and(|tree| matches!(tree.kind, Kind::List(_))) {
            let message = format!("`enum` of `{name}` is empty, so that no value fits");
            reading.problems.add(
                Code::BadSchema,
                fields.key_at("enum"),
                message,
                "add a value, or remove the key",
            );
        }
        for choice in choices {
            fits(&schema, choice, &format!("a value of `enum` of `{name}`"), reading);
        }
        let choices: Value = choices.iter().map(Tree::to_json).collect();
        // Each element of a list is one of them.
        match schema.get_mut("items") {
            Some(items) => items["enum"] = choices,
            None => drop(schema.insert("enum".into(), choices)),
        }
    }
    schema.extend(description.map(|text| ("description".to_owned(), Value::from(&*text))));
    if let Some(default) = fields.get("default") {
        if is_required {
            let message = format!("`{name}` is required, so that its default is never used");
            let remedy = "remove `default` or `required`";
            reading.problems.add(Code::BadSchema, fields.key_at("default"), message, remedy);
        } else if !matches!(default.kind, Kind::Null) {
            fits(&schema, default, &format!("the default of `{name}`"), reading);
            schema.insert("default".into(), default.to_json());
        }
    }
    Some((Value::Object(schema), is_required))
}

/// `bad-schema`: a value of the declaration fits the declaration.
fn fits(schema: &Map<String, Value>, tree: &Tree, what: &str, reading: &mut Reading<'_>) {
    let value = tree.to_json();
    // A choice for a list is one element of it.
    let is_element = what.starts_with("a value") && schema.contains_key("items");
    let schema = if is_element { schema["items"].clone() } else { Value::Object(schema.clone()) };
    let Some(error) = compiled(schema).and_then(|schema| {
        let error = schema.validator.iter_errors(&value).next()?;
        Some(error.to_string())
    }) else {
        return;
    };
    let message = format!("{what} does not fit: {error}");
    reading.problems.add(Code::BadSchema, tree.at, message, "correct it, or the declaration");
}
