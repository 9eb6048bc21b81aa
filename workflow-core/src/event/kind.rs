//! The type of a log entry: a Rust type, or a type of JSON that a table built at run time declares (S57).

use std::any::Any;
use std::sync::Arc;

use serde_json::Value;

use super::{AnyEvent, Erased, EventType, LazyJson, Roles};
use crate::json::{JsonWriter, ToJson};
use crate::panics::release;

/// The type of a log entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EventKind<'a> {
    Rust(&'static EventType),
    Json(&'a Arc<JsonType>),
}

impl<'a> EventKind<'a> {
    pub(crate) fn name(self) -> &'a str {
        match self {
            Self::Rust(known) => known.name,
            Self::Json(known) => &known.name,
        }
    }

    pub(crate) fn roles(self) -> Roles {
        match self {
            Self::Rust(known) => known.roles,
            Self::Json(known) => known.roles,
        }
    }

    pub(crate) fn version(self) -> u32 {
        match self {
            Self::Rust(known) => known.version,
            Self::Json(known) => known.version,
        }
    }
}

/// A type of JSON, as one table declares it. Two tables have different types, also with the same names.
#[derive(Debug)]
pub(crate) struct JsonType {
    pub(crate) name: Arc<str>,
    pub(crate) roles: Roles,
    pub(crate) version: u32,
    /// The JSON schema of its data.
    pub(crate) schema: Option<Value>,
    /// For a request: the JSON schema of its reply.
    pub(crate) reply_schema: Option<Value>,
}

/// A log entry that is JSON: an event, a reply or an expiry.
#[derive(Debug)]
pub(crate) struct JsonEvent {
    of: Arc<JsonType>,
    data: JsonData,
    /// Of a reply or an expiry: the request.
    request: Option<AnyEvent>,
}

/// The data of an event that is JSON.
#[derive(Debug)]
pub(crate) enum JsonData {
    Value(Value),
    /// Of a step that emitted a Rust value.
    Lazy(LazyJson),
}

impl From<Value> for JsonData {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl JsonData {
    fn json(&self) -> Result<&Value, &str> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Lazy(lazy) => lazy.json(),
        }
    }
}

impl JsonEvent {
    pub(crate) fn new(of: &Arc<JsonType>, data: impl Into<JsonData>) -> Self {
        Self { of: Arc::clone(of), data: data.into(), request: None }
    }

    /// The reply to this request, or its expiry.
    pub(crate) fn to(self, request: Option<&AnyEvent>) -> Self {
        Self { request: request.cloned(), ..self }
    }

    /// The JSON. `None` of a Rust value whose `Serialize` fails.
    pub(crate) fn value(&self) -> Option<&Value> {
        self.data.json().ok()
    }

    /// The Rust value that the step emitted, if its type is `T`.
    pub(super) fn typed<T: Any>(&self) -> Option<&T> {
        match &self.data {
            JsonData::Value(_) => None,
            JsonData::Lazy(lazy) => lazy.value(),
        }
    }

    pub(crate) fn request(&self) -> Option<&AnyEvent> {
        self.request.as_ref()
    }
}

impl From<JsonEvent> for AnyEvent {
    fn from(event: JsonEvent) -> Self {
        Self::from_erased(Arc::new(event))
    }
}

impl Erased for JsonEvent {
    fn kind(&self) -> EventKind<'_> {
        EventKind::Json(&self.of)
    }

    fn release(self: Arc<Self>) {
        release(self);
    }
}

/// A Rust value writes itself, so that its parts are checked before JSON loses them, and no JSON of it is kept.
impl ToJson for JsonEvent {
    fn write(&self, to: &mut JsonWriter) -> Result<(), serde_json::Error> {
        match &self.data {
            JsonData::Value(value) => value.write(to),
            JsonData::Lazy(lazy) => lazy.write(to),
        }
    }
}
