//! Events in a journal: values, or JSON that is decoded only when the run's table names the type.

use std::fmt;
use std::sync::Arc;

use serde::ser::{Error as _, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::event::{AnyEvent, Reader, Unreadable, WithJson};

/// An event in a journal: the value itself, or the JSON that was read back. Clones share it.
///
/// ```
/// use workflow_core::{AnyEvent, prelude::*};
/// use workflow_core::store::RecordedEvent;
///
/// #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// struct Scored(u32);
///
/// let written = RecordedEvent::new(AnyEvent::new(Scored(7)));
/// let bytes = serde_json::to_vec(&written).unwrap();
/// let read: RecordedEvent = serde_json::from_slice(&bytes).unwrap();
/// assert_eq!((read.name(), read.to_json().unwrap()), ("Scored", serde_json::json!(7)));
/// ```
#[derive(Clone)]
pub struct RecordedEvent(Payload);

#[derive(Clone)]
enum Payload {
    Value(AnyEvent),
    /// The value, with the JSON that the check has made of it.
    Made(Arc<WithJson>),
    Read(Arc<Read>),
}

#[derive(Serialize, Deserialize)]
struct Read {
    #[serde(rename = "type")]
    name: Box<str>,
    #[serde(default = "first", skip_serializing_if = "is_first")]
    version: u32,
    data: Box<RawValue>,
}

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_first(version: &u32) -> bool {
    *version == 1
}

impl RecordedEvent {
    /// Records a value. It is serialised when the record is, unless the engine has serialised it for its check.
    pub fn new(event: AnyEvent) -> Self {
        Self(event.take_json().map_or(Payload::Value(event), Payload::Made))
    }

    /// Records JSON without its value, for programs that do not know the type.
    ///
    /// ```
    /// use workflow_core::store::RecordedEvent;
    ///
    /// let data = serde_json::value::to_raw_value(&serde_json::json!({ "name": "Ada" })).unwrap();
    /// let event = RecordedEvent::from_json("Greet", 1, data);
    /// assert_eq!((event.name(), event.version()), ("Greet", 1));
    /// assert_eq!(event.to_json().unwrap(), serde_json::json!({ "name": "Ada" }));
    /// ```
    pub fn from_json(name: impl Into<Box<str>>, version: u32, data: Box<RawValue>) -> Self {
        Self(Payload::Read(Arc::new(Read { name: name.into(), version, data })))
    }

    /// Records a value without JSON, or whose JSON another record may need.
    pub(crate) fn of_value(event: AnyEvent) -> Self {
        Self(Payload::Value(event))
    }

    /// How many bytes of JSON it has; 0 for a value without JSON.
    pub(crate) fn json_bytes(&self) -> usize {
        match &self.0 {
            Payload::Value(_) => 0,
            Payload::Made(made) => made.json.get().len(),
            Payload::Read(read) => read.data.get().len(),
        }
    }

    /// The value, with its JSON for so many more records; `None` if the event was read back.
    pub(crate) fn recordable(&self, records: u8) -> Option<AnyEvent> {
        match &self.0 {
            Payload::Value(event) => Some(event.clone()),
            Payload::Made(made) => Some(AnyEvent::made(Arc::clone(made), records)),
            Payload::Read(_) => None,
        }
    }

    /// The wire name of its type.
    pub fn name(&self) -> &str {
        match &self.0 {
            Payload::Value(event) => event.name(),
            Payload::Made(made) => made.event.name(),
            Payload::Read(read) => &read.name,
        }
    }

    /// The version of its shape, from 1.
    pub fn version(&self) -> u32 {
        match &self.0 {
            Payload::Value(event) => event.version(),
            Payload::Made(made) => made.event.version(),
            Payload::Read(read) => read.version,
        }
    }

    /// The value itself; `None` if the event was read back.
    pub fn value(&self) -> Option<&AnyEvent> {
        match &self.0 {
            Payload::Value(event) => Some(event),
            Payload::Made(made) => Some(&made.event),
            Payload::Read(_) => None,
        }
    }

    /// Decodes the JSON of the event. A reply or an expired request needs `request`.
    pub(crate) fn decoded(
        &self,
        reader: Option<Reader>,
        request: Option<&AnyEvent>,
    ) -> Result<AnyEvent, Unreadable> {
        let reader = reader.ok_or(Unreadable::NoReader)?;
        match &self.0 {
            Payload::Value(event) => reader.read(event.version(), &self.data()?, request),
            Payload::Made(made) => reader.read(made.event.version(), &made.json, request),
            Payload::Read(read) => reader.read(read.version, &read.data, request),
        }
    }

    /// The JSON as it stands in a record.
    pub(crate) fn data(&self) -> Result<Box<RawValue>, serde_json::Error> {
        match &self.0 {
            Payload::Value(event) => to_raw_value(&event.to_json()?),
            Payload::Made(made) => Ok(made.json.clone()),
            Payload::Read(read) => Ok(read.data.clone()),
        }
    }

    /// The value as JSON.
    ///
    /// # Errors
    /// The error of the type's own `Serialize`.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        match &self.0 {
            Payload::Value(event) => event.to_json(),
            Payload::Made(made) => serde_json::from_str(made.json.get()),
            Payload::Read(read) => serde_json::from_str(read.data.get()),
        }
    }
}

impl Serialize for RecordedEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Payload::Read(read) => read.serialize(serializer),
            Payload::Value(event) => {
                let data = event.to_json().map_err(|error| {
                    S::Error::custom(format_args!("event `{}` cannot be serialised: {error}", event.name()))
                })?;
                serialise(event, &data, serializer)
            }
            Payload::Made(made) => serialise(&made.event, &made.json, serializer),
        }
    }
}

/// Serialises like [`Read`], so that both are read back alike.
fn serialise<S: Serializer>(event: &AnyEvent, data: &impl Serialize, to: S) -> Result<S::Ok, S::Error> {
    let version = event.version();
    let fields = if is_first(&version) { 2 } else { 3 };
    let mut record = to.serialize_struct("RecordedEvent", fields)?;
    record.serialize_field("type", event.name())?;
    if fields > 2 {
        record.serialize_field("version", &version)?;
    }
    record.serialize_field("data", data)?;
    record.end()
}

impl<'de> Deserialize<'de> for RecordedEvent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Payload::Read(Arc::new(Read::deserialize(deserializer)?))))
    }
}

impl fmt::Debug for RecordedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordedEvent({})", self.name())
    }
}
