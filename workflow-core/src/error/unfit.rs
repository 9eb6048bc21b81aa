//! Errors of values that a serialising store could not return unchanged.

use std::fmt;
use std::sync::Arc;

use super::at;
use crate::text::bounded;

/// Why a value does not survive JSON, or JSON from outside is no value.
///
/// It is in [`StartError::Unfit`](crate::StartError::Unfit), [`SendError::Unfit`](crate::SendError::Unfit),
/// [`ConfigError::Unfit`](crate::errors::ConfigError::Unfit), [`ContextError::Unfit`](crate::errors::ContextError::Unfit), and in the
/// [`UnfitEvent`] of a failed execution.
///
/// ```
/// use workflow_core::SendError;
/// use workflow_core::errors::UnfitValue;
///
/// fn is_not_finite(error: &SendError) -> bool {
///     matches!(error, SendError::Unfit { problem: UnfitValue::NotFinite, .. })
/// }
/// # let ended = SendError::Unfit { event: "Priced".into(), path: "price".into(), problem: UnfitValue::NotFinite };
/// # assert!(is_not_finite(&ended));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitValue {
    /// A number is NaN or infinite. JSON has `null` for both, which is read back as another value or not at all.
    #[error("the number is NaN or infinite, and JSON has neither: use an `Option`, an enum or a text for it")]
    NotFinite,
    /// An integer is out of the range that `serde_json` reads.
    #[error("the integer fits neither in an `i64` nor in a `u64`: serialise it as a text")]
    OutOfRange,
    /// A number in text that is JSON already, such as a `RawValue`, has a fraction or an exponent, and its value is none of
    /// an `f64`: another number would be read back.
    #[error(
        "an `f64` does not have the number exactly as it is written: write fewer digits, or serialise it as a text"
    )]
    Imprecise,
    /// Arrays and objects are nested too deeply to be read back: see [`MAX_JSON_DEPTH`](crate::store::MAX_JSON_DEPTH).
    #[error(
        "the JSON nests deeper than {limit} levels, which is the most that can be read back: flatten the value, or serialise the inner part as a text"
    )]
    TooDeep {
        /// The most levels.
        limit: usize,
    },
    /// The key of a map is neither a text, a number nor a bool.
    #[error("a key in JSON is a text, a number or a bool: use one of these, or a list of pairs")]
    Key,
    /// Two entries of one map or struct have the same key in JSON, and different values: one would be lost.
    #[error("two values have the key `{key}`: rename one of them")]
    KeyTwice {
        /// The key.
        key: String,
    },
    /// An object has a key that `serde_json` keeps for itself, and would not read back as what it is.
    #[error("the key `{key}` is reserved by `serde_json`: rename it")]
    ReservedKey {
        /// The key.
        key: String,
    },
    /// The type's own `Serialize` returned an error.
    #[error("its `Serialize` failed: {source}")]
    Serialize {
        /// Its error.
        r#source: Arc<serde_json::Error>,
    },
    /// The type's own `Serialize` panicked.
    #[error("its `Serialize` panicked: {message}")]
    Panicked {
        /// The text of the panic.
        message: String,
    },
    /// The type's own `Deserialize` refuses the JSON that its `Serialize` wrote, or panics on it.
    ///
    /// serde reads the content of tagged, untagged and flattened types in two passes, and the second one knows no `i128`,
    /// no `u128`, and no key that is a number. A field that `skip_serializing_if` leaves out needs `#[serde(default)]`.
    #[error("its `Deserialize` refuses what its `Serialize` wrote: {problem}")]
    NotReadBack {
        /// The text of its error.
        problem: String,
    },
    /// JSON from outside does not fit the type: its `Deserialize` refused it.
    #[error("{problem}")]
    Read {
        /// The text of its error.
        problem: String,
    },
}

/// Two errors of `Serialize` are equal if their texts are.
impl PartialEq for UnfitValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TooDeep { limit: one }, Self::TooDeep { limit: other }) => one == other,
            (Self::KeyTwice { key: one }, Self::KeyTwice { key: other })
            | (Self::ReservedKey { key: one }, Self::ReservedKey { key: other })
            | (Self::Panicked { message: one }, Self::Panicked { message: other })
            | (Self::NotReadBack { problem: one }, Self::NotReadBack { problem: other })
            | (Self::Read { problem: one }, Self::Read { problem: other }) => one == other,
            (Self::Serialize { source: one }, Self::Serialize { source: other }) => {
                one.to_string() == other.to_string()
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Eq for UnfitValue {}

/// An event has no JSON that could be read back, and the engine's store serialises.
///
/// An execution that emits such an event fails with this error, of class [`Permanent`](crate::ErrorClass::Permanent).
/// Steps can catch it like any other failure. The execution's other events do not enter the log either. For events from
/// outside, [`SendError::Unfit`](crate::SendError::Unfit) and [`StartError::Unfit`](crate::StartError::Unfit) have the
/// same facts.
///
/// A [`MemoryStore`](crate::store::MemoryStore), and an engine without a store, accept any value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", text(event, path, problem))]
#[non_exhaustive]
pub struct UnfitEvent {
    /// The event's wire name.
    pub event: Arc<str>,
    /// Where in the event's JSON, as in `lines[3].price`; empty for the whole.
    pub path: String,
    /// The problem at that place.
    pub problem: UnfitValue,
}

/// JSON does not fit what is asked for. [`Steps::accept`](crate::Steps::accept) returns it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", at(path))]
#[non_exhaustive]
pub struct UnfitJson {
    /// The place in the JSON, as in `lines[3].price`; empty for the whole.
    pub path: String,
    /// The problem at that place.
    pub problem: String,
}

impl UnfitJson {
    /// The problem at this place, as in `lines[3].price`; at the empty place it is one of the whole.
    ///
    /// ```
    /// use workflow_core::UnfitJson;
    ///
    /// let unfit = UnfitJson::new("lines[3]", "a line has a price");
    /// assert_eq!(unfit.to_string(), "at `lines[3]`, a line has a price");
    /// ```
    pub fn new(path: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self { path: path.into(), problem: bounded(problem.to_string()) }
    }

    pub(crate) fn whole(problem: impl fmt::Display) -> Self {
        Self::new("", problem)
    }
}

/// The common text of these errors.
pub(crate) fn text(event: &str, path: &str, problem: &UnfitValue) -> String {
    let verb = if matches!(problem, UnfitValue::Read { .. }) { "read" } else { "stored" };
    format!("`{event}` cannot be {verb}: {}{problem}", at(path))
}
