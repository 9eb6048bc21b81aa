//! How large a value is as JSON text, without making the text. Counting stops as soon as a bound is passed.

use std::io;

use serde::ser::{Error as _, Serialize};
use serde_json::Error;

use super::{JsonWriter, ToJson, written};

/// How many bytes of compact JSON the value makes. Beyond `most` it stops: then the answer is more than `most`, and
/// at most what the value makes. Only text and numbers are looked at, nothing is kept. A panic of the value's `Serialize` is an
/// error like any other of it.
pub(crate) fn size_of(value: &(impl ToJson + ?Sized), most: usize) -> Result<usize, Error> {
    let mut writer = JsonWriter { count: Some(Count { bytes: 0, most }), ..JsonWriter::default() };
    let written = written(value, &mut writer);
    match writer.count {
        Some(Count { bytes, most }) if bytes > most => Ok(bytes),
        Some(Count { bytes, .. }) => written.map(|()| bytes),
        None => Err(Error::custom("nothing was counted")),
    }
}

/// What was counted so far: never more than the whole value makes.
#[derive(Debug)]
pub(super) struct Count {
    bytes: usize,
    most: usize,
}

impl Count {
    /// Punctuation, whose bytes are few: the next value notices if they were too many.
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The text of a scalar, or of a whole value.
    pub(super) fn text<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let mut length = Length(0);
        serde_json::to_writer(&mut length, value)?;
        self.add(length.0);
        self.check()
    }

    /// An error once the bound is passed, so that no more of the value is visited.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.bytes > self.most { Err(Error::custom("the value is too large")) } else { Ok(()) }
    }

    /// The name of a field, with its colon.
    pub(super) fn key(&mut self, name: &str) {
        let mut length = Length(0);
        // Text always has JSON.
        let _ = serde_json::to_writer(&mut length, name);
        self.add(length.0 + 1);
    }
}

/// Takes text and keeps its length.
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
