//! Schemas of inputs, outputs and replies: compiled once, without regular expressions that backtrack and without a
//! network.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError};

use super::Reading;
use crate::document::model::Schema;
use crate::document::tree::{Kind, Tree};
use crate::problem::Code;
use crate::problem::sink::At;

impl Reading<'_> {
    pub(crate) fn schema(&mut self, tree: &Tree, key: &str) -> Option<Schema> {
        if !matches!(tree.kind, Kind::Map(_) | Kind::Bool(_)) {
            self.wrong_type(tree, &format!("`{key}`"), "a JSON Schema");
            return None;
        }
        let value = tree.to_json();
        match jsonschema::options().with_pattern_options(PatternOptions::regex()).build(&value) {
            Ok(validator) => {
                Some(Schema { at: tree.at, value: Arc::new(value), validator: Arc::new(validator) })
            }
            Err(error) => {
                let at = within(tree, error.instance_path().as_str());
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
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let next = match &at.kind {
            Kind::List(items) => segment.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => at.get(&segment),
        };
        let Some(next) = next else { break };
        at = next;
    }
    at.at
}
