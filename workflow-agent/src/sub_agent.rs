//! Sub-agents: the tool `spawn_sub_agent`, the child runs behind it, and how their results become one.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde::Deserialize;
use serde_json::json;
use workflow_core::prelude::*;
use workflow_core::{RunError, RunOptions, StartError};

mod aggregate;
mod unfinished;

pub use aggregate::Aggregation;

use crate::agent::{Agent, Outcome, Prompt, Terms};
use crate::budget::{Budget, Spent};
use crate::entry::{FailureClass, Reply, ToolCall, ToolDone};
use crate::flow::State;
use crate::tool::ToolSpec;
pub(crate) use unfinished::Unfinished;

/// The name of the tool.
pub(crate) const SPAWN: &str = "spawn_sub_agent";
/// The most sub-agents of an agent.
pub(crate) const MOST_AGENTS: usize = 32;
/// The levels below the top agent.
pub(crate) const MOST_LEVELS: usize = 3;
/// The most tasks of a call.
const MOST_TASKS: usize = 8;

/// An agent that another one may start.
#[derive(Debug, Clone)]
pub(crate) struct SubAgent {
    pub(crate) agent: Agent,
    /// Of its tools, those that it may use; `None` for all.
    grant: Option<Vec<String>>,
}

impl SubAgent {
    pub(crate) fn new(agent: Agent) -> Self {
        Self { agent, grant: None }
    }

    pub(crate) fn granting<S: Into<String>>(self, grant: impl IntoIterator<Item = S>) -> Self {
        Self { grant: Some(grant.into_iter().map(Into::into).collect()), ..self }
    }
}

/// The levels of agents below one with these sub-agents.
pub(crate) fn depth(agents: &[SubAgent]) -> usize {
    let below = agents.iter().map(|sub_agent| depth(&sub_agent.agent.inner.sub_agents) + 1);
    below.max().unwrap_or(0)
}

/// The agent whose workflow has this name: `agent`, whose workflow is called `hosted`, or one below it.
pub(crate) fn find<'a>(agent: &'a Agent, hosted: &str, workflow: &str) -> Option<&'a Agent> {
    let path = workflow.strip_prefix(hosted)?;
    path.is_empty().then_some(agent).or_else(|| below(agent, path.strip_prefix('.')?))
}

/// Names may contain dots, so each sub-agent is tried.
fn below<'a>(agent: &'a Agent, path: &str) -> Option<&'a Agent> {
    agent.inner.sub_agents.iter().find_map(|sub_agent| {
        let rest = path.strip_prefix(sub_agent.agent.name())?;
        if rest.is_empty() {
            return Some(&sub_agent.agent);
        }
        below(&sub_agent.agent, rest.strip_prefix('.')?)
    })
}

/// The specification of the tool.
pub(crate) fn spec(agents: &[SubAgent]) -> ToolSpec {
    let names: Vec<&str> = agents.iter().map(|sub_agent| sub_agent.agent.name()).collect();
    let described: Vec<String> = agents.iter().map(described).collect();
    let schema = json!({
        "type": "object",
        "properties": { "tasks": {
            "type": "array", "minItems": 1, "maxItems": MOST_TASKS,
            "items": {
                "type": "object",
                "properties": {
                    "agent": { "type": "string", "description": format!("One of: {}", names.join(", ")) },
                    "task": { "type": "string", "minLength": 1, "description": "The task, with everything it needs" },
                    "tools": {
                        "type": "array", "items": { "type": "string" },
                        "description": "Of the agent's tools, those that it may use; all without this",
                    },
                },
                "required": ["agent", "task"],
                "additionalProperties": false,
            },
        } },
        "required": ["tasks"],
        "additionalProperties": false,
    });
    let description = format!(
        "Lets other agents work on tasks side by side, and returns their results. They see nothing of this conversation. \
         Agents:\n{}",
        described.join("\n")
    );
    ToolSpec::new(SPAWN, description, schema).idempotent().timeout(Duration::MAX)
}

fn described(sub_agent: &SubAgent) -> String {
    let agent = &sub_agent.agent.inner;
    let tools: Vec<&str> =
        agent.tools.0.keys().filter(|name| sub_agent.grants(name)).map(|name| &**name).collect();
    let about = agent.instructions.lines().next().unwrap_or_default();
    let about = crate::tool::head(about, 300);
    let tools = if tools.is_empty() { "no tools".to_owned() } else { format!("tools: {}", tools.join(", ")) };
    format!("- {}: {about} ({tools})", agent.name)
}

impl SubAgent {
    fn grants(&self, tool: &str) -> bool {
        self.grant.as_ref().is_none_or(|grant| grant.iter().any(|granted| granted == tool))
    }

    /// The tools of a task: the agent's own, granted ones, among those that the task names.
    fn tools(&self, wanted: Option<&[String]>) -> Vec<String> {
        let own = self.agent.inner.tools.0.keys().filter(|name| self.grants(name));
        let wanted =
            own.filter(|name| wanted.is_none_or(|wanted| wanted.iter().any(|tool| **tool == ***name)));
        wanted.map(ToString::to_string).collect()
    }
}

/// The arguments of the tool.
#[derive(Debug, Deserialize)]
struct Tasks {
    tasks: Vec<Task>,
}

#[derive(Debug, Deserialize)]
struct Task {
    agent: String,
    #[serde(rename = "task")]
    text: String,
    #[serde(default)]
    tools: Option<Vec<String>>,
}

/// The end of a task.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The name of the agent.
    agent: String,
    /// Its answer, or its failure with the last text.
    result: Result<String, String>,
    /// The amounts that it used; `None` if it ended without an outcome.
    spent: Option<Spent>,
    /// Whether the engine hosts it.
    is_hosted: bool,
}

/// The surroundings of the tasks of a call.
pub(crate) struct Place<'a> {
    pub(crate) children: &'a Children,
    pub(crate) info: &'a RunInfo,
    pub(crate) engine: &'a Engine,
}

/// Runs the tasks of a call.
pub(crate) async fn spawn(
    terms: &Terms<'_>,
    call: &ToolCall,
    state: &State<'_>,
    place: &Place<'_>,
) -> Result<ToolDone, StepError> {
    let agent = &terms.agent.inner;
    let Tasks { tasks } = match serde_json::from_value(call.arguments.clone()) {
        Ok(tasks) => tasks,
        Err(error) => return Ok(ToolDone::error(call, format!("the arguments cannot be read: {error}"))),
    };
    let mut chosen = Vec::new();
    for task in tasks {
        let Some(sub_agent) = agent.sub_agents.iter().find(|one| one.agent.name() == task.agent) else {
            let names: Vec<&str> = agent.sub_agents.iter().map(|one| one.agent.name()).collect();
            let name = crate::tool::head(&task.agent, 100);
            let text =
                format!("there is no agent `{name}`, and no task was begun; agents: {}", names.join(", "));
            return Ok(ToolDone::error(call, text));
        };
        if task.text.len() > crate::agent::TEXT {
            return Ok(ToolDone::error(call, "a task is too long, and no task was begun"));
        }
        chosen.push((sub_agent, task));
    }
    let rest = terms.budget().rest(&planned(state)).part_of(sharing(state).max(chosen.len()));
    let running = chosen.iter().enumerate().map(|(index, (sub_agent, task))| {
        // A repeated execution finds the run of each task by its number.
        let options = RunOptions::new()
            .workflow(crate::agent::below(place.info.workflow(), sub_agent.agent.name()))
            .id((index + 1).to_string());
        run(terms.agent, sub_agent, task, rest, place.children, options)
    });
    let mut unfinished = Unfinished::new(terms.agent, place.info, place.engine, place.info.execution());
    let (mut ended, cancelled) = match agent.aggregation {
        Aggregation::First => first(running, &mut unfinished).await?,
        _ => (join_all(running).await.into_iter().collect::<Result<Vec<_>, _>>()?, 0),
    };
    let mut spent = if cancelled > 0 || ended.iter().any(|one| one.spent.is_none()) {
        unfinished.spent().await
    } else {
        ended.iter().filter_map(|one| one.spent).fold(Spent::default(), |mut all, one| {
            all += one;
            all
        })
    };
    if let Some(missing) = ended.iter().find(|one| !one.is_hosted) {
        // A mistake of the program, which no model can mend.
        let text = format!(
            "the engine does not host sub-agent `{}`: `.agent(…)` of an engine's builder hosts an agent with its \
             sub-agents, and a `Scenario` needs `.host_named(\"{}\", …)`",
            missing.agent,
            crate::agent::below(place.info.workflow(), &missing.agent),
        );
        let Spent { usage, cost, tool_calls } = spent;
        let done = ToolDone::error(call, text).ending_run(FailureClass::Permanent);
        return Ok(ToolDone { usage: Some(usage), cost, tool_calls, ..done });
    }
    for one in &mut ended {
        let (Ok(text) | Err(text)) = &mut one.result;
        *text = agent.caller.redactor.text(text).into_owned();
    }
    let mut all = state.spent;
    all += spent;
    let may_call = !terms.budget().is_used_up(&all);
    let (text, is_error, more) = aggregate::text(terms.agent, &ended, cancelled, may_call).await;
    spent.add(more, agent.caller.model.limits().price);
    let text = agent.caller.redactor.text(&text);
    let text = crate::tool::cut(&text, crate::tool::OUTPUT).into_owned();
    let Spent { usage, cost, tool_calls } = spent;
    let usage = Some(usage);
    Ok(ToolDone { ran: true, usage, cost, tool_calls, ..ToolDone::new(call, text, is_error) })
}

/// The amounts used once the calls of the last reply have run.
fn planned(state: &State<'_>) -> Spent {
    let calls = state.last.map_or(0, |reply| reply.calls().count());
    Spent { tool_calls: state.spent.tool_calls + calls as u64, ..state.spent }
}

/// The number of tasks of the last reply, in all of its calls: they share the rest of the budget.
fn sharing(state: &State<'_>) -> usize {
    let calls = state.last.into_iter().flat_map(Reply::calls).filter(|call| &*call.name == SPAWN);
    let tasks = calls.map(|call| call.arguments["tasks"].as_array().map_or(0, Vec::len).min(MOST_TASKS));
    tasks.sum()
}

/// The first success cancels the others: they are dropped with their futures. Returns their number, too.
async fn first(
    running: impl Iterator<Item = impl Future<Output = Result<Ended, StepError>>>,
    unfinished: &mut Unfinished<'_>,
) -> Result<(Vec<Ended>, usize), StepError> {
    let mut running: FuturesUnordered<_> = running.collect();
    let mut ended = Vec::new();
    while let Some(one) = running.next().await {
        let one = one?;
        let is_success = one.result.is_ok();
        ended.push(one);
        if is_success {
            break;
        }
    }
    if !running.is_empty() {
        unfinished.hold().await;
    }
    Ok((ended, running.len()))
}

/// Runs a task as a child run.
async fn run(
    parent: &Agent,
    sub_agent: &SubAgent,
    task: &Task,
    rest: Budget,
    children: &Children,
    options: RunOptions,
) -> Result<Ended, StepError> {
    let mut prompt = Prompt::new(&*parent.inner.caller.redactor.text(&task.text));
    prompt = prompt.tools(sub_agent.tools(task.tools.as_deref()));
    if rest != Budget::unlimited() {
        prompt = prompt.budget(rest);
    }
    let ran = children.run_with::<Agent>(prompt, options).await;
    let agent = task.agent.clone();
    Ok(match ran {
        Ok(outcome) => {
            let result = match &outcome {
                Outcome::Answered(answer) => Ok(answer.text.clone()),
                Outcome::Stopped(stopped) if stopped.text.trim().is_empty() => {
                    Err(stopped.reason.to_string())
                }
                Outcome::Stopped(stopped) => Err(format!("{}; last text: {}", stopped.reason, stopped.text)),
            };
            Ended { agent, result, spent: Some(outcome.spent()), is_hosted: true }
        }
        Err(error) => {
            let is_hosted = !matches!(error, RunError::Start(StartError::UnknownWorkflow { .. }));
            Ended { agent, result: Err(crate::failures::of_child(error)?.text), spent: None, is_hosted }
        }
    })
}
