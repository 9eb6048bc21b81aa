//! JSON that is made of a Rust value when something first reads it: the data of an event that a step of a run-time workflow
//! emits as its own type (S57).

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use serde::Serialize;
use serde_json::Value;

use crate::json::{self, JsonWriter, ToJson};

/// A Rust value, and its JSON once something has read it.
pub(crate) struct LazyJson(Box<dyn Lazy>);

trait Lazy: Send + Sync {
    fn value(&self) -> &dyn Any;

    fn json(&self) -> Result<&Value, &str>;

    fn write(&self, to: &mut JsonWriter) -> Result<(), serde_json::Error>;
}

struct Of<T> {
    value: T,
    /// The text of the error of the type's own `Serialize`, if it failed.
    made: OnceLock<Result<Value, String>>,
}

impl<T: Serialize + Any + Send + Sync> Lazy for Of<T> {
    fn value(&self) -> &dyn Any {
        &self.value
    }

    fn json(&self) -> Result<&Value, &str> {
        let make = || json::to_json(&self.value).map_err(|error| error.to_string());
        self.made.get_or_init(make).as_ref().map_err(String::as_str)
    }

    fn write(&self, to: &mut JsonWriter) -> Result<(), serde_json::Error> {
        // An event that is read back is JSON, and has no marks.
        if to.marks() { json::to_json(&self.value)?.write(to) } else { self.value.write(to) }
    }
}

impl LazyJson {
    pub(crate) fn of<T: Serialize + Any + Send + Sync>(value: T) -> Self {
        Self(Box::new(Of { value, made: OnceLock::new() }))
    }

    /// The value, if its type is `T`.
    pub(super) fn value<T: Any>(&self) -> Option<&T> {
        self.0.value().downcast_ref()
    }

    /// The JSON, or the text of the error that serialising the value had.
    pub(super) fn json(&self) -> Result<&Value, &str> {
        self.0.json()
    }

    /// Writes the value, without keeping its JSON.
    pub(super) fn write(&self, to: &mut JsonWriter) -> Result<(), serde_json::Error> {
        self.0.write(to)
    }
}

impl fmt::Debug for LazyJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyJson").finish_non_exhaustive()
    }
}
