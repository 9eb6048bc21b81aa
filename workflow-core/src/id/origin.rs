//! The origin of an act from outside: its author, and an id for repetitions (S62).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The most bytes of either part of an [`Origin`].
pub(crate) const MAX_ORIGIN_BYTES: usize = 256;

/// The author of an act from outside a run, and an id that shows repetitions.
///
/// [`RunOptions::origin`](crate::RunOptions::origin) gives one to a start, and [`AnyRun::with_origin`](crate::AnyRun::with_origin)
/// to events, replies and cancels. The journal has it, and reports show it. An act whose id the run's journal has changes
/// nothing and succeeds, so a client may repeat what it got no answer to. Each part has at most 256 bytes.
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
    /// Nobody, without an id.
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

    /// Sets the id of the act. No other act of the run may have it.
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
