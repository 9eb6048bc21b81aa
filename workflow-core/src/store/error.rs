//! Errors of stores, for their users and their implementors.

use std::error::Error;
use std::sync::Arc;

use super::Position;
use crate::error::chain;
use crate::id::RunId;

/// An error of a store's call.
///
/// ```
/// use workflow_core::store::{Position, StoreError};
///
/// let error = StoreError::Conflict { expected: Position(3), found: Position(5) };
/// assert_eq!(
///     error.to_string(),
///     "the journal ends at 5 and not at 3: another engine or process has written to the run",
/// );
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The journal ends elsewhere than expected. Nothing was changed.
    #[error(
        "the journal ends at {found} and not at {expected}: another engine or process has written to the run"
    )]
    Conflict {
        /// The expected end.
        expected: Position,
        /// The real end.
        found: Position,
    },
    /// The store cannot represent an event, or refuses a write of this size. Nothing was changed.
    #[error("the store refuses the write: {}", chain(&**source))]
    Unserialisable {
        /// The error of the type's own `Serialize`, or the store's error, with the size that it accepts.
        r#source: Arc<dyn Error + Send + Sync>,
    },
    /// The stored bytes of the run cannot be read.
    #[error(
        "the journal of run `{run}` cannot be read at position {position} (check the store, and restore a \
         copy of it if it is damaged)"
    )]
    Corrupt {
        /// The run.
        run: RunId,
        /// The first record that cannot be read.
        position: Position,
        /// The reason.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The run's journal has a format of a later release. The journal stays as it is.
    #[error(
        "the journal of run `{run}` has format {format} from record {position} on, and this program reads formats up to {known}: continue it with the program that wrote it, or a later one"
    )]
    NewerFormat {
        /// The run.
        run: RunId,
        /// The record that names the format.
        position: Position,
        /// The format.
        format: u32,
        /// The latest format that this program reads.
        known: u32,
    },
    /// The store cannot work now. The call may or may not have taken effect.
    #[error("the event store is unavailable")]
    Unavailable {
        /// The store's error.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The engine shut down before its store answered. The call may or may not have taken effect.
    #[error("the engine shut down before its store answered")]
    ShutDown,
    /// The engine was built without a store.
    #[error("the engine keeps no journals: give it a store with `.store(…)`")]
    NoStore,
    /// The run has not ended, so its journal and those of its parents must stay.
    #[error("run `{run}` has not ended: cancel it first")]
    InUse {
        /// The run.
        run: RunId,
    },
}

/// Two errors are equal if they are of one kind and have equal texts and causes.
impl PartialEq for StoreError {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && chain(self) == chain(other)
    }
}

impl Eq for StoreError {}

impl StoreError {
    /// Wraps the error of a store's backend.
    ///
    /// ```
    /// use std::error::Error;
    /// use workflow_core::store::StoreError;
    ///
    /// assert!(StoreError::unavailable(std::fmt::Error).source().is_some());
    /// ```
    pub fn unavailable(source: impl Error + Send + Sync + 'static) -> Self {
        Self::Unavailable { source: Arc::new(source) }
    }

    /// Wraps the error of a record's serialisation.
    pub fn unserialisable(source: impl Error + Send + Sync + 'static) -> Self {
        Self::Unserialisable { source: Arc::new(source) }
    }

    /// Wraps the reason why a record is unreadable.
    pub fn corrupt(run: &RunId, position: Position, source: impl Error + Send + Sync + 'static) -> Self {
        Self::Corrupt { run: run.clone(), position, source: Arc::new(source) }
    }
}
