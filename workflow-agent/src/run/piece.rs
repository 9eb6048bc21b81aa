//! A piece of a reply, with its place.

use std::fmt;
use std::ops::Deref;

use workflow_core::ExecutionId;

/// A piece of a reply's text or thoughts. It reads as its text.
///
/// A viewer keeps one text for each execution, and drops the text of an attempt that is retracted. Executions are
/// numbered in their order, so the last text of a run is that of its last reply.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use workflow_agent::Shown;
/// use workflow_core::ExecutionId;
///
/// fn take(replies: &mut BTreeMap<ExecutionId, String>, shown: &Shown) {
///     match shown {
///         Shown::Delta(piece) => replies.entry(piece.execution).or_default().push_str(piece),
///         Shown::Retracted { execution, .. } => drop(replies.remove(execution)),
///         _ => {}
///     }
/// }
/// # take(&mut BTreeMap::new(), &Shown::Missed(None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// The text.
    pub text: String,
    /// The execution of the model call: all pieces of a reply have the same one.
    pub execution: ExecutionId,
    /// The attempt of the execution.
    pub attempt: u32,
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Deref for Piece {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for Piece {
    fn as_ref(&self) -> &str {
        &self.text
    }
}
