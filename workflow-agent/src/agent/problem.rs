//! Mistakes of an agent's parts, all at once.

use std::fmt;
use std::sync::Arc;

/// Every mistake of an agent that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentBuildError {
    /// The name of the agent.
    pub agent: Arc<str>,
    /// The mistakes, at least one.
    pub problems: Vec<AgentProblem>,
}

impl fmt::Display for AgentBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent `{}` cannot be built:", self.agent)?;
        match &self.problems[..] {
            [problem] => write!(f, " {problem}"),
            problems => problems.iter().try_for_each(|problem| write!(f, "\n- {problem}")),
        }
    }
}

impl std::error::Error for AgentBuildError {}

/// A mistake of an agent's parts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentProblem {
    /// There is no model.
    #[error("it has no model: call `model`")]
    NoModel,
    /// The name of the agent is empty, or has characters that paths of runs use.
    #[error("the name `{name}` is not valid: use letters, digits, `_`, `-` and `.`")]
    Name {
        /// The name.
        name: String,
    },
    /// A provider would refuse the name of a tool.
    #[error("the tool name `{name}` is not valid: use 1 to 64 letters, digits, `_` and `-`")]
    ToolName {
        /// The name.
        name: String,
    },
    /// Two tools have one name.
    #[error(
        "two tools are called `{name}`: rename one with `#[tool(name = \"…\")]`, or with `ToolSpec::renamed`"
    )]
    DuplicateTool {
        /// The name.
        name: String,
    },
    /// The agent itself offers a tool of this name.
    #[error("the tool name `{name}` is reserved: rename the tool")]
    ReservedTool {
        /// The name.
        name: String,
    },
    /// There are too many tools.
    #[error("it has {tools} tools, and {limit} at most are allowed: choose some with `allow`")]
    TooManyTools {
        /// Their number.
        tools: usize,
        /// The bound.
        limit: usize,
    },
    /// The schema of a tool's arguments is no JSON schema of an object.
    #[error("the schema of tool `{tool}` is not valid: {problem}")]
    Schema {
        /// The name of the tool.
        tool: String,
        /// The problem.
        problem: String,
    },
    /// A tool's calls have no time, so each of them would fail.
    #[error("the calls of tool `{tool}` may take no time: give `timeout` more than 0")]
    NoTimeForTool {
        /// The name of the tool.
        tool: String,
    },
    /// Approvals and questions expire before a person can answer.
    #[error("people have no time to answer: give `approval_expires` more than 0")]
    NoTimeForPeople,
    /// `allow`, `deny` or a phase names a tool that does not exist.
    #[error("`{list}` names the tool `{name}`, which does not exist; there are: {known}")]
    UnknownTool {
        /// The list that names it.
        list: String,
        /// The name.
        name: String,
        /// The names of the tools.
        known: String,
    },
    /// Two phases have one name.
    #[error("two phases are called `{name}`: rename one")]
    DuplicatePhase {
        /// The name.
        name: String,
    },
    /// The schema of a phase's answer is no JSON schema.
    #[error("the output schema of phase `{phase}` is not valid: {problem}")]
    PhaseOutput {
        /// The phase.
        phase: String,
        /// The problem.
        problem: String,
    },
    /// Two sub-agents have one name.
    #[error("two sub-agents are called `{name}`: rename one")]
    DuplicateSubAgent {
        /// The name.
        name: String,
    },
    /// The model chooses among sub-agents by their descriptions: the first lines of their identities, or of their narratives.
    #[error(
        "its sub-agent `{name}` has neither identity nor narrative: the model knows a sub-agent by the first line of one; call \
         `identity` on the sub-agent"
    )]
    SubAgentWithoutIdentity {
        /// The name of the sub-agent.
        name: String,
    },
    /// There are too many sub-agents.
    #[error("it has {agents} sub-agents, and {limit} at most are allowed")]
    TooManySubAgents {
        /// Their number.
        agents: usize,
        /// The bound.
        limit: usize,
    },
    /// Sub-agents nest too deep.
    #[error("sub-agents nest {depth} levels deep, and {limit} at most are allowed: nest less")]
    TooDeep {
        /// The levels.
        depth: usize,
        /// The bound.
        limit: usize,
    },
    /// A budget in money needs the price of the model.
    #[error(
        "its budget limits the cost, and the model `{model}` has no price: set it with `Provider::price`, or in the `ModelLimits` of your own model"
    )]
    NoPrice {
        /// The name of the model.
        model: String,
    },
    /// A budget in money needs the price of each sub-agent's model.
    #[error(
        "its budget limits the cost, and the model of its sub-agent `{agent}` has no price: set it with `Provider::price`, or in the `ModelLimits` of your own model"
    )]
    NoSubAgentPrice {
        /// The name of the sub-agent.
        agent: String,
    },
    /// A secret is too short to be replaced without replacing ordinary text.
    #[error(
        "the value of secret `{name}` is shorter than {shortest} bytes, so it would replace ordinary text"
    )]
    ShortSecret {
        /// The name of the secret.
        name: String,
        /// The bound.
        shortest: usize,
    },
    /// The agent may make no model call.
    #[error("`max_turns` is 0: a run needs at least one model call")]
    NoTurns,
    /// Two turns are needed to find a repetition.
    #[error("`repeats` is {repeats}: use at least 2, or `None`")]
    Repeats {
        /// The value.
        repeats: u32,
    },
    /// Entities are remembered in the thread, as the memory is.
    #[error("`entities` needs a memory: call `memory` too")]
    EntitiesWithoutMemory,
}
