//! The ids of runs, threads, engines, executions, timers, scopes and events in a log, and their text forms. Other
//! modules assign them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

mod links;
mod origin;
mod pause;
mod redriver;
mod status;
mod time_ordered;
mod trace_parent;

pub use links::{ChildRun, ParentRun};
pub(crate) use origin::MAX_ORIGIN_BYTES;
pub use origin::Origin;
pub use pause::Pause;
pub use redriver::Redriver;
pub use status::RunStatus;
pub use trace_parent::{InvalidTraceParent, TraceParent};

/// The id of one run, unique in an engine: any text, or a time-ordered UUID by default.
///
/// ```
/// use workflow_core::RunId;
/// assert_eq!(RunId::new("order-17").as_str(), "order-17");
/// assert_ne!(RunId::generate(), RunId::generate());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(Arc<str>);

/// The id of a thread. The runs of one conversation, user or case share it, and with it a
/// [`ThreadContext`](crate::ThreadContext).
///
/// ```
/// use workflow_core::ThreadId;
/// assert_eq!(ThreadId::new("user-4").to_string(), "user-4");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThreadId(Arc<str>);

/// The id of one engine among those that share a store. It lasts from `build` to drop, so a restart has another one.
///
/// ```
/// use workflow_core::Engine;
/// use workflow_core::store::EngineId;
/// let engine = Engine::builder().build()?;
/// assert_ne!(engine.id(), &EngineId::generate());
/// # Ok::<(), workflow_core::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EngineId(Arc<str>);

macro_rules! text_id {
    ($name:ident) => {
        impl $name {
            /// Takes the text unchanged.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// A new id: a UUID of version 7, which sorts by creation time.
            pub fn generate() -> Self {
                let mut text = uuid::Uuid::encode_buffer();
                Self((&*time_ordered::time_ordered().hyphenated().encode_lower(&mut text)).into())
            }

            /// The text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<&$name> for $name {
            fn from(id: &$name) -> Self {
                id.clone()
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::new(text)
            }
        }
    };
}

text_id!(RunId);
text_id!(ThreadId);
text_id!(EngineId);

/// The sequence number of an event in its run's log: 1, 2, 3… Order always means `Seq`, never a clock.
///
/// Transcripts, reports and errors print it as `#4`: the fourth event of the log.
///
/// ```
/// use workflow_core::Seq;
/// assert_eq!(Seq(4).to_string(), "#4");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// One execution of one step, numbered in order of creation by the run's scheduler. All attempts of an execution share
/// it.
///
/// Transcripts, reports and errors print it as `x3`: the third execution of the run. In the ids of
/// [child runs](crate::Children#ids) `x3.a2` is its second attempt.
///
/// ```
/// use workflow_core::ExecutionId;
/// assert_eq!(ExecutionId(3).to_string(), "x3");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExecutionId(pub u64);

/// A scope of a run's scope tree. [`ScopeId::ROOT`] is the run itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScopeId(pub u32);

/// One timer of a run, numbered in order of setting. The expiry of a request is a timer too.
///
/// ```
/// use workflow_core::report::TimerId;
/// assert_eq!(TimerId(1).to_string(), "t1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimerId(pub u64);

impl ScopeId {
    /// The scope in which every run begins.
    pub const ROOT: Self = Self(0);
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

impl fmt::Display for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

impl fmt::Display for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scope {}", self.0)
    }
}
