//! Replies to a request whose type the caller does not know: reading them from JSON, and their JSON schema.
//! Front ends that show requests to people use it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;

use super::{AnyEvent, Request};
use crate::event::Answered;
use crate::panics::{Contained, Panicked, caught};

/// How to read the replies to one type of request, with their schema. The derive makes it.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct ReplyForm {
    pub(crate) schema: Option<fn() -> Value>,
    pub(crate) read: fn(&AnyEvent, Value) -> Result<AnyEvent, Unfit>,
}

impl ReplyForm {
    /// The form of replies to `R`, with the schema from [`Schema`].
    pub const fn of<R: Request>(schema: Option<fn() -> Value>) -> Self {
        Self { schema, read: read::<R> }
    }
}

impl fmt::Debug for ReplyForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyForm").field("has_schema", &self.schema.is_some()).finish_non_exhaustive()
    }
}

/// Why JSON is not a valid reply: the path in the JSON, and the problem there.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) path: String,
    pub(crate) problem: String,
}

/// Makes the log entry of a reply from its request and JSON.
fn read<R: Request>(asked: &AnyEvent, reply: Value) -> Result<AnyEvent, Unfit> {
    let read = caught(|| serde_path_to_error::deserialize(reply));
    let read =
        read.map_err(|Panicked { message }| Unfit::whole(format!("its `Deserialize` panicked: {message}")))?;
    let reply = read.map_err(|error| Unfit::of(&error))?;
    let request = asked.downcast::<R>().ok_or_else(|| Unfit::whole("the request is of another type"))?;
    Ok(AnyEvent::from_erased(Arc::new(Answered::new(request, Contained::new(reply)))))
}

impl Unfit {
    fn whole(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    fn of(error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        Self { path: error.path().to_string(), problem: error.inner().to_string() }
    }
}

/// Answers `Schema::<T>::REPLY`: by the inherent constant if `T` has a schema, else by that of [`NoSchema`],
/// which must be in scope.
#[doc(hidden)]
#[derive(Debug)]
pub struct Schema<T>(PhantomData<T>);

#[cfg(feature = "schemars")]
impl<T: schemars::JsonSchema> Schema<T> {
    /// Makes the schema of the reply.
    pub const REPLY: Option<fn() -> Value> = Some(schema_of::<T>);
}

/// The answer for a type without a schema.
#[doc(hidden)]
pub trait NoSchema {
    /// No schema.
    const REPLY: Option<fn() -> Value> = None;
}

impl<T> NoSchema for Schema<T> {}

#[cfg(feature = "schemars")]
fn schema_of<T: schemars::JsonSchema>() -> Value {
    schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}
