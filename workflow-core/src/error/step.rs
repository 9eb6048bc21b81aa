//! The error of a step: its class and its source.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// What kind of failure an error is; retry policies go by it (S35).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorClass {
    /// Would likely succeed later: a timeout, a lost connection.
    Transient,
    /// A tool that the step called reported an error.
    Tool,
    /// A model answered with something unusable.
    Model,
    /// The input does not fit a model's context.
    ContextLimit,
    /// Will fail again. The default of an error without a class.
    #[default]
    Permanent,
    /// Refused on purpose: by a person, a policy or a guard.
    Rejected,
}

impl ErrorClass {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Tool => "tool",
            Self::Model => "model",
            Self::ContextLimit => "context_limit",
            Self::Permanent => "permanent",
            Self::Rejected => "rejected",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why an execution failed: a class and the error itself.
///
/// Any [`std::error::Error`] converts with `?` and is then [`ErrorClass::Permanent`]; that is also why this
/// type does not implement `Error` itself. Clones share the source.
///
/// ```
/// use workflow_core::{ErrorClass, StepError};
///
/// fn parse(text: &str) -> Result<u32, StepError> {
///     Ok(text.parse::<u32>()?)
/// }
/// assert_eq!(parse("x").unwrap_err().class(), ErrorClass::Permanent);
/// assert_eq!(StepError::transient("the index is locked").to_string(), "the index is locked");
/// ```
#[derive(Clone)]
pub struct StepError {
    class: ErrorClass,
    source: Arc<dyn Error + Send + Sync>,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident $class:ident),+ $(,)?) => {
        $(
            $(#[$doc])*
            pub fn $name(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
                Self::new(ErrorClass::$class, error)
            }
        )+
    };
}

impl StepError {
    /// An error of the given class. A text is an error too.
    pub fn new(class: ErrorClass, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { class, source: Arc::from(error.into()) }
    }

    constructors! {
        /// Would likely succeed later.
        transient Transient,
        /// A tool reported an error.
        tool Tool,
        /// A model answered with something unusable.
        model Model,
        /// The input does not fit a model's context.
        context_limit ContextLimit,
        /// Will fail again.
        permanent Permanent,
        /// Refused on purpose.
        rejected Rejected,
    }

    /// What kind of failure it is.
    pub fn class(&self) -> ErrorClass {
        self.class
    }

    /// The error itself.
    pub fn source(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.source
    }

    /// The error itself, if it is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.source.downcast_ref()
    }

    pub(crate) fn shared_source(&self) -> Arc<dyn Error + Send + Sync> {
        Arc::clone(&self.source)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::new(ErrorClass::default(), error)
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl fmt::Debug for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepError").field("class", &self.class).field("source", &self.source).finish()
    }
}
