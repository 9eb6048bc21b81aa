//! Errors of steps, of values and of the library's own parts. Each boundary above has its own type in [`outcome`](crate::outcome)
//! or beside what it is the error of.

use std::error::Error;
use std::fmt;

mod branch;
mod cause;
mod size;
mod step;
mod unfit;

pub use branch::BranchFailure;
pub use size::EventTooLarge;
pub use step::{ErrorClass, StepError, TimedOut};
pub use unfit::{UnfitEvent, UnfitValue};

pub(crate) use cause::with_causes;
pub(crate) use unfit::text as unfit_text;

use cause::Cause;

/// An error that clones share.
#[derive(Clone)]
pub struct SharedError {
    error: Cause,
    /// Whether it is the error of a step's compaction.
    in_compaction: bool,
}

impl SharedError {
    pub(crate) fn of(error: &StepError) -> Self {
        Self { error: error.cause(), in_compaction: error.is_of_compaction() }
    }

    /// The error, if it is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.error.error().downcast_ref()
    }
}

impl fmt::Debug for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.in_compaction {
            f.write_str(step::COMPACTING)?;
        }
        fmt::Display::fmt(&self.error, f)
    }
}

impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// The number of attempts, if there was more than one.
pub(crate) fn after(attempts: u32) -> String {
    if attempts > 1 { format!(" after {attempts} attempts") } else { String::new() }
}

pub(crate) fn at(path: &str) -> String {
    if path.is_empty() || path == "." { String::new() } else { format!("at `{path}`, ") }
}

/// An error between the library's own parts: a bug of the library or of a hand-written `StepInput`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Internal {
    #[error("parameter {slot} was bound to something its type does not take")]
    SlotMismatch { slot: usize },
    #[error(
        "`Config<{type_name}>` is not among the parameters of any step: declare it, or use a field of the workflow"
    )]
    UndeclaredConfig { type_name: &'static str },
    #[error("the step returned `{event}`, which its table does not declare")]
    UndeclaredOutput { event: &'static str },
    #[error("a precondition runs no children: a step does")]
    ChildrenOfPrecondition,
}
