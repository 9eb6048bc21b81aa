//! Events as JSON from outside: reading them with the path of what does not fit, and their JSON schemas.

use std::fmt;
use std::marker::PhantomData;

use serde_json::Value;

use super::{AnyEvent, Event};
use crate::error::UnfitJson;
use crate::json::read_json;

/// Reads an event, or says why the JSON is none.
type ReadJson = fn(Value) -> Result<AnyEvent, UnfitJson>;

/// What front ends need of an event type: its JSON schema, and a reader that names the path of a mistake.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct JsonForm {
    pub(crate) schema: Option<fn() -> Value>,
    pub(crate) read: Option<ReadJson>,
}

impl JsonForm {
    /// Neither a schema nor a reader.
    pub const NONE: Self = Self { schema: None, read: None };

    /// The form of an event that does not come from outside, with the schema from [`Schema`].
    pub const fn shown(schema: Option<fn() -> Value>) -> Self {
        Self { schema, read: None }
    }

    /// The form of an event that comes from outside, with the schema from [`Schema`].
    pub const fn taken<E: Event>(schema: Option<fn() -> Value>) -> Self {
        Self { schema, read: Some(|data| read_json(data).map(AnyEvent::new::<E>)) }
    }
}

impl fmt::Debug for JsonForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (schema, read) = (self.schema.is_some(), self.read.is_some());
        f.debug_struct("JsonForm").field("has_schema", &schema).field("has_reader", &read).finish()
    }
}

/// Answers `Schema::<T>::MAKE`: by the inherent constant if `T` has a schema, else by that of [`NoSchema`],
/// which must be in scope.
#[doc(hidden)]
#[derive(Debug)]
pub struct Schema<T>(PhantomData<T>);

#[cfg(feature = "schemars")]
impl<T: schemars::JsonSchema> Schema<T> {
    /// Makes the schema of the type.
    pub const MAKE: Option<fn() -> Value> = Some(schema_of::<T>);
}

/// The same for the configuration of a parameter of type `T`: `Config<C>` or `&Config<C>`.
#[doc(hidden)]
#[derive(Debug)]
pub struct ConfigSchema<T>(PhantomData<T>);

#[cfg(feature = "schemars")]
impl<C: schemars::JsonSchema> ConfigSchema<crate::config::Config<C>> {
    /// Makes the schema of the configuration.
    pub const MAKE: Option<fn() -> Value> = Some(schema_of::<C>);
}

#[cfg(feature = "schemars")]
impl<C: schemars::JsonSchema> ConfigSchema<&crate::config::Config<C>> {
    /// Makes the schema of the configuration.
    pub const MAKE: Option<fn() -> Value> = Some(schema_of::<C>);
}

impl<T> NoSchema for ConfigSchema<T> {}

/// The answer for a type without a schema.
#[doc(hidden)]
pub trait NoSchema {
    /// No schema.
    const MAKE: Option<fn() -> Value> = None;
}

impl<T> NoSchema for Schema<T> {}

#[cfg(feature = "schemars")]
fn schema_of<T: schemars::JsonSchema>() -> Value {
    schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}
