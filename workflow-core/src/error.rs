//! Errors of steps, of values and of the library's own parts. Each boundary above has its own type in [`outcome`](crate::outcome)
//! or beside what it is the error of.

use std::error::Error;
use std::fmt;

mod branch;
mod cause;
mod chain;
mod excess;
mod size;
mod step;
mod unfit;

pub use branch::{BranchFailure, BranchItem};
pub use chain::chain;
pub use excess::Excess;
pub use size::EventTooLarge;
pub use step::{ErrorClass, InDoubt, Interrupted, StepError, TimedOut};
pub use unfit::{UnfitEvent, UnfitJson, UnfitValue};

pub(crate) use branch::WithFacts;
pub(crate) use unfit::text as unfit_text;

use crate::text::times;

use cause::Cause;
pub(crate) use cause::find_behind;

/// An error that clones share.
///
/// Its `Display` is that of the error alone, and its `source` the error's. [`chain`] has the text of all levels.
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

    /// The first `E` among the error and its sources. O(sources).
    ///
    /// `None` if there is none, or if the error is known only by its text: the run was resumed from its journal since.
    ///
    /// ```
    /// use std::io;
    /// use workflow_core::prelude::*;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(start)]
    /// # struct Read;
    /// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
    /// # #[event(stop)]
    /// # struct Text(String);
    /// # struct Reader;
    ///
    /// #[derive(Debug, thiserror::Error)]
    /// #[error("cannot read the page")]
    /// struct NoPage { source: io::Error }
    ///
    /// #[workflow]
    /// impl Reader {
    ///     #[step]
    ///     async fn read(&self, _read: &Read) -> Result<Text, NoPage> {
    ///         Err(NoPage { source: io::Error::other("the disk is gone") })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let error = Reader.run(Read).await.unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "step `read` failed (x1, permanent): cannot read the page: the disk is gone",
    /// );
    /// let RunError::StepFailed { source, .. } = error else { panic!() };
    /// assert_eq!(source.source_as::<io::Error>().unwrap().kind(), io::ErrorKind::Other);
    /// # }
    /// ```
    pub fn source_as<E: Error + 'static>(&self) -> Option<&E> {
        self.error.find()
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

/// The number of attempts of a failed execution, if there was more than one, and the item of its branch.
pub(crate) struct FailedIn<'a>(pub(crate) u32, pub(crate) Option<&'a BranchItem>);

impl fmt::Display for FailedIn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 1 {
            write!(f, " after {} attempts", self.0)?;
        }
        self.1.map_or(Ok(()), |item| write!(f, " in the branch of {item}"))
    }
}

pub(crate) fn at(path: &str) -> String {
    if path.is_empty() || path == "." { String::new() } else { format!("at `{path}`, ") }
}

fn how_often(least: usize, most: usize) -> String {
    match (least, most) {
        (1, 1) => "once".to_owned(),
        (0, most) => format!("at most {}", times(most as u64)),
        (least, usize::MAX) => format!("at least {}", times(least as u64)),
        (least, most) if least == most => times(least as u64),
        (least, most) => format!("{least} to {}", times(most as u64)),
    }
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
    UndeclaredOutput { event: Box<str> },
    #[error("the step emits `{event}` {}, and emitted {count}", how_often(*.least, *.most))]
    OutputCount { event: Box<str>, count: usize, least: usize, most: usize },
    #[error("the step does not declare that it uses a context: add `.uses_context()` to its `StepDef`")]
    UndeclaredContext,
    #[error("a precondition runs no children: a step does")]
    ChildrenOfPrecondition,
    #[error("no engine drives the run any more")]
    NoEngine,
}
