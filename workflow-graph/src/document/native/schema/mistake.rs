//! Mistakes in schemas that are common enough for a remedy of their own. It validates nothing: it looks at the place
//! that a validator refused.

use super::super::values::alternatives;
use super::{segments, step};
use crate::document::tree::{Kind, Tree};
use crate::problem::similar;
use crate::problem::sink::At;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// Their names in languages.
const OTHER_NAMES: [(&str, &str); 14] = [
    ("str", "string"),
    ("text", "string"),
    ("int", "integer"),
    ("long", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("decimal", "number"),
    ("bool", "boolean"),
    ("list", "array"),
    ("map", "object"),
    ("dict", "object"),
    ("struct", "object"),
    ("none", "null"),
    ("nil", "null"),
];

/// The most values that a remedy repeats, and their characters.
const MOST_REPEATED: (usize, usize) = (8, 80);

/// What is wrong in a schema, and the change that mends it.
pub(super) struct Mistake {
    pub(super) at: At,
    pub(super) reason: String,
    pub(super) remedy: String,
    pub(super) similar: Vec<String>,
}

/// The mistake at the place that the pointer leads to, if it is one of those that are known here.
pub(super) fn find(tree: &Tree, pointer: &str) -> Option<Mistake> {
    let (mut at, mut place, mut name) = (tree, Place::Schema, String::new());
    for segment in segments(pointer) {
        // The validator may refuse one item of a list of types, or the whole list.
        if matches!(place, Place::Type) {
            break;
        }
        place = place.step(&segment);
        at = step(at, &segment)?;
        name = segment;
    }
    match place {
        Place::Type => wrong_type(at),
        Place::Schema => Some(Mistake {
            at: at.at,
            reason: format!("the schema of `{name}` is {}", at.described()),
            remedy: short_form(at)?,
            similar: Vec::new(),
        }),
        Place::Schemas | Place::Other => None,
    }
}

/// The kind of a place in a schema.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Schema,
    /// A map or list of schemas.
    Schemas,
    /// The value of `type`.
    Type,
    Other,
}

impl Place {
    pub(super) fn step(self, segment: &str) -> Self {
        match (self, segment) {
            (Self::Schemas, _)
            | (
                Self::Schema,
                "items"
                | "additionalProperties"
                | "contains"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else",
            ) => Self::Schema,
            (
                Self::Schema,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "allOf"
                | "anyOf" | "oneOf" | "prefixItems",
            ) => Self::Schemas,
            (Self::Schema, "type") => Self::Type,
            _ => Self::Other,
        }
    }
}

/// The value of `type`: a type or a list of such.
fn wrong_type(tree: &Tree) -> Option<Mistake> {
    let alone = std::slice::from_ref(tree);
    let items = if let Kind::List(items) = &tree.kind { items.as_slice() } else { alone };
    let is_type = |item: &&Tree| matches!(&item.kind, Kind::Text(text) if TYPES.contains(&&*text.value));
    let wrong = items.iter().find(|item| !is_type(item))?;
    let (reason, similar) = match &wrong.kind {
        Kind::Text(text) => (format!("`{}` is no type", text.value), meant(&text.value)),
        Kind::Null => {
            let reason = "a type is a text, and this is nothing".to_owned();
            return Some(Mistake {
                at: wrong.at,
                reason,
                remedy: "write `\"null\"`, with its quotation marks".to_owned(),
                similar: Vec::new(),
            });
        }
        _ => return None,
    };
    let names: Vec<&str> = similar.iter().map(String::as_str).collect();
    let remedy = match names.as_slice() {
        [] => format!("write one of {}", alternatives(&TYPES)),
        names => format!(
            "did you mean {}?",
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
        ),
    };
    Some(Mistake { at: wrong.at, reason, remedy, similar })
}

/// The types that the author may have meant.
fn meant(name: &str) -> Vec<String> {
    let other = OTHER_NAMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    other.map_or_else(|| similar(name, TYPES), |(_, known)| vec![(*known).to_owned()])
}

/// The schema that a text or a list stands for, where it stands in place of one.
pub(super) fn short_form(tree: &Tree) -> Option<String> {
    match &tree.kind {
        Kind::Text(text) if TYPES.contains(&&*text.value) => {
            Some(format!("write `{{type: {}}}`", text.value))
        }
        Kind::Text(text) => match meant(&text.value).as_slice() {
            [only] => Some(format!("write `{{type: {only}}}`")),
            _ => None,
        },
        Kind::List(items) if !items.is_empty() => {
            let written: Option<Vec<String>> = items.iter().map(scalar).collect();
            let written = written?.join(", ");
            let is_short = items.len() <= MOST_REPEATED.0 && written.chars().count() <= MOST_REPEATED.1;
            Some(format!("write `{{enum: [{}]}}`", if is_short { &written } else { "…" }))
        }
        _ => None,
    }
}

/// A scalar as it stands in a list of YAML.
fn scalar(tree: &Tree) -> Option<String> {
    match &tree.kind {
        Kind::Text(text) if is_word(&text.value) => Some(text.value.to_string()),
        Kind::List(_) | Kind::Map(_) => None,
        _ => Some(tree.to_json().to_string()),
    }
}

/// Whether a text without quotation marks is that text in every version of YAML.
fn is_word(text: &str) -> bool {
    const OTHERS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !OTHERS.iter().any(|other| other.eq_ignore_ascii_case(text))
}
