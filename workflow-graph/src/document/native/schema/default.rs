//! `bad-schema`: a default fits the schema that states it.

use jsonschema::PatternOptions;
use serde_json::{Value, json};

use super::mistake::Place;
use super::refers;
use crate::document::tree::{Kind, Tree};
use crate::expression::short;
use crate::problem::Code;
use crate::problem::sink::Problems;

/// Checks every default of the schema `root`, which `tree` writes.
pub(super) fn check(tree: &Tree, root: &Value, problems: &mut Problems) {
    within(tree, Place::Schema, root, "", problems);
}

/// Trees are at most 64 deep, so it may recurse.
fn within(tree: &Tree, place: Place, root: &Value, name: &str, problems: &mut Problems) {
    let (Place::Schema | Place::Schemas, Kind::Map(pairs)) = (place, &tree.kind) else {
        if let (Place::Schemas, Kind::List(items)) = (place, &tree.kind) {
            for item in items {
                within(item, Place::Schema, root, name, problems);
            }
        }
        return;
    };
    if let (Place::Schema, Some(default)) = (place, tree.get("default")) {
        fits(tree, default, root, name, problems);
    }
    for (key, value) in pairs {
        // The name of the schema, for the message.
        let name = if matches!(place, Place::Schemas) { &*key.name } else { name };
        within(value, place.step(&key.name), root, name, problems);
    }
}

fn fits(tree: &Tree, default: &Tree, root: &Value, name: &str, problems: &mut Problems) {
    let value = default.to_json();
    // A default of null is none.
    if value.is_null() || problems.is_full() {
        return;
    }
    // References lead to the parts that the whole schema defines. Others are not followed, and only a schema with references
    // pays for these parts.
    let own = tree.to_json();
    let schema = if refers(&own) {
        let part = |key: &str| root.get(key).cloned().unwrap_or_else(|| json!({}));
        json!({ "allOf": [own], "$defs": part("$defs"), "definitions": part("definitions") })
    } else {
        own
    };
    let validator = jsonschema::options().with_pattern_options(PatternOptions::regex()).build(&schema);
    let Some(error) =
        validator.ok().and_then(|validator| validator.validate(&value).err().map(|error| error.to_string()))
    else {
        return;
    };
    let of = if name.is_empty() { String::new() } else { format!(" of `{name}`") };
    let message = format!("the default{of}, {}, does not fit its schema: {error}", short(&value));
    problems.add(Code::BadSchema, default.at, message, "correct it, or the schema");
}
