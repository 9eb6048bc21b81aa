//! An error of users' code, read and dropped so that its panics do not spread.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::panics::{Contained, Panicked, caught};

/// The error of a step. Clones share it.
///
/// The library reads errors of users' types only through this. A panic of their `Display`, `Debug`, `source` or drop
/// becomes text, or nothing, and affects no run.
#[derive(Clone)]
pub(super) struct Cause(Contained<Arc<dyn Error + Send + Sync>>);

impl Cause {
    pub(super) fn new(error: Arc<dyn Error + Send + Sync>) -> Self {
        Self(Contained::new(error))
    }

    /// The error itself, for users' code.
    pub(super) fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &**self.0
    }

    /// Its source; `None` if `source` panics.
    pub(super) fn source(&self) -> Option<&(dyn Error + 'static)> {
        caught(|| self.error().source()).unwrap_or_default()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        said(f, "Display", |f| fmt::Display::fmt(self.error(), f))
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        said(f, "Debug", |f| fmt::Debug::fmt(self.error(), f))
    }
}

/// The text of a foreign error and of its sources.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = Text(error).to_string();
    let mut cause = caught(|| error.source()).unwrap_or_default();
    // An error that is its own source would never end.
    for _ in 0..MOST_CAUSES {
        let Some(error) = cause else { break };
        text = format!("{text}: {}", Text(error));
        cause = caught(|| error.source()).unwrap_or_default();
    }
    text
}

/// The most sources in a text.
const MOST_CAUSES: usize = 32;

struct Text<'a>(&'a dyn Error);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        said(f, "Display", |f| fmt::Display::fmt(self.0, f))
    }
}

/// Writes the error's text, or a note that its text failed: formatting an error must not fail a second time.
fn said(
    f: &mut fmt::Formatter<'_>,
    how: &str,
    say: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    match caught(|| say(f)) {
        Ok(Ok(())) => Ok(()),
        // If the formatter itself failed, this fails too.
        Ok(Err(fmt::Error)) => write!(f, "the error's `{how}` failed"),
        Err(Panicked { message }) => write!(f, "the error's `{how}` panicked: {message}"),
    }
}
