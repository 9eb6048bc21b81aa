//! A document as a tree whose keys and values know where they are. It knows nothing of the format.

use std::sync::Arc;

use serde_json::{Number, Value};

use crate::problem::sink::At;

/// A value of the file, and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) at: At,
    pub(crate) kind: Kind,
    repeated: Option<Box<[(Key, Tree)]>>,
}

/// The content of a value. Maps have each key once, in the order of the file.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text),
    List(Vec<Tree>),
    Map(Vec<(Key, Tree)>),
}

/// A key of a map.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) at: At,
    pub(crate) name: Arc<str>,
}

/// A text, and the bytes of the file that say it.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) value: Arc<str>,
    /// Where in the file it is written, its quotes included.
    pub(crate) span: (u32, u32),
}

/// Texts of at most this many bytes are repeated in messages.
const SHORT: usize = 40;

impl Tree {
    pub(crate) fn new(at: At, kind: Kind) -> Self {
        Self { at, kind, repeated: None }
    }

    /// A map, and the pairs whose keys it has already, which nobody uses.
    pub(crate) fn map(at: At, pairs: Vec<(Key, Self)>, repeated: Vec<(Key, Self)>) -> Self {
        let repeated = (!repeated.is_empty()).then(|| repeated.into_boxed_slice());
        Self { at, kind: Kind::Map(pairs), repeated }
    }

    /// Of a map, the pairs whose keys stand in it before.
    pub(crate) fn repeated(&self) -> &[(Key, Self)] {
        self.repeated.as_deref().unwrap_or_default()
    }

    /// The type of the value, in the words of messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a truth value",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }

    /// The value itself where it is short, else what it is.
    pub(crate) fn described(&self) -> String {
        match &self.kind {
            Kind::Bool(value) => format!("`{value}`"),
            Kind::Number(value) => format!("the number {value}"),
            Kind::Text(text) if text.value.len() <= SHORT && !text.value.contains('\n') => {
                format!("the text `{}`", text.value)
            }
            _ => self.type_name().to_owned(),
        }
    }

    /// The value without its locations. Trees are at most 64 deep, so it may recurse.
    pub(crate) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(value) => Value::Number(value.clone()),
            Kind::Text(text) => Value::String(text.value.to_string()),
            Kind::List(items) => items.iter().map(Tree::to_json).collect(),
            Kind::Map(entries) => {
                entries.iter().map(|(key, value)| (key.name.to_string(), value.to_json())).collect()
            }
        }
    }

    /// The value of `key`, if this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Tree> {
        match &self.kind {
            Kind::Map(entries) => {
                entries.iter().find(|(candidate, _)| &*candidate.name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}
