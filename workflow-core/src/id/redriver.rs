//! Who redrove a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::EngineId;

/// Who made a run continue after its end.
///
/// ```
/// use workflow_core::report::Redriver;
/// assert_eq!(Redriver::CommandLine.to_string(), "the command line");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Redriver {
    /// This engine, by [`Engine::redrive`](crate::Engine::redrive) or [`redrive_all`](crate::Engine::redrive_all).
    Engine(EngineId),
    /// A tool of the store, while no engine drove the run.
    CommandLine,
}

impl fmt::Display for Redriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(engine) => write!(f, "engine `{engine}`"),
            Self::CommandLine => f.write_str("the command line"),
        }
    }
}
