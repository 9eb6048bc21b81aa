//! Checked serialisation: JSON that can be read back, or the reason why a value has none. The callers decide
//! which values need it.

use std::sync::Arc;

use serde::ser::{Error as _, Serialize};
use serde_json::{Error, Value};

use super::place::{self, Segment};
use super::{JsonWriter, Open, ToJson, VERBATIM, key_of};
use crate::error::{UnfitJson, UnfitValue};
use crate::panics::{Panicked, caught};

/// The most nested arrays and objects that can be read: `serde_json` fails at the 128th (`remaining_depth` in
/// its `de.rs`, without the feature `unbounded_depth`).
const READER_LEVELS: usize = 127;

/// The levels of a [`Record`](crate::store::Record) around an event or a configuration:
/// `{"event_logged": {…, "event": {…, "data": …}}}` and `{"run_started": {…, "configs": {"…": …}}}`.
const RECORD_LEVELS: usize = 3;

/// The levels that a store may put around a record.
const STORE_LEVELS: usize = 4;

/// The most nested arrays and objects in a value that a store serialises: 120.
///
/// The limit holds for events, configurations and context values.
///
/// `serde_json` reads at most 127 levels. A journal puts 3 levels around the value and leaves 4 to its store.
/// The engine refuses a deeper value before it writes anything
/// ([`UnfitValue::TooDeep`](crate::errors::UnfitValue::TooDeep)).
///
/// ```
/// assert_eq!(workflow_core::store::MAX_JSON_DEPTH, 120);
/// ```
pub const MAX_JSON_DEPTH: usize = READER_LEVELS - RECORD_LEVELS - STORE_LEVELS;

/// Why a value has no JSON that can be read back.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// A part of the value is unfit: its path, and the problem.
    Unfit { path: String, problem: UnfitValue },
    /// The value exceeds its limit of bytes. `bytes` is the count at which serialisation stopped.
    TooLarge { bytes: usize },
}

impl Misfit {
    /// The path and the problem, for a value without a limit of bytes.
    pub(crate) fn into_unfit(self) -> (String, UnfitValue) {
        match self {
            Self::Unfit { path, problem } => (path, problem),
            Self::TooLarge { .. } => (String::new(), serialize(Error::custom("the value is too large"))),
        }
    }
}

impl From<UnfitJson> for Misfit {
    fn from(UnfitJson { path, problem }: UnfitJson) -> Self {
        Self::Unfit { path, problem: UnfitValue::Read { problem } }
    }
}

/// The value as JSON that can be read back, with at most `most` bytes of text without punctuation. A panic of
/// the value's `Serialize` is a misfit too.
pub(crate) fn fit(value: &(impl ToJson + ?Sized), most: usize) -> Result<Value, Misfit> {
    let checks = Checks { bytes: 0, most, misfit: None };
    let mut writer = JsonWriter { checks: Some(Box::new(checks)), ..JsonWriter::default() };
    let written = caught(|| value.write(&mut writer));
    // A refusal stands even if the value's `Serialize` ignores the error.
    if let Some(misfit) = writer.checks.as_mut().and_then(|checks| checks.misfit.take()) {
        return Err(misfit);
    }
    let problem = match written {
        Ok(Ok(())) => match writer.done.take() {
            Some(done) => return Ok(done),
            None => serialize(Error::custom("it wrote nothing")),
        },
        Ok(Err(error)) => serialize(error),
        Err(Panicked { message }) => UnfitValue::Panicked { message },
    };
    Err(Misfit::Unfit { path: writer.path(), problem })
}

fn serialize(error: Error) -> UnfitValue {
    UnfitValue::Serialize { source: Arc::new(error) }
}

/// The state of a writer that refuses values.
#[derive(Debug)]
pub(super) struct Checks {
    /// The bytes so far: at most those of the text.
    bytes: usize,
    most: usize,
    /// The first refusal.
    misfit: Option<Misfit>,
}

impl JsonWriter {
    pub(super) fn check_finite(&mut self, is_finite: bool) -> Result<(), Error> {
        if is_finite || self.checks.is_none() { Ok(()) } else { Err(self.refused(UnfitValue::NotFinite)) }
    }

    /// Checks a number of levels before they exist.
    pub(super) fn check_depth(&mut self, levels: usize) -> Result<(), Error> {
        if levels <= MAX_JSON_DEPTH || self.checks.is_none() {
            return Ok(());
        }
        Err(self.refused(UnfitValue::TooDeep { limit: MAX_JSON_DEPTH }))
    }

    /// Adds a value, or a list or object that was closed.
    pub(super) fn note_size(&mut self, value: &Value) -> Result<(), Error> {
        self.note_bytes(if let Value::String(text) = value { text.len() + 2 } else { 1 })
    }

    fn note_bytes(&mut self, more: usize) -> Result<(), Error> {
        let Some(checks) = &mut self.checks else { return Ok(()) };
        checks.bytes = checks.bytes.saturating_add(more);
        if checks.bytes <= checks.most {
            return Ok(());
        }
        checks.misfit.get_or_insert(Misfit::TooLarge { bytes: checks.bytes });
        Err(Error::custom("the value is too large"))
    }

    /// The text of a map's key.
    pub(super) fn key_text<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<String, Error> {
        let left = self.checks.as_ref().map(|checks| checks.most.saturating_sub(checks.bytes));
        let checks = left.map(|most| Box::new(Checks { bytes: 0, most, misfit: None }));
        let mut writer = Self { checks, ..Self::default() };
        let written = key.serialize(&mut writer);
        match writer.checks.and_then(|checks| checks.misfit) {
            Some(Misfit::Unfit { problem, .. }) => return Err(self.refused(problem)),
            Some(Misfit::TooLarge { bytes }) => self.note_bytes(bytes)?,
            None => written?,
        }
        let text = writer.done.and_then(key_of).ok_or_else(|| self.refused(UnfitValue::Key))?;
        if self.checks.is_some() && VERBATIM.contains(&&*text) {
            return Err(self.refused(UnfitValue::ReservedKey { key: text }));
        }
        self.note_bytes(text.len() + 2)?;
        Ok(text)
    }

    /// Records a refusal and returns its error.
    pub(super) fn refused(&mut self, problem: UnfitValue) -> Error {
        let error = Error::custom(&problem);
        if self.checks.as_ref().is_some_and(|checks| checks.misfit.is_none()) {
            let misfit = Misfit::Unfit { path: self.path(), problem };
            if let Some(checks) = &mut self.checks {
                checks.misfit = Some(misfit);
            }
        }
        error
    }

    /// The path of the value being written, as in `lines[3].price`; empty for the whole value.
    fn path(&self) -> String {
        place::path(self.open.iter().map(|open| match open {
            Open::List(values) => Segment::Index(values.len()),
            Open::Object { key, .. } => Segment::Key(key),
            Open::Verbatim | Open::Counted(_) => Segment::Key(""),
        }))
    }
}

#[cfg(test)]
mod tests;
