//! An error of users' code, read and dropped so that no panic of it goes further.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::panics::{Contained, Panicked, caught};

/// What a step failed with. Clones share it.
///
/// The library reads errors of users' types through this alone: what their `Display`, `Debug`, `source` or drop panics
/// with is text, or nothing, and never concerns a run.
#[derive(Clone)]
pub(super) struct Cause(Contained<Arc<dyn Error + Send + Sync>>);

impl Cause {
    pub(super) fn new(error: Arc<dyn Error + Send + Sync>) -> Self {
        Self(Contained::new(error))
    }

    /// The error itself, for users' code to read.
    pub(super) fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &**self.0
    }

    /// What it says caused it; nothing if it panics.
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

/// The text of a foreign error, and of those that caused it.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = Text(error).to_string();
    let mut cause = caught(|| error.source()).unwrap_or_default();
    // One that is its own cause has no end.
    for _ in 0..MOST_CAUSES {
        let Some(error) = cause else { break };
        text = format!("{text}: {}", Text(error));
        cause = caught(|| error.source()).unwrap_or_default();
    }
    text
}

/// How many causes of an error are named.
const MOST_CAUSES: usize = 32;

struct Text<'a>(&'a dyn Error);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        said(f, "Display", |f| fmt::Display::fmt(self.0, f))
    }
}

/// What the error says, or that it cannot: nobody who asks an error for its text reckons with a second failure.
fn said(
    f: &mut fmt::Formatter<'_>,
    how: &str,
    say: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    match caught(|| say(f)) {
        Ok(Ok(())) => Ok(()),
        // Where it is the text that cannot be written, this cannot either.
        Ok(Err(fmt::Error)) => write!(f, "the error's `{how}` failed"),
        Err(Panicked { message }) => write!(f, "the error's `{how}` panicked: {message}"),
    }
}
