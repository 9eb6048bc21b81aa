//! What is said of a value that a store could not give back.

use std::sync::Arc;

use super::at;

/// Why a value cannot be kept as JSON and read back as the value that it is.
///
/// It is in [`StartError::Unfit`](crate::StartError::Unfit), [`SendError::Unfit`](crate::SendError::Unfit),
/// [`ConfigError::Unfit`](crate::ConfigError::Unfit),
/// [`ContextError::Unfit`](crate::ContextError::Unfit), and in the [`UnfitEvent`] that an execution fails with.
///
/// ```
/// use workflow_core::{SendError, UnfitValue};
///
/// fn is_not_finite(error: &SendError) -> bool {
///     matches!(error, SendError::Unfit { problem: UnfitValue::NotFinite, .. })
/// }
/// # let ended = SendError::Unfit { event: "Priced", path: "price".into(), problem: UnfitValue::NotFinite };
/// # assert!(is_not_finite(&ended));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitValue {
    /// A number is NaN or infinite. JSON has `null` for both, which is read back as something else or not at all.
    #[error("the number is NaN or infinite, and JSON has neither: use an `Option`, an enum or a text for it")]
    NotFinite,
    /// An integer is beyond those of JSON as `serde_json` reads it.
    #[error("the integer fits neither in an `i64` nor in a `u64`: serialise it as a text")]
    OutOfRange,
    /// More arrays and objects stand around each other than can be read back: see
    /// [`MAX_JSON_DEPTH`](crate::MAX_JSON_DEPTH).
    #[error(
        "the JSON nests deeper than {limit} levels, which is the most that can be read back: flatten the value, or serialise the inner part as a text"
    )]
    TooDeep {
        /// How many levels there may be.
        limit: usize,
    },
    /// The key of a map is neither a text, a number nor a bool.
    #[error("a key in JSON is a text, a number or a bool: use one of these, or a list of pairs")]
    Key,
    /// Two entries of one map or struct have one key in JSON, and different values: one of them would be lost.
    #[error("two values have the key `{key}`: rename one of them")]
    KeyTwice {
        /// The key.
        key: String,
    },
    /// The type's own `Serialize` returned an error.
    #[error("its `Serialize` failed: {source}")]
    Serialize {
        /// What it returned.
        source: Arc<serde_json::Error>,
    },
    /// The type's own `Serialize` panicked.
    #[error("its `Serialize` panicked: {message}")]
    Panicked {
        /// The text of the panic.
        message: String,
    },
}

/// Two errors of `Serialize` are equal if they say the same.
impl PartialEq for UnfitValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TooDeep { limit: one }, Self::TooDeep { limit: other }) => one == other,
            (Self::KeyTwice { key: one }, Self::KeyTwice { key: other })
            | (Self::Panicked { message: one }, Self::Panicked { message: other }) => one == other,
            (Self::Serialize { source: one }, Self::Serialize { source: other }) => {
                one.to_string() == other.to_string()
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Eq for UnfitValue {}

/// An event has no JSON that could be read back, and the engine's store keeps events as JSON.
///
/// An execution that emits such an event fails with it: of class [`Permanent`](crate::ErrorClass::Permanent), and like any
/// other failure it can be caught. What else the execution emitted does not enter the log either. For what comes
/// from outside, the same facts are in [`SendError::Unfit`](crate::SendError::Unfit) and
/// [`StartError::Unfit`](crate::StartError::Unfit).
///
/// A [`MemoryStore`](crate::MemoryStore) and an engine without a store keep the values themselves, and take any.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", text(event, path, problem))]
#[non_exhaustive]
pub struct UnfitEvent {
    /// The event's wire name.
    pub event: &'static str,
    /// Where in the event's JSON, as in `lines[3].price`; empty for the whole.
    pub path: String,
    /// What is wrong there.
    #[source]
    pub problem: UnfitValue,
}

/// What all of these errors say.
pub(super) fn text(event: &str, path: &str, problem: &UnfitValue) -> String {
    format!("`{event}` cannot be stored: {}{problem}", at(path))
}
