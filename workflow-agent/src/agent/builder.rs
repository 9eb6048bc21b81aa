//! The builder of agents: it takes parts, and checks them all at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Agent, AgentBuildError, AgentProblem, Handler, Inner, Offered, Rules, Tools};
use crate::approval::{Approval, OnRejection};
use crate::budget::Budget;
use crate::caller::Caller;
use crate::judge::Judge;
use crate::memory::Memory;
use crate::model::Model;
use crate::phase::Phase;
use crate::secret::{self, Redactor, Secret};
use crate::sub_agent::{self, Aggregation, SubAgent};
use crate::tool::{self, IntoTool, Schema, Tool, ToolSet, ToolSpec};
use crate::transcript::FINAL_ANSWER;

/// The most tools of an agent; `final_answer` is one more.
const MOST_TOOLS: usize = 127;

/// Makes an [`Agent`].
///
/// These bounds are fixed: of a reply's calls the first 64 run, and the others get an error result; the arguments of a call
/// have at most 256 KiB as JSON, and longer ones become an error result; a reply has at most 16 MiB.
#[must_use = "`build` makes the agent"]
pub struct AgentBuilder {
    name: Arc<str>,
    model: Option<Arc<dyn Model>>,
    identity: Arc<str>,
    narrative: Arc<str>,
    parts: Parts,
    choice: Choice,
    rules: Rules,
    ask_user: bool,
    span_contents: bool,
}

/// The parts that are added one by one.
#[derive(Default)]
struct Parts {
    tools: Vec<Arc<dyn Tool>>,
    phases: Vec<Phase>,
    judge: Option<Arc<dyn Judge>>,
    memory: Option<Arc<dyn Memory>>,
    entities: bool,
    sub_agents: Vec<SubAgent>,
    aggregation: Aggregation,
    secrets: Vec<Secret>,
}

/// Which of the tools count.
#[derive(Default)]
struct Choice {
    allow: Option<Vec<String>>,
    deny: Vec<String>,
}

impl AgentBuilder {
    pub(super) fn new(name: Arc<str>) -> Self {
        let rules = Rules {
            max_turns: 50,
            closing_call: false,
            repeats: Some(5),
            max_output: None,
            on_rejection: OnRejection::Continue,
            approval_expires: Duration::from_hours(1),
            budget: Budget::unlimited(),
        };
        Self {
            name,
            model: None,
            identity: "".into(),
            narrative: "".into(),
            parts: Parts::default(),
            choice: Choice::default(),
            rules,
            ask_user: false,
            span_contents: false,
        }
    }

    /// Sets the model. Required.
    pub fn model(self, model: impl Model) -> Self {
        Self { model: Some(Arc::new(model)), ..self }
    }

    /// Sets the first part of the system prompt: the identity of the agent.
    ///
    /// It is the same in all phases. The model of an agent above this one reads its first line as the description of this
    /// one.
    #[doc(alias = "instructions")]
    #[doc(alias = "system_prompt")]
    #[doc(alias = "preamble")]
    pub fn identity(self, identity: impl Into<Arc<str>>) -> Self {
        Self { identity: identity.into(), ..self }
    }

    /// Sets the second part of the system prompt: the goal and the circumstances.
    ///
    /// It is the same in all phases.
    #[doc(alias = "instructions")]
    #[doc(alias = "system_prompt")]
    pub fn narrative(self, narrative: impl Into<Arc<str>>) -> Self {
        Self { narrative: narrative.into(), ..self }
    }

    /// Adds a tool: a function with [`#[tool]`](macro@crate::tool), or a value that implements [`Tool`].
    pub fn tool<Marker>(mut self, tool: impl IntoTool<Marker>) -> Self {
        self.parts.tools.push(Arc::new(tool.into_tool()));
        self
    }

    /// Adds tools: those of a type with [`#[tools]`](macro@crate::tools), or a built-in set.
    pub fn tools(mut self, tools: impl ToolSet) -> Self {
        self.parts.tools.extend(tools.into_tools());
        self
    }

    /// Adds the tools of an MCP server.
    #[cfg(feature = "mcp")]
    pub fn mcp(self, server: crate::mcp::McpServer) -> Self {
        self.tools(server)
    }

    /// Keeps only these tools. A name without a tool is a build error.
    pub fn allow<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.choice.allow.get_or_insert_default().extend(tools.into_iter().map(Into::into));
        self
    }

    /// Removes these tools. A name without a tool is a build error.
    pub fn deny<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.choice.deny.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Offers the tool `ask_user`: the model asks a person, who answers with text. Default: off.
    pub fn ask_user(self) -> Self {
        Self { ask_user: true, ..self }
    }

    /// Sets the most model calls of a run, summaries and judges not counted. Default: 50.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.rules.max_turns = turns;
        self
    }

    /// Allows one call more after the last turn, in which the model must answer with text. Default: off.
    pub fn closing_call(mut self) -> Self {
        self.rules.closing_call = true;
        self
    }

    /// Stops the run after this many consecutive turns with the same calls and results, at least 2. Default: 5.
    ///
    /// A note tells the model after `turns − 2` of them, but not before the second. `None` switches both off.
    pub fn repeats(mut self, turns: Option<u32>) -> Self {
        self.rules.repeats = turns;
        self
    }

    /// Sets the longest reply in tokens. Default and most: that of the model's limits.
    pub fn max_output(mut self, tokens: u64) -> Self {
        self.rules.max_output = Some(tokens);
        self
    }

    /// Sets the consequences of rejections and of approvals that expired. Default: the model learns of them.
    pub fn on_rejection(mut self, then: OnRejection) -> Self {
        self.rules.on_rejection = then;
        self
    }

    /// Sets the time in which a person must answer an approval or a question. Default: an hour.
    pub fn approval_expires(mut self, after: Duration) -> Self {
        self.rules.approval_expires = after;
        self
    }

    /// Sets the most that a run may use. Default: no limit.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.rules.budget = budget;
        self
    }

    /// Adds a phase. Phases run in the order of these calls. Default: none, and the first answer ends the run.
    pub fn phase(mut self, phase: Phase) -> Self {
        self.parts.phases.push(phase);
        self
    }

    /// Sets the judge of answers. Default: none, and every answer counts.
    pub fn judge(mut self, judge: impl Judge) -> Self {
        self.parts.judge = Some(Arc::new(judge));
        self
    }

    /// Sets the memory, which each run reads before its first call, and to which it adds its exchange. Default: none.
    ///
    /// Memory belongs to the thread of a run, usually a user; all agents with a memory share it there.
    pub fn memory(mut self, memory: impl Memory) -> Self {
        self.parts.memory = Some(Arc::new(memory));
        self
    }

    /// Extracts entities and relations out of each exchange, by a run of its own after the answer, and recalls those that
    /// a message names. Default: off.
    ///
    /// This costs one more model call for each answer. Neither the usage of the run nor its budget includes that call. The
    /// extraction is a child run, so an agent at the deepest level that the engine allows
    /// ([`max_child_depth`](workflow_core::EngineBuilder::max_child_depth)) has none.
    pub fn entities(mut self) -> Self {
        self.parts.entities = true;
        self
    }

    /// Adds a sub-agent, which the model starts with the tool `spawn_sub_agent`. It may use all of its own tools;
    /// [`sub_agent_with`](Self::sub_agent_with) grants only some.
    ///
    /// The model reads the first line of its identity as its description. A sub-agent without identity and narrative is a
    /// build error.
    pub fn sub_agent(mut self, agent: Agent) -> Self {
        self.parts.sub_agents.push(SubAgent::new(agent));
        self
    }

    /// Adds a sub-agent that may use only the named ones of its tools.
    pub fn sub_agent_with<S: Into<String>>(
        mut self,
        agent: Agent,
        grant: impl IntoIterator<Item = S>,
    ) -> Self {
        self.parts.sub_agents.push(SubAgent::new(agent).granting(grant));
        self
    }

    /// Sets how the results of sub-agents become one. Default: [`Aggregation::All`].
    pub fn aggregation(mut self, aggregation: Aggregation) -> Self {
        self.parts.aggregation = aggregation;
        self
    }

    /// Registers a value that no log may have.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.parts.secrets.push(secret);
        self
    }

    /// Puts prompts, replies, arguments and results into `tracing` spans. Default: off, since they may be personal.
    pub fn span_contents(self) -> Self {
        Self { span_contents: true, ..self }
    }

    /// Checks all parts.
    ///
    /// # Errors
    /// Every mistake at once.
    pub fn build(self) -> Result<Agent, AgentBuildError> {
        let mut problems = Vec::new();
        self.check(&mut problems);
        let tools = self.offered(&mut problems);
        let specs = tools.0.values().map(|offered| offered.spec.clone()).collect();
        let Some(model) = self.model.filter(|_| problems.is_empty()) else {
            return Err(AgentBuildError { agent: self.name, problems });
        };
        let texts = [&*self.identity, &*self.narrative];
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let redactor = Redactor::new(self.parts.secrets);
        Ok(Agent {
            inner: Arc::new(Inner {
                name: self.name,
                caller: Caller { model, redactor, contents: self.span_contents },
                instructions: texts.join("\n\n").into(),
                tools,
                specs,
                phases: self.parts.phases,
                judge: self.parts.judge,
                memory: self.parts.memory,
                entities: self.parts.entities,
                sub_agents: self.parts.sub_agents,
                aggregation: self.parts.aggregation,
                rules: self.rules,
            }),
        })
    }

    fn check(&self, problems: &mut Vec<AgentProblem>) {
        if !is_name(&self.name) {
            problems.push(AgentProblem::Name { name: self.name.to_string() });
        }
        if self.model.is_none() {
            problems.push(AgentProblem::NoModel);
        }
        if self.rules.max_turns == 0 {
            problems.push(AgentProblem::NoTurns);
        }
        if self.rules.approval_expires.is_zero() {
            problems.push(AgentProblem::NoTimeForPeople);
        }
        if let Some(repeats) = self.rules.repeats.filter(|repeats| *repeats < 2) {
            problems.push(AgentProblem::Repeats { repeats });
        }
        if self.parts.entities && self.parts.memory.is_none() {
            problems.push(AgentProblem::EntitiesWithoutMemory);
        }
        for secret in &self.parts.secrets {
            if secret.value().len() < secret::SHORTEST {
                let name = secret.name().to_owned();
                problems.push(AgentProblem::ShortSecret { name, shortest: secret::SHORTEST });
            }
        }
        self.check_phases(problems);
        self.check_sub_agents(problems);
        self.check_prices(problems);
    }

    fn check_phases(&self, problems: &mut Vec<AgentProblem>) {
        let mut names = BTreeSet::new();
        for phase in &self.parts.phases {
            if !names.insert(&phase.name) {
                problems.push(AgentProblem::DuplicatePhase { name: phase.name.to_string() });
            }
            if let Some(Err(problem)) = phase.output.as_deref().map(Schema::new) {
                problems.push(AgentProblem::PhaseOutput { phase: phase.name.to_string(), problem });
            }
        }
    }

    fn check_sub_agents(&self, problems: &mut Vec<AgentProblem>) {
        let agents = &self.parts.sub_agents;
        if agents.len() > sub_agent::MOST_AGENTS {
            let limit = sub_agent::MOST_AGENTS;
            problems.push(AgentProblem::TooManySubAgents { agents: agents.len(), limit });
        }
        let mut names = BTreeSet::new();
        for sub_agent in agents {
            if !names.insert(sub_agent.agent.name()) {
                problems.push(AgentProblem::DuplicateSubAgent { name: sub_agent.agent.name().to_owned() });
            }
            if sub_agent.agent.inner.instructions.trim().is_empty() {
                problems
                    .push(AgentProblem::SubAgentWithoutIdentity { name: sub_agent.agent.name().to_owned() });
            }
        }
        let depth = sub_agent::depth(agents);
        if depth > sub_agent::MOST_LEVELS {
            problems.push(AgentProblem::TooDeep { depth, limit: sub_agent::MOST_LEVELS });
        }
    }

    fn check_prices(&self, problems: &mut Vec<AgentProblem>) {
        if !self.rules.budget.needs_price() {
            return;
        }
        if let Some(model) = self.model.as_ref().filter(|model| model.limits().price.is_none()) {
            problems.push(AgentProblem::NoPrice { model: model.name().to_owned() });
        }
        for sub_agent in &self.parts.sub_agents {
            if let Some(agent) = sub_agent.agent.unpriced() {
                problems.push(AgentProblem::NoSubAgentPrice { agent: agent.to_owned() });
            }
        }
    }

    fn offered(&self, problems: &mut Vec<AgentProblem>) -> Tools {
        let mut tools: BTreeMap<Arc<str>, Offered> = BTreeMap::new();
        let mut taken = BTreeSet::new();
        let own = self.parts.tools.iter().map(|tool| (tool.spec().clone(), Handler::Tool(Arc::clone(tool))));
        for (spec, handler) in own.chain(self.of_agent()) {
            let name = spec.shared_name();
            let is_reserved = matches!(&*name, FINAL_ANSWER | ASK_USER | sub_agent::SPAWN);
            if is_reserved && matches!(handler, Handler::Tool(_)) {
                problems.push(AgentProblem::ReservedTool { name: name.to_string() });
            } else if !tool::is_fit(&name) {
                problems.push(AgentProblem::ToolName { name: name.to_string() });
            } else if !taken.insert(Arc::clone(&name)) {
                problems.push(AgentProblem::DuplicateTool { name: name.to_string() });
            }
            if spec.longest().is_zero() {
                problems.push(AgentProblem::NoTimeForTool { tool: name.to_string() });
            }
            match compiled(&spec) {
                Ok(schema) => drop(tools.insert(name, Offered { spec, schema, handler })),
                Err(problem) => problems.push(AgentProblem::Schema { tool: name.to_string(), problem }),
            }
        }
        let known: Vec<String> = taken.iter().map(ToString::to_string).collect();
        let mut unknown = |list: &str, names: &[String]| {
            for name in names.iter().filter(|name| !known.contains(name)) {
                let (list, name, known) = (list.to_owned(), name.clone(), known.join(", "));
                problems.push(AgentProblem::UnknownTool { list, name, known });
            }
        };
        unknown("allow", self.choice.allow.as_deref().unwrap_or_default());
        unknown("deny", &self.choice.deny);
        for phase in &self.parts.phases {
            unknown(&format!("phase {}", phase.name), phase.tools.as_deref().unwrap_or_default());
        }
        let is_kept = |name: &str| {
            let allowed =
                self.choice.allow.as_ref().is_none_or(|allow| allow.iter().any(|allowed| allowed == name));
            allowed && !self.choice.deny.iter().any(|denied| denied == name)
        };
        tools.retain(|name, _| is_kept(name));
        if tools.len() > MOST_TOOLS {
            problems.push(AgentProblem::TooManyTools { tools: tools.len(), limit: MOST_TOOLS });
        }
        Tools(tools)
    }

    /// The tools that the agent itself answers.
    fn of_agent(&self) -> Vec<(ToolSpec, Handler)> {
        let mut tools = Vec::new();
        if self.ask_user {
            tools.push((ask_user(), Handler::AskUser));
        }
        if !self.parts.sub_agents.is_empty() {
            tools.push((sub_agent::spec(&self.parts.sub_agents), Handler::Spawn));
        }
        tools
    }
}

/// Whether a workflow can have the name of an agent or a project: paths of runs contain it.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// The name of the tool that asks a person.
pub(crate) const ASK_USER: &str = "ask_user";

fn ask_user() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": { "question": { "type": "string", "minLength": 1, "maxLength": 10_000 } },
        "required": ["question"],
        "additionalProperties": false,
    });
    ToolSpec::new(ASK_USER, "Asks the user a question, and returns the answer.", schema)
        .read_only()
        .approval(Approval::Never)
}

fn compiled(spec: &ToolSpec) -> Result<Schema, String> {
    if spec.schema().get("type").and_then(serde_json::Value::as_str) != Some("object") {
        return Err("its `type` is not `object`".to_owned());
    }
    Schema::new(spec.schema())
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
