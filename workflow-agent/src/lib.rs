//! Agents on [`workflow_core`]: models with tools, as durable, typed workflows.
//!
//! ```
//! use workflow_agent::prelude::*;
//! use workflow_agent::model::{ScriptedModel, ScriptedReply};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::new([ScriptedReply::text("It is warm.")]);
//! let agent = Agent::builder("assistant").model(model).identity("You know the weather.").build()?;
//! assert_eq!(agent.ask("Warm in Bern?").await?.text, "It is warm.");
//! # Ok(())
//! # }
//! ```

mod mark;
mod secret;
pub mod tool;
pub mod model;
mod budget;
mod failures;
mod caller;
pub mod approval;
pub mod entry;
mod phase;
mod transcript;
mod compact;
pub mod judge;
pub mod memory;
mod session;
mod chat;
mod sub_agent;
mod entities;
mod agent;
mod flow;
mod run;
mod project;
#[cfg(feature = "providers")]
mod provider;
#[cfg(any(feature = "files", all(unix, feature = "bash"), feature = "fetch"))]
pub mod builtin;
#[cfg(feature = "mcp")]
mod mcp;
#[doc(hidden)]
pub mod __private;

pub use agent::{
    Agent, AgentBuildError, AgentBuilder, AgentError, AgentProblem, Answer, HostAgents, Outcome, Prompt,
};
pub use agent::{PromptError, StopReason, Stopped};
pub use approval::{Approval, ApproveTool, AskUser, Decision, OnRejection};
pub use budget::Budget;
pub use chat::ChatError;
pub use flow::Steer;
pub use judge::ModelJudge;
#[cfg(feature = "mcp")]
pub use mcp::{Mcp, McpError, McpServer};
pub use phase::{Conversation, Phase};
pub use project::{ApprovePlan, GoalError, Plan, PlanDecision, PlanError, PlanProblem, PlanTask, Strategy};
pub use project::{PendingPlan, ProjectRun, ProjectShown};
pub use project::{Project, ProjectBuildError, ProjectBuilder, ProjectGoal, ProjectProblem};
pub use project::{ProjectDone, ProjectError, ProjectFailed, ProjectFailure, ProjectOutcome};
pub use project::{TaskFailure, TaskResult, TaskState, TaskStatus};
#[cfg(feature = "providers")]
pub use provider::{Provider, ProviderError, ProviderModel};
pub use run::{AgentRun, AnswerError, PendingApproval, PendingQuestion, Piece, Shown};
pub use secret::Secret;
pub use session::{Session, SessionError, SessionExchange, WhenBusy};
pub use sub_agent::Aggregation;
pub use tool::terminal_safe;
pub use workflow_macros::{tool, tools};

/// Everything that programs with agents usually name: `use workflow_agent::prelude::*;`.
pub mod prelude {
    pub use futures_util::StreamExt as _;
    pub use workflow_core::Engine;
    pub use workflow_macros::{tool, tools};

    pub use crate::agent::{Agent, Answer, HostAgents as _, Outcome, Prompt, StopReason};
    pub use crate::approval::Approval;
    pub use crate::budget::Budget;
    pub use crate::phase::Phase;
    pub use crate::project::{Project, ProjectOutcome, ProjectRun, ProjectShown, Strategy};
    pub use crate::run::{AgentRun, Shown};
    pub use crate::secret::Secret;
    pub use crate::session::Session;
    pub use crate::tool::{ToolContext, ToolError, ToolOutput};
}

/// The page of the guide, compiled and run with the other examples of this crate.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../docs/guide/agents.md")]
    struct Agents;
}
