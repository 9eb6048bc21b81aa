//! Repetitions within one attempt of a node: an agent that runs again after failed checks, and a judge that is asked again. The
//! attempts of the executor are others, which the core makes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// An agent that ran again, or a judge that was asked again, in one attempt of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Again {
    /// Which of them.
    pub of: Repeated,
    /// Why: the checks that did not hold, or the failure of the judge. At most 500 characters.
    pub failure: Arc<str>,
    /// The place of the item, from 0, in a node with `for_each`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
}

/// A part of a node's work that is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repeated {
    /// The agent, since a check of `ensure` did not hold.
    Agent,
    /// A judge, since it failed or gave no verdict.
    Judge,
}

impl Again {
    pub(crate) fn agent(failure: &str) -> Self {
        Self { of: Repeated::Agent, failure: crate::node::reason(failure).into(), item: None }
    }

    pub(crate) fn judge(failure: &str) -> Self {
        Self { of: Repeated::Judge, failure: crate::node::reason(failure).into(), item: None }
    }
}

/// As a sentence has it: `the agent runs again: …`.
impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self.of {
            Repeated::Agent => "the agent runs again",
            Repeated::Judge => "a judge is asked again",
        };
        write!(f, "{said}: {}", self.failure)
    }
}
