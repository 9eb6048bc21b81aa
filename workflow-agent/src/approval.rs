//! Approvals of tool calls: the policy of a tool, the request that a person answers, and questions to people.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow_core::Event;

/// Which calls of a tool a person must approve before they run.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Approval {
    /// None. The default of your own tools.
    #[default]
    Never,
    /// All, unless the tool is read-only.
    Acts,
    /// All.
    Always,
    /// Those for whose arguments the function returns `true`. It must depend on the arguments alone.
    When(Arc<dyn Fn(&Value) -> bool + Send + Sync>),
}

impl Approval {
    /// Calls for whose arguments the function returns `true`. It must depend on the arguments alone.
    ///
    /// ```
    /// use workflow_agent::Approval;
    ///
    /// let above = Approval::when(|arguments| arguments["cents"].as_u64() > Some(1_000));
    /// # let _ = above;
    /// ```
    pub fn when(needed: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        Self::When(Arc::new(needed))
    }
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "Never",
            Self::Acts => "Acts",
            Self::Always => "Always",
            Self::When(_) => "When",
        })
    }
}

/// The consequences of a rejected or unanswered approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnRejection {
    /// The model receives the rejection as the result of its call, and continues.
    #[default]
    Continue,
    /// The run ends as `Stopped`, with [`StopReason::Failed`](crate::StopReason::Failed) of class `rejected`.
    Stop,
}

/// The request of an agent to run a tool: a person approves or rejects it, or changes the arguments.
///
/// A program with a handle answers through [`PendingApproval`](crate::PendingApproval); a front end without it replies
/// with the JSON of a [`Decision`] to the request `agent.approve_tool`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(request, reply = Decision, name = "agent.approve_tool")]
pub struct ApproveTool {
    /// The id of the call.
    pub call: Arc<str>,
    /// The name of the tool.
    pub tool: Arc<str>,
    /// The exact arguments.
    pub arguments: Value,
}

/// The answer to [`ApproveTool`].
///
/// ```
/// use workflow_agent::Decision;
///
/// let json = r#"{"decision": "reject", "reason": "too expensive"}"#;
/// assert_eq!(serde_json::from_str::<Decision>(json)?, Decision::Reject { reason: Some("too expensive".into()) });
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// The call runs.
    Approve,
    /// The call runs, and later calls of the same tool in this run need no approval.
    ApproveAll,
    /// The call does not run, and the model learns the reason.
    Reject {
        /// The reason for the model.
        #[serde(default)]
        reason: Option<String>,
    },
    /// The call runs with these arguments instead. Arguments that do not fit become the result of the call.
    Edit {
        /// All arguments, at most 256 KiB as JSON.
        arguments: Value,
    },
}

/// The question of an agent to a person, by its tool `ask_user`. The reply is the text of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(request, reply = String, name = "agent.ask_user")]
pub struct AskUser {
    /// The id of the call.
    pub call: Arc<str>,
    /// The question.
    pub question: String,
}
