//! Arguments beside the schema of their tool.

use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

/// A schema, compiled.
#[derive(Clone)]
pub(crate) struct Schema(Arc<Validator>);

/// Where and how a value does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The JSON pointer; empty for the whole value.
    pub(crate) pointer: String,
    /// The expectation of the schema, and the value found.
    pub(crate) problem: String,
}

impl Schema {
    /// Compiles a schema. References to other documents are errors: nothing is fetched.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        match jsonschema::validator_for(schema) {
            Ok(validator) => Ok(Self(Arc::new(validator))),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The first difference, if there is one.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Misfit> {
        let Err(error) = self.0.validate(value) else { return Ok(()) };
        let pointer = error.instance_path().to_string();
        let found = shortened(&value.pointer(&pointer).unwrap_or(value).to_string());
        let problem = shortened(&error.to_string());
        let problem = if problem.contains(&found) { problem } else { format!("{problem}; found {found}") };
        Err(Misfit { pointer, problem })
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.problem),
            pointer => write!(f, "at `{pointer}`: {}", self.problem),
        }
    }
}

/// At most 300 characters: a model that sent a wrong megabyte need not read it again.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// About the characters of a value as JSON, without making the text.
pub(crate) fn json_length(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(_) => 5,
        Value::Number(_) => 6,
        Value::String(text) => text.chars().count() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| json_length(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(key, item)| key.len() + 4 + json_length(item)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Schema;

    /// A10
    #[test]
    fn a_misfit_names_pointer_expectation_and_finding() {
        let schema =
            json!({"type": "object", "properties": {"at": {"type": "array", "items": {"type": "integer"}}}});
        let misfit = Schema::new(&schema).unwrap().check(&json!({"at": [1, "two"]})).unwrap_err();
        assert_eq!(misfit.to_string(), r#"at `/at/1`: "two" is not of type "integer""#);
        assert!(Schema::new(&schema).unwrap().check(&json!({"at": [1, 2]})).is_ok());
    }
}
