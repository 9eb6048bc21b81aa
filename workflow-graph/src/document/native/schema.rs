//! Schemas of inputs, outputs and replies: compiled once, without regular expressions that backtrack and without a
//! network.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError};
use serde_json::Value;

use super::Reading;
use crate::document::model::Schema;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;
use crate::problem::sink::At;

mod mistake;
mod default;

impl Reading<'_> {
    pub(crate) fn schema(&mut self, tree: &Tree, key: &str) -> Option<Schema> {
        if !matches!(tree.kind, Kind::Map(_) | Kind::Bool(_)) {
            let message = format!("`{key}` is a JSON Schema, and this is {}", tree.described());
            // A list could be values as well as names of fields.
            let meant = if matches!(tree.kind, Kind::List(_)) { None } else { mistake::short_form(tree) };
            let remedy = meant.unwrap_or_else(|| "write a JSON Schema".to_owned());
            self.problems.add(Code::WrongType, tree.at, message, remedy);
            return None;
        }
        let value = tree.to_json();
        match jsonschema::options().with_pattern_options(PatternOptions::regex()).build(&value) {
            Ok(validator) => {
                default::check(tree, &value, self.problems);
                Some(Schema { at: tree.at, value: Arc::new(value), validator: Arc::new(validator) })
            }
            Err(error) => {
                let pointer = error.instance_path().as_str();
                if let Some(mistake) = mistake::find(tree, pointer) {
                    let message = format!("`{key}` is no valid JSON Schema: {}", mistake.reason);
                    self.problems.add_mended(
                        Code::BadSchema,
                        mistake.at,
                        message,
                        mistake.remedy,
                        mistake.similar,
                    );
                    return None;
                }
                let at = within(tree, pointer);
                let (reason, remedy) = match error.kind() {
                    ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) => (
                        format!("it refers to `{uri}`, and the reader fetches nothing"),
                        "write that schema here, under `$defs`",
                    ),
                    _ => (error.to_string(), "correct the schema"),
                };
                let message = format!("`{key}` is no valid JSON Schema: {reason}");
                self.problems.add(Code::BadSchema, at, message, remedy);
                None
            }
        }
    }
}

/// Where the JSON pointer leads, as far as it does.
fn within(tree: &Tree, pointer: &str) -> At {
    let mut at = tree;
    for segment in segments(pointer) {
        let Some(next) = step(at, &segment) else { break };
        at = next;
    }
    at.at
}

/// The unescaped segments of a JSON pointer.
pub(super) fn segments(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"))
}

/// The value that a segment leads to.
pub(super) fn step<'t>(tree: &'t Tree, segment: &str) -> Option<&'t Tree> {
    match &tree.kind {
        Kind::List(items) => segment.parse::<usize>().ok().and_then(|index| items.get(index)),
        _ => tree.get(segment),
    }
}

/// Whether a schema, which is at most 64 deep, has a reference in it.
pub(crate) fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.contains_key("$ref") || map.contains_key("$dynamicRef") || map.values().any(refers)
        }
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}
