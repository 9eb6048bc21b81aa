//! The origin of an act from outside: its author, and an id for repetitions (S62).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The most bytes of either part of an [`Origin`].
pub(crate) const MAX_ORIGIN_BYTES: usize = 256;

/// The author of an act from outside a run, and its idempotency id.
///
/// [`RunOptions::origin`](crate::RunOptions::origin) gives one to a start, and [`AnyRun::with_origin`](crate::AnyRun::with_origin)
/// to events, replies, cancels, pauses and unpauses. The journal has it, and reports show it. An act whose id the run's journal has changes
/// nothing and succeeds, so a client may repeat what it got no answer to. Ids are compared alone, without author and act: use a
/// UUID, or put the client's name in front. Each part has at most 256 bytes.
///
/// ```
/// use workflow_core::Origin;
///
/// let origin = Origin::new().by("ada@example.com").id("request-17");
/// assert_eq!(origin.to_string(), "ada@example.com (request-17)");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// The author: a person or a program, by any name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<str>>,
    /// The id of the act, unique among those of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
}

impl Origin {
    /// An origin without author and id: it marks and detects nothing.
    ///
    /// ```
    /// assert_eq!(workflow_core::Origin::new().to_string(), "unknown");
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the author of the act.
    pub fn by(self, by: impl Into<Arc<str>>) -> Self {
        Self { by: Some(by.into()), ..self }
    }

    /// Sets the idempotency id of the act. A second act of the run with the same id does nothing, also if it differs.
    pub fn id(self, id: impl Into<Arc<str>>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// The bytes of the longer part, if they are too many.
    pub(crate) fn excess(&self) -> Option<usize> {
        let parts = [&self.by, &self.id].into_iter().flatten();
        parts.map(|part| part.len()).max().filter(|bytes| *bytes > MAX_ORIGIN_BYTES)
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.by, &self.id) {
            (Some(by), Some(id)) => write!(f, "{by} ({id})"),
            (Some(part), None) | (None, Some(part)) => f.write_str(part),
            (None, None) => f.write_str("unknown"),
        }
    }
}
