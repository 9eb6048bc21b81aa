//! Arguments beside the schema of their tool.

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::cost;

/// The most steps back in one search of a pattern. A pattern that needs more fits nothing.
const BACKTRACKS: usize = 10_000;
/// The most schemas that meet a value in a check on the thread of a run.
const AT_ONCE: u64 = 5_000;

/// A schema, compiled.
#[derive(Clone)]
pub(crate) struct Schema {
    source: Arc<Value>,
    validator: Arc<Validator>,
}

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
        let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS);
        match jsonschema::options().with_pattern_options(patterns).build(schema) {
            Ok(validator) => Ok(Self { source: Arc::new(schema.clone()), validator: Arc::new(validator) }),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The first difference, if there is one. A value whose check would take too long is a difference.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Misfit> {
        match cost::of(&self.source, value) {
            Some(_) => self.compare(value),
            None => Err(too_long()),
        }
    }

    /// The same, on a thread of its own if it may take long. Any server can be the author of the schema.
    pub(crate) async fn check_aside(&self, value: &Value) -> Result<(), Misfit> {
        if cost::within(&self.source, value, AT_ONCE).is_some() {
            return self.compare(value);
        }
        let (schema, value) = (self.clone(), Arc::new(value.clone()));
        let own = Arc::clone(&value);
        match workflow_core::blocking({
            let schema = schema.clone();
            move |_| schema.check(&own)
        })
        .await
        {
            Ok(checked) => checked,
            // Without threads for it, it is done here: it has a bound.
            Err(_) => schema.check(&value),
        }
    }

    fn compare(&self, value: &Value) -> Result<(), Misfit> {
        let Err(error) = self.validator.validate(value) else { return Ok(()) };
        let pointer = error.instance_path().to_string();
        let found = shortened(&value.pointer(&pointer).unwrap_or(value).to_string());
        let problem = shortened(&error.to_string());
        let problem = if problem.contains(&found) { problem } else { format!("{problem}; found {found}") };
        Err(Misfit { pointer, problem })
    }
}

fn too_long() -> Misfit {
    let problem = format!("its check by this schema would take more than {} comparisons", cost::MOST);
    Misfit { pointer: String::new(), problem }
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

/// The value as JSON with sorted keys: the same bytes also if another dependency makes `serde_json` preserve their order.
pub(crate) fn sorted_text(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
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
