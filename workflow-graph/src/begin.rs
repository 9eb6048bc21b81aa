//! The start of a run: which starts are accepted, the input that a run sees, and the schema of `graph.input` for front ends,
//! which validates exactly what is accepted.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use workflow_core::UnfitJson;

use crate::document::model::{Dialect, Graph};
use crate::schema;
use crate::state::Begin;

mod embed;
mod filled;

#[cfg(test)]
mod tests;

/// Checks a start from outside.
pub(crate) fn accept(graph: &Graph, defaults: &Map<String, Value>, data: &Value) -> Result<(), UnfitJson> {
    // A list would be read as the fields in their order.
    if !data.is_object() {
        return Err(UnfitJson::new("", "the start of a graph is a map with `input`"));
    }
    let begin = Begin::deserialize(data).map_err(|error| UnfitJson::new("", error.to_string()))?;
    let Some(schema) = &graph.input else { return Ok(()) };
    match schema::unfit(schema, &input(graph, defaults, &begin.input)).into_iter().next() {
        Some(unfit) => Err(UnfitJson::new(schema::joined("input", &unfit.path), unfit.problem)),
        None => Ok(()),
    }
}

/// The input of a run, with its defaults.
pub(crate) fn input(graph: &Graph, defaults: &Map<String, Value>, given: &Value) -> Value {
    match &graph.dialect {
        Dialect::Native | Dialect::Hive(_) => schema::filled(given, defaults),
        Dialect::Sweny(sweny) => schema::filled(&sweny.without_nulls(given), defaults),
    }
}

/// The schema of `graph.input`.
pub(crate) fn schema(graph: &Graph) -> Value {
    let mut begin = json!({
        "type": "object",
        "properties": {
            "input": true,
            "dry_run": { "type": "boolean" },
            "played": { "type": "integer", "minimum": 0, "maximum": u32::MAX },
            "document": { "type": ["string", "null"] },
        },
        "additionalProperties": false,
    });
    let Some(known) = &graph.input else { return begin };
    if let Some(dialect) = known.value.get("$schema") {
        begin["$schema"] = dialect.clone();
    }
    let defaults = schema::defaults(&known.value);
    // A start without `input` is one with null.
    let takes_null = known.validator.is_valid(&input(graph, &defaults, &Value::Null));
    if !takes_null {
        begin["required"] = json!(["input"]);
    }
    let nullable: &[_] = match &graph.dialect {
        Dialect::Sweny(sweny) => &sweny.inputs,
        Dialect::Native | Dialect::Hive(_) => &[],
    };
    if defaults.is_empty() && nullable.is_empty() {
        begin["properties"]["input"] = embed::whole(&known.value, known.validator.draft());
        return begin;
    }
    match filled::schema(&known.value, known.validator.draft(), &defaults) {
        Some(filled::Filled { mut input, definitions }) => {
            for name in nullable {
                or_null(&mut input, name);
            }
            begin["properties"]["input"] = with_null(input, takes_null);
            if !definitions.is_empty() {
                begin["$defs"] = Value::Object(definitions);
            }
        }
        // The engine checks what this schema cannot.
        None => drop(begin.as_object_mut().and_then(|begin| begin.remove("required"))),
    }
    begin
}

/// The same schema, in which null stands for an absent field, unless the field is required.
fn or_null(schema: &mut Value, name: &str) {
    let is_required = schema["required"].as_array().is_some_and(|required| required.contains(&json!(name)));
    if let Some(field) = schema["properties"].get_mut(name).filter(|_| !is_required) {
        *field = json!({ "anyOf": [field.take(), { "type": "null" }] });
    }
}

/// The same schema for other values than null, which it takes or not.
fn with_null(schema: Value, takes_null: bool) -> Value {
    let refuses_null = match schema.get("type") {
        Some(Value::String(kind)) => kind != "null",
        Some(Value::Array(kinds)) => !kinds.contains(&json!("null")),
        _ => false,
    };
    match takes_null {
        true => json!({ "anyOf": [schema, { "type": "null" }] }),
        false if refuses_null => schema,
        false => json!({ "allOf": [schema], "not": { "type": "null" } }),
    }
}
