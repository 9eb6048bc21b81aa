//! Versions of an event's serialised form: reads the versions that a journal has, and explains why one cannot
//! be read.

use std::borrow::Cow;
use std::fmt::Display;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{AnyEvent, Decode};
use crate::panics::{Panicked, caught};

/// Converts the JSON of an older version, given by number, to the current version.
///
/// Returns the reason as text if it cannot.
pub type Upgrade = fn(u32, Value) -> Result<Value, String>;

/// The result of an upgrade function, with its error as text.
///
/// # Errors
/// The error of the function, as text.
#[doc(hidden)]
pub fn upgraded<E: Display>(returned: Result<Value, E>) -> Result<Value, String> {
    returned.map_err(|error| error.to_string())
}

/// Reads the events of one type.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) version: u32,
    pub(crate) upgrade: Option<Upgrade>,
    pub(crate) decode: Decode,
}

/// Why an event of a journal cannot be read.
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
    #[error("it has version {found}, and the table declares version {known}, to which nothing upgrades it")]
    OtherVersion { found: u32, known: u32 },
    #[error("its upgrade from version {found} to version {known} failed: {problem}")]
    Upgrade { found: u32, known: u32, problem: String },
    #[error("its `Deserialize` panicked: {message}")]
    Panicked { message: String },
    #[error(transparent)]
    Unfit(#[from] serde_json::Error),
}

impl Reader {
    /// Reads the value of this version. A reply and an expiry need their request. A panic of the event's type
    /// is an error, so that a reader can continue with other journals.
    pub(crate) fn read(
        &self,
        version: u32,
        data: &RawValue,
        request: Option<&AnyEvent>,
    ) -> Result<AnyEvent, Unreadable> {
        let data = self.current(version, data)?;
        let decoded = caught(|| (self.decode)(data.get(), request));
        Ok(decoded.map_err(|Panicked { message }| Unreadable::Panicked { message })??)
    }

    /// The JSON converted to the current version.
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
