//! Data beside its JSON Schema: defaults, and every place that does not fit. It compiles no schema.

use serde_json::{Map, Value};

use crate::document::model::Schema;

/// The most places that are listed.
const LISTED: usize = 16;

/// A place that does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfit {
    /// Such as `lines[2].count`; empty for the value itself.
    pub(crate) path: String,
    pub(crate) problem: String,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "`{}`: {}", self.path, self.problem)
    }
}

/// Every place of `data` that does not fit, at most 16.
pub(crate) fn unfit(schema: &Schema, data: &Value) -> Vec<Unfit> {
    let errors = schema.validator.iter_errors(data).take(LISTED);
    let unfit = errors.map(|error| {
        let mut path = written(error.instance_path().as_str());
        let problem = match error.kind() {
            jsonschema::error::ValidationErrorKind::Required { property } => {
                path = joined(&path, property.as_str().unwrap_or_default());
                "it is missing".to_owned()
            }
            _ => error.to_string(),
        };
        Unfit { path, problem }
    });
    unfit.collect()
}

/// A path within a part, such as `input` and `cents`.
pub(crate) fn joined(part: &str, path: &str) -> String {
    match (part.is_empty(), path.is_empty() || path.starts_with('[')) {
        (true, _) => path.to_owned(),
        (false, true) => format!("{part}{path}"),
        (false, false) => format!("{part}.{path}"),
    }
}

/// A JSON pointer in the way in which expressions write paths.
fn written(pointer: &str) -> String {
    pointer.split('/').skip(1).fold(String::new(), |path, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        let is_index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_index { format!("{path}[{part}]") } else { joined(&path, &part) }
    })
}

/// The defaults of the top-level properties of a schema.
pub(crate) fn defaults(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone()))).collect()
}

/// Whether the value lacks none of these properties.
pub(crate) fn is_filled(value: &Value, defaults: &Map<String, Value>) -> bool {
    match value {
        Value::Object(map) => defaults.keys().all(|name| map.contains_key(name)),
        Value::Null => defaults.is_empty(),
        _ => true,
    }
}

/// The value with the defaults of the properties that it lacks.
pub(crate) fn filled(value: &Value, defaults: &Map<String, Value>) -> Value {
    let mut filled = value.clone();
    if let Value::Null = filled
        && !defaults.is_empty()
    {
        filled = Value::Object(Map::new());
    }
    if let Value::Object(map) = &mut filled {
        for (name, default) in defaults.iter().filter(|(name, _)| value.get(name.as_str()).is_none()) {
            map.insert(name.clone(), default.clone());
        }
    }
    filled
}
