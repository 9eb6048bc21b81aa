//! Versions of the shape that an event's JSON has: reading what a journal has of an older one, and saying why that cannot
//! be.

use std::borrow::Cow;
use std::fmt::Display;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{AnyEvent, Decode};
use crate::panics::{Panicked, caught};

/// Makes the JSON of an event's current version of that of an older one, which it is told, or says why it cannot.
pub type Upgrade = fn(u32, Value) -> Result<Value, String>;

/// What a function that upgrades has returned, in the library's terms.
///
/// # Errors
/// The function's own, as text.
#[doc(hidden)]
pub fn upgraded<E: Display>(returned: Result<Value, E>) -> Result<Value, String> {
    returned.map_err(|error| error.to_string())
}

/// How events of one type are read.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) version: u32,
    pub(crate) upgrade: Option<Upgrade>,
    pub(crate) decode: Decode,
}

/// Why an event that a journal has cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("nothing reads it")]
    NoReader,
    #[error("it has version {found}, and the type has version {known}: a later program has written it")]
    Newer { found: u32, known: u32 },
    #[error(
        "it has version {found}, and the type reads version {known} alone: upgrade it with `#[event(version = {known}, upgrade = …)]`"
    )]
    NoUpgrade { found: u32, known: u32 },
    #[error("its upgrade from version {found} to version {known} failed: {problem}")]
    Upgrade { found: u32, known: u32, problem: String },
    #[error("its `Deserialize` panicked: {message}")]
    Panicked { message: String },
    #[error(transparent)]
    Unfit(#[from] serde_json::Error),
}

impl Reader {
    /// The value of what was written as this version; a reply or an expired request with the request. What the event's type
    /// panics with is an error like any other of it: whoever reads one journal has others to read.
    pub(crate) fn read(
        &self,
        version: u32,
        data: &RawValue,
        request: Option<&AnyEvent>,
    ) -> Result<AnyEvent, Unreadable> {
        let data = self.current(version, data)?;
        let decoded = caught(|| (self.decode)(&data, request));
        Ok(decoded.map_err(|Panicked { message }| Unreadable::Panicked { message })??)
    }

    /// The JSON as this version has it.
    fn current<'a>(&self, found: u32, data: &'a RawValue) -> Result<Cow<'a, RawValue>, Unreadable> {
        let known = self.version;
        if found == known {
            return Ok(Cow::Borrowed(data));
        }
        if found > known {
            return Err(Unreadable::Newer { found, known });
        }
        let upgrade = self.upgrade.ok_or(Unreadable::NoUpgrade { found, known })?;
        let data = serde_json::from_str(data.get())?;
        let upgraded = caught(|| upgrade(found, data));
        let upgraded = upgraded.unwrap_or_else(|_| Err("it panicked".to_owned()));
        let upgraded = upgraded.map_err(|problem| Unreadable::Upgrade { found, known, problem })?;
        Ok(Cow::Owned(to_raw_value(&upgraded)?))
    }
}
