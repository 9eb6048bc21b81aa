//! Counts the bytes of a value's JSON without building it, and stops at a bound.

use std::io;

use serde::ser::{Error as _, Serialize};
use serde_json::Error;

use super::{JsonWriter, ToJson};
use crate::panics::{Panicked, caught};

/// The number of bytes of the value's compact JSON. Counting stops beyond `most`. The result is then greater
/// than `most` and at most the real size. Only scalars are written, and nothing is stored. `None` for a value whose
/// `Serialize` fails.
pub(crate) fn size_of(value: &(impl ToJson + ?Sized), most: usize) -> Result<Option<usize>, Panicked> {
    let mut writer = JsonWriter { count: Some(Count { bytes: 0, most }), ..JsonWriter::default() };
    let written = caught(|| value.write(&mut writer));
    let bytes = writer.count.map(|count| count.bytes);
    if bytes.is_some_and(|bytes| bytes > most) {
        return Ok(bytes);
    }
    Ok(written?.ok().and(bytes))
}

/// The bytes counted so far, never more than those of the whole value.
#[derive(Debug)]
pub(super) struct Count {
    bytes: usize,
    most: usize,
}

impl Count {
    /// Adds punctuation. Its few bytes need no check, since the next value checks.
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds the text of a scalar or of a whole value.
    pub(super) fn text<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let mut length = Length(0);
        serde_json::to_writer(&mut length, value)?;
        self.add(length.0);
        self.check()
    }

    /// Fails beyond the bound, so that serialisation stops.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.bytes > self.most { Err(Error::custom("the value is too large")) } else { Ok(()) }
    }

    /// Adds the name of a field and its colon.
    pub(super) fn key(&mut self, name: &str) {
        let mut length = Length(0);
        // Text always has JSON.
        let _ = serde_json::to_writer(&mut length, name);
        self.add(length.0 + 1);
    }
}

/// A writer that stores only the length of the text.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(text.len());
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
