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
//!
//! | for | begin with |
//! |---|---|
//! | an agent, and one question | [`Agent::builder`], [`AgentBuilder`], [`Agent::ask`], [`Agent::ask_for`] |
//! | agents in an engine | [`HostAgents::agent`], [`Agent::start`], [`Prompt`], [`Outcome`] |
//! | a stream of everything that people see | [`AgentRun`], [`Shown`] |
//! | conversations, one after another | [`Session`]; as values, [`Conversation`] |
//! | memory across conversations | [`memory`]: [`EpisodicMemory`](memory::EpisodicMemory) |
//! | tools | [`tool`](macro@tool), [`tools`](macro@tools), [`tool`](mod@tool): [`FnTool`](tool::FnTool), [`Tool`](tool::Tool) |
//! | people: approvals and questions | [`approval`]: [`Approval`], [`Decision`]; [`PendingApproval`], [`PendingQuestion`] |
//! | models | `Provider`; [`model`]: [`Model`](model::Model), [`Fallback`](model::Fallback), [`ScriptedModel`](model::ScriptedModel) for tests |
//! | phases and checks of answers | [`Phase`], [`judge`]: [`Judge`](judge::Judge), [`ModelJudge`] |
//! | agents that start agents | [`AgentBuilder::sub_agent`], [`Aggregation`]; with a plan, [`Project`] |
//! | limits, secrets | [`Budget`], [`Secret`] |
//! | the log of a run | [`entry`] |
//!
//! | feature | adds |
//! |---|---|
//! | `providers` (default) | `Provider`: OpenAI, Anthropic, Gemini, Ollama, and servers with their interfaces |
//! | `genai` | to `Provider`, the providers that the crate `genai` knows beyond those |
//! | `mcp` | `Mcp`: the tools of MCP servers |
//! | `files`, `bash`, `fetch` | the tools of the module `builtin`; `bash` on Unix |
//! | `graph` | `GraphAgents`: agents as the nodes of documents of `workflow-graph` |

mod mark;
mod secret;
pub mod tool;
pub mod model;
mod budget;
mod failures;
mod written;
mod caller;
pub mod approval;
pub mod entry;
mod phase;
mod transcript;
mod compact;
pub mod judge;
pub mod memory;
mod session;
mod chain;
mod chat;
mod sub_agent;
mod entities;
mod agent;
mod flow;
mod run;
mod project;
#[cfg(feature = "graph")]
mod graph;
#[cfg(feature = "providers")]
mod provider;
#[cfg(any(feature = "files", all(unix, feature = "bash"), feature = "fetch"))]
pub mod builtin;
#[cfg(feature = "mcp")]
mod mcp;
#[doc(hidden)]
pub mod __private;

pub use agent::{
    Agent, AgentBuildError, AgentBuilder, AgentError, AgentProblem, Answer, DataError, HostAgents, Outcome,
};
pub use agent::{Prompt, PromptError, StopReason, Stopped};
pub use approval::{Approval, ApproveTool, AskUser, Decision, OnRejection};
pub use budget::Budget;
pub use chat::ChatError;
pub use flow::Steer;
#[cfg(feature = "graph")]
pub use graph::GraphAgents;
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
pub use secret::{Secret, SecretError};
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
    pub use crate::approval::{Approval, ApproveTool, AskUser, Decision, OnRejection};
    pub use crate::budget::Budget;
    pub use crate::judge::ModelJudge;
    pub use crate::memory::EpisodicMemory;
    pub use crate::phase::Phase;
    pub use crate::project::{Project, ProjectOutcome, ProjectRun, ProjectShown, Strategy};
    #[cfg(feature = "providers")]
    pub use crate::provider::Provider;
    pub use crate::run::{AgentRun, PendingApproval, PendingQuestion, Shown};
    pub use crate::secret::Secret;
    pub use crate::session::{Session, WhenBusy};
    pub use crate::sub_agent::Aggregation;
    pub use crate::tool::{ToolContext, ToolError, ToolOutput, terminal_safe};
}

/// The page of the guide and the examples of the macros, compiled and run with the other examples of this crate.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../docs/guide/agents.md")]
    struct Agents;

    #[doc = include_str!("../../workflow-macros/docs/tool.md")]
    struct Tool;

    #[doc = include_str!("../../workflow-macros/docs/tools.md")]
    struct Tools;
}
