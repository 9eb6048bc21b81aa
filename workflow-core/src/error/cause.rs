//! An error of users' code: read and dropped so that its panics do not spread, and found by type in its chain.
//! The text of a chain is in [`chain`](super::chain).

use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::SharedError;
use super::chain::{MOST_SOURCES, source_of};
use crate::panics::{Contained, Panicked, caught};

/// The error of a step. Clones share it.
///
/// The library reads errors of users' types only through this. A panic of their `Display`, `Debug`, `source` or drop
/// becomes text, or nothing, and affects no run.
#[derive(Clone)]
pub(super) struct Cause(Contained<Arc<dyn Owner>>);

/// An owner of an error: a box, an `anyhow::Error`, a report of `eyre`.
trait Owner: Send + Sync {
    fn error(&self) -> &(dyn Error + Send + Sync + 'static);
}

impl<R> Owner for R
where
    R: Deref<Target = dyn Error + Send + Sync> + Send + Sync,
{
    fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &**self
    }
}

impl Cause {
    pub(super) fn new<R>(error: R) -> Self
    where
        R: Deref<Target = dyn Error + Send + Sync> + Send + Sync + 'static,
    {
        Self(Contained::new(Arc::new(error)))
    }

    /// The error itself, for users' code.
    pub(super) fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.0.error()
    }

    /// Its source; `None` if `source` panics.
    pub(super) fn source(&self) -> Option<&(dyn Error + 'static)> {
        source_of(self.error())
    }

    /// The first `E` among the error and its sources.
    pub(super) fn find<E: Error + 'static>(&self) -> Option<&E> {
        find(self.error())
    }
}

/// Returns the error behind one of this library which is no source of it, since its text has that of the error.
type Behind = for<'e> fn(&'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)>;

/// The answer for the errors of modules above this one.
static BEHIND: OnceLock<Behind> = OnceLock::new();

/// Sets how the errors behind errors are found. The first call counts.
pub(crate) fn find_behind(behind: Behind) {
    BEHIND.get_or_init(|| behind);
}

fn cause_of<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    source_of(error).or_else(|| BEHIND.get().and_then(|behind| behind(error)))
}

/// The first `E` among an error and its causes. Errors that clones share are looked into.
fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let causes = std::iter::successors(Some(error), |error| cause_of(*error));
    causes.take(MOST_SOURCES + 1).find_map(|level| {
        level
            .downcast_ref()
            .or_else(|| level.downcast_ref::<SharedError>().and_then(SharedError::downcast_ref))
    })
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

/// Writes the error's text, or a note that its text failed: formatting an error must not fail a second time.
pub(super) fn said(
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
