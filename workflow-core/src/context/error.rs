//! Errors of contexts, for their users and for implementors of stores.

use std::error::Error;
use std::sync::Arc;

use crate::error::{UnfitValue, at};

/// An error of a context call.
///
/// ```
/// use workflow_core::errors::ContextError;
///
/// fn is_worth_repeating(error: &ContextError) -> bool {
///     matches!(error, ContextError::Unavailable { .. })
/// }
/// assert!(!is_worth_repeating(&ContextError::KeyTooLong { length: 2048, limit: 1024 }));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The key is too long. The store was not called.
    #[error("a context key of {length} bytes exceeds the limit of {limit}")]
    KeyTooLong {
        /// Length of the key in bytes.
        length: usize,
        /// The most bytes of a key.
        limit: usize,
    },
    /// The stored value cannot be read as the requested type.
    #[error("the context value `{key}` cannot be read as `{expected}`")]
    WrongType {
        /// The key of the value.
        key: Arc<str>,
        /// The requested type.
        expected: &'static str,
        /// The difference between value and type.
        source: Arc<serde_json::Error>,
    },
    /// The sum does not fit in an `i64`. The number is unchanged.
    #[error("adding {by} to the context value `{key}`, which is {value}, overflows")]
    Overflow {
        /// The key of the number.
        key: Arc<str>,
        /// The stored number.
        value: i64,
        /// The number to add.
        by: i64,
    },
    /// The store cannot represent the value. Nothing was changed.
    #[error("the context value `{key}` cannot be serialised")]
    Unserialisable {
        /// The key of the value.
        key: Arc<str>,
        /// The error of the type's own `Serialize`.
        source: Arc<serde_json::Error>,
    },
    /// The value has no JSON that could be read back, and the store serialises. Nothing was changed.
    #[error("the context value `{key}` cannot be stored: {}{problem}", at(path))]
    Unfit {
        /// The key of the value.
        key: Arc<str>,
        /// Where in the value, as in `lines[3].price`; empty for the whole.
        path: String,
        /// The problem at that place.
        problem: UnfitValue,
    },
    /// The store reports a successful update without its result, against its contract.
    #[error("the context store did not keep `{key}`")]
    NotKept {
        /// The key of the value.
        key: Arc<str>,
    },
    /// The engine has no store of contexts, since its store of journals hands out none.
    #[error("the engine stores no contexts: its `.store(…)` hands out none, and `.contexts(…)` is not set")]
    NoStore,
    /// The run has ended. Its steps are being stopped, and its context takes no more values.
    #[error("the run has ended, and its context with it")]
    RunEnded,
    /// The store cannot work now. The call may or may not have taken effect.
    #[error("the context store is unavailable")]
    Unavailable {
        /// The store's error.
        source: Arc<dyn Error + Send + Sync>,
    },
}

impl ContextError {
    /// Wraps the error of a store's backend.
    ///
    /// ```
    /// use std::error::Error;
    /// use workflow_core::errors::ContextError;
    ///
    /// let error = ContextError::unavailable(std::fmt::Error);
    /// assert!(error.source().is_some());
    /// ```
    pub fn unavailable(source: impl Error + Send + Sync + 'static) -> Self {
        Self::Unavailable { source: Arc::new(source) }
    }
}
