//! What can go wrong with context, for those who use it and for those who store it.

use std::error::Error;
use std::sync::Arc;

use crate::error::{UnfitValue, at};

/// A context call that did not do what was asked.
///
/// ```
/// use workflow_core::ContextError;
///
/// fn is_worth_repeating(error: &ContextError) -> bool {
///     matches!(error, ContextError::Unavailable { .. })
/// }
/// assert!(!is_worth_repeating(&ContextError::KeyTooLong { length: 2048, limit: 1024 }));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The key exceeds the bound; nothing was asked of the store.
    #[error("a context key of {length} bytes exceeds the limit of {limit}")]
    KeyTooLong {
        /// Length of the key in bytes.
        length: usize,
        /// The greatest length allowed.
        limit: usize,
    },
    /// The value that is there cannot be read as the type that was asked for.
    #[error("the context value `{key}` cannot be read as `{expected}`")]
    WrongType {
        /// The key of the value.
        key: Arc<str>,
        /// The type that was asked for.
        expected: &'static str,
        /// Where the value differs from the type.
        source: Arc<serde_json::Error>,
    },
    /// The result of an increment does not fit in an `i64`; the number is unchanged.
    #[error("adding {by} to the context value `{key}`, which is {value}, overflows")]
    Overflow {
        /// The key of the number.
        key: Arc<str>,
        /// The number that is there.
        value: i64,
        /// What should have been added.
        by: i64,
    },
    /// The value has no form that the store can keep; nothing was changed.
    #[error("the context value `{key}` cannot be serialised")]
    Unserialisable {
        /// The key of the value.
        key: Arc<str>,
        /// What the type's own `Serialize` reported.
        source: Arc<serde_json::Error>,
    },
    /// The value has no JSON that could be read back, and the store keeps values as such; nothing was changed.
    #[error("the context value `{key}` cannot be stored: {}{problem}", at(path))]
    Unfit {
        /// The key of the value.
        key: Arc<str>,
        /// Where in the value, as in `lines[3].price`; empty for the whole.
        path: String,
        /// What is wrong there.
        #[source]
        problem: UnfitValue,
    },
    /// The store says that an update succeeded, but has nothing to show for it: it breaks its contract.
    #[error("the context store did not keep `{key}`")]
    NotKept {
        /// The key of the value.
        key: Arc<str>,
    },
    /// The run has ended: its steps are being stopped and keep nothing any more.
    #[error("the run has ended, and its context with it")]
    RunEnded,
    /// The store cannot do its work now; whether the call took effect is unknown.
    #[error("the context store is unavailable")]
    Unavailable {
        /// What the store reported.
        source: Arc<dyn Error + Send + Sync>,
    },
}

impl ContextError {
    /// Wraps the error of a store's backend.
    ///
    /// ```
    /// use std::error::Error;
    /// use workflow_core::ContextError;
    ///
    /// let error = ContextError::unavailable(std::fmt::Error);
    /// assert!(error.source().is_some());
    /// ```
    pub fn unavailable(source: impl Error + Send + Sync + 'static) -> Self {
        Self::Unavailable { source: Arc::new(source) }
    }
}
