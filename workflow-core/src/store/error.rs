//! What can go wrong with a store, for those who use it and for those who write it.

use std::error::Error;
use std::sync::Arc;

use super::Position;
use crate::error::with_causes;
use crate::id::RunId;

/// A store's call that did not do what was asked.
///
/// ```
/// use workflow_core::{Position, StoreError};
///
/// let error = StoreError::Conflict { expected: Position(3), found: Position(5) };
/// assert_eq!(
///     error.to_string(),
///     "the journal ends at 5 and not at 3: somebody else has written to the run",
/// );
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The journal does not end where it was expected to; nothing was changed.
    #[error("the journal ends at {found} and not at {expected}: somebody else has written to the run")]
    Conflict {
        /// Where it was expected to end.
        expected: Position,
        /// Where it ends.
        found: Position,
    },
    /// An event has no form that the store can keep, or the batch is larger than the store takes at once; nothing was
    /// changed.
    #[error("the store refuses what it was given: {source}")]
    Unserialisable {
        /// What the type's own `Serialize` reported, or the store's own error, which says how large the batch may be.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// What the store has of the run cannot be read.
    #[error("the journal of run `{run}` cannot be read at position {position}")]
    Corrupt {
        /// The run.
        run: RunId,
        /// The first record that cannot be read.
        position: Position,
        /// What is wrong with it.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The run's journal has a later format than this program reads: it was written by a program with a later release of
    /// this library. It is left as it is.
    #[error(
        "the journal of run `{run}` has format {format} from record {position} on, and this program reads formats up to {known}: go on with it by the program that wrote it, or a later one"
    )]
    NewerFormat {
        /// The run.
        run: RunId,
        /// The record that says so.
        position: Position,
        /// The format.
        format: u32,
        /// The latest format that this program reads.
        known: u32,
    },
    /// The store cannot do its work now; whether the call took effect is unknown.
    #[error("the event store is unavailable")]
    Unavailable {
        /// What the store reported.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The engine shut down before its store answered; whether the call took effect is unknown.
    #[error("the engine shut down before its store answered")]
    ShutDown,
    /// The engine was built without a store.
    #[error("the engine keeps no journals: give it a store with `.store(…)`")]
    NoStore,
    /// The run has not ended, so that its journal must stay, and with it those of the runs that it is a child of.
    #[error("run `{run}` has not ended: cancel it first")]
    InUse {
        /// The run.
        run: RunId,
    },
}

/// Two errors are equal if they are of one kind and say the same, with what caused them.
impl PartialEq for StoreError {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && with_causes(self) == with_causes(other)
    }
}

impl Eq for StoreError {}

impl StoreError {
    /// Wraps the error of a store's backend.
    ///
    /// ```
    /// use std::error::Error;
    /// use workflow_core::StoreError;
    ///
    /// assert!(StoreError::unavailable(std::fmt::Error).source().is_some());
    /// ```
    pub fn unavailable(source: impl Error + Send + Sync + 'static) -> Self {
        Self::Unavailable { source: Arc::new(source) }
    }

    /// Wraps what a record's serialisation reported.
    pub fn unserialisable(source: impl Error + Send + Sync + 'static) -> Self {
        Self::Unserialisable { source: Arc::new(source) }
    }

    /// Wraps what makes a record unreadable.
    pub fn corrupt(run: &RunId, position: Position, source: impl Error + Send + Sync + 'static) -> Self {
        Self::Corrupt { run: run.clone(), position, source: Arc::new(source) }
    }
}
