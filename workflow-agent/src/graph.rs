//! Agents as the nodes of graphs. `task` makes prompts of tasks, `progress` is what a node's runs leave for its next one,
//! `calls` reads the calls of a run, `conversation` is what runs leave for further nodes, `question` asks models, and `people`
//! finds open requests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::{ErrorClass, RunError, RunOptions, StartError};
use workflow_graph::{
    AgentExecutor, AgentResult, AgentStatus, AgentTask, Choice, NodeContext, NodeError,
    Prompt as GraphPrompt, Question,
};

mod calls;
mod conversation;
mod people;
mod progress;
mod question;
mod task;

use progress::Progress;
use task::Prepared;

use crate::agent::{Agent, Outcome, Prompt};

/// Agents that do the agent nodes of documents, and answer the questions of documents to models.
///
/// Give it to [`Registry::agents`](workflow_graph::Registry::agents), and each agent to the engine
/// ([`HostAgents::agent`](crate::HostAgents::agent)): a node's task is a child run of its agent, so a crash repeats neither a
/// turn that is in the journal nor a call of a tool that has a result. Cloning copies pointers.
///
/// A node waits while its run waits for people. [`GraphRun::settled`](workflow_graph::GraphRun::settled) returns then, and
/// [`approvals`](Self::approvals) and [`questions`](Self::questions) have what to answer.
///
/// | in the document | here |
/// |---|---|
/// | `model` of an agent node, of `defaults` or of a judge | the name of an agent; the first one without |
/// | `tools: {allow, deny}` | the tools of the agent that the run may use; a name that the agent lacks fails the node |
/// | `output` | the type of the answer; without it the node's data is the answer's text |
/// | `max_turns` | the most model calls of the run, within those of the agent |
/// | `skills` | the texts of [`skill`](Self::skill), at the end of the task |
/// | `ensure.retries` | the failed checks are the next message of the same conversation, in a run of its own |
/// | `called` | the calls that ran without an error, those before a retry included |
/// | `calls` of a result | the calls of the agent that ended, with the arguments that they ran with and the text that the model saw; those of its sub-agents, and of a run that stopped, are none. Viewers of the graph's run are shown them once the agent has answered |
/// | `decide`, judges, `guidance: auto` | one call of the agent's model, without its tools and its identity, with the input and the results so far |
///
/// In a Hive document:
///
/// | in the document | here |
/// |---|---|
/// | `conversation_mode: continuous` | each agent node continues the conversation of the one before it on its path, also that of another agent: the model sees it, then a marker with both ids, then the task. A branch continues that of its parallel node |
/// | `identity_prompt`, `goal` | behind the agent's own identity, in the system text of every node |
/// | `system_prompt` | the task |
/// | `loop_config.max_iterations` | the most model calls of each node's run |
/// | two or more `output_keys` | the answer is a map with these keys; under a single key stands its text |
///
/// A run that stops fails its node with the reason, also if a judge of the agent escalates. The calls for questions are no
/// part of a run: no budget of an agent counts them, and a crash before the node has ended repeats them.
///
/// ```
/// use serde_json::json;
/// use workflow_agent::GraphAgents;
/// use workflow_agent::model::{ScriptedModel, ScriptedReply};
/// use workflow_agent::prelude::*;
/// use workflow_graph::{Document, GraphRun, Registry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = "
/// graph: greeting
/// input: {type: object, properties: {name: {type: string}}, required: [name]}
/// nodes:
///   greet: {agent: 'Greet ${ input.name }.'}
/// ";
/// let model = ScriptedModel::new([ScriptedReply::text("Hello, Ada!")]);
/// let greeter = Agent::builder("greeter").model(model).build()?;
///
/// let registry = Registry::new().agents(GraphAgents::new([greeter.clone()]));
/// let document = Document::parse(text, "greeting.yaml")?;
/// let engine = Engine::builder().workflows(document.bind(&registry)?).agent(greeter).build()?;
/// let run = GraphRun::start(&engine, "greeting", json!({"name": "Ada"})).await?;
/// assert_eq!(run.outcome().await?.output, "Hello, Ada!");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct GraphAgents {
    agents: Arc<[Agent]>,
    skills: Arc<BTreeMap<Arc<str>, Arc<str>>>,
}

impl GraphAgents {
    /// These agents, by their names. The first one does the nodes that name no model.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Self {
        Self { agents: agents.into_iter().collect(), skills: Arc::default() }
    }

    /// Adds a skill: a text that the agents of nodes with this skill receive with their task.
    ///
    /// Skills that a document defines itself are known too, and this one goes before one of the same name. A node that lists
    /// another name fails. A node of a SWEny document fails only if it has none of its skills; a warning names those that it
    /// lacks. Give the names to [`Registry::skills`](workflow_graph::Registry::skills), too, so that the graph knows them.
    #[must_use]
    pub fn skill(mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Arc::make_mut(&mut self.skills).insert(name.into(), text.into());
        self
    }

    /// The names of the agents, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().map(Agent::name)
    }

    /// The agent that a document calls its model.
    fn agent(&self, model: Option<&str>) -> Result<&Agent, NodeError> {
        let found = match model {
            Some(name) => self.agents.iter().find(|agent| agent.name() == name),
            None => self.agents.first(),
        };
        found.ok_or_else(|| {
            let known: Vec<&str> = self.names().collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            NodeError::permanent(match model {
                Some(name) => {
                    format!("there is no agent `{name}` for the model of that name; agents: {known}")
                }
                None => "`GraphAgents` has no agent: give `GraphAgents::new` one".to_owned(),
            })
        })
    }

    async fn work(&self, task: AgentTask<'_>, context: &NodeContext) -> Result<AgentResult, NodeError> {
        let agent = self.agent(task.model)?;
        let before = match &task.retry {
            Some(_) => Progress::of(context, agent).await?,
            None => None,
        };
        let Prepared { mut prompt, warning } = {
            let continues = before.as_ref().map(|before| before.continues(context));
            task::prompt(&task, agent, &self.skills, continues)?
        };
        prompt.redact(&agent.inner.caller.redactor);
        prompt.check().map_err(NodeError::permanent)?;
        let result = match run(agent, prompt, context).await? {
            Outcome::Answered(answer) => {
                let data = answer.data.unwrap_or(Value::String(answer.text));
                let result = AgentResult::new(data);
                match answer.work {
                    Some(work) => {
                        let calls = calls::of(context, &work).await;
                        for call in &calls {
                            context.tool_called(Arc::clone(&call.tool), Value::clone(&call.input));
                            context.tool_returned(call);
                        }
                        let progress = Progress::after(before, agent, work.run, calls);
                        progress.save(context).await?;
                        result.calls(progress.calls()).conversation(progress.conversation(context))
                    }
                    None => result,
                }
            }
            Outcome::Stopped(stopped) => {
                let data = json!({ "error": stopped.reason.to_string(), "text": stopped.text });
                AgentResult::new(data).status(AgentStatus::Failed)
            }
        };
        Ok(match warning {
            Some(warning) => result.warning(warning),
            None => result,
        })
    }
}

/// Runs the agent as an awaited child of the node's attempt. A repeated attempt finds the run that it began before.
async fn run(agent: &Agent, prompt: Prompt, context: &NodeContext) -> Result<Outcome, NodeError> {
    let options = RunOptions::new().workflow(agent.name());
    let ran = context.children().run_with::<Agent>(prompt, options).await;
    ran.map_err(|error| match error {
        RunError::Start(StartError::UnknownWorkflow { .. }) => {
            let name = agent.name();
            let text = format!("the engine does not host agent `{name}`: add `.agent(…)` to its builder");
            NodeError::permanent(text)
        }
        error => match crate::failures::of_child(error) {
            Ok(failure) => of_class(failure.class, failure.text),
            Err(error) => of_class(error.class(), error.to_string()),
        },
    })
}

/// The failure of a node, of the class that its cause has.
fn of_class(class: ErrorClass, text: String) -> NodeError {
    match class {
        ErrorClass::Tool => NodeError::tool(text),
        ErrorClass::Model => NodeError::model(text),
        ErrorClass::Rejected => NodeError::rejected(text),
        ErrorClass::Transient => NodeError::transient(text),
        _ => NodeError::permanent(text),
    }
}

impl AgentExecutor for GraphAgents {
    fn run<'a>(
        &'a self,
        task: AgentTask<'a>,
        context: &'a NodeContext,
    ) -> BoxFuture<'a, Result<AgentResult, NodeError>> {
        Box::pin(self.work(task, context))
    }

    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Choice, NodeError>> {
        Box::pin(async move { question::decide(self.agent(question.model)?, &question).await })
    }

    fn ask<'a>(&'a self, prompt: GraphPrompt<'a>) -> BoxFuture<'a, Result<String, NodeError>> {
        Box::pin(async move { question::ask(self.agent(prompt.model)?, &prompt.text).await })
    }
}

impl fmt::Debug for GraphAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphAgents")
            .field("agents", &self.agents)
            .field("skills", &self.skills.keys())
            .finish()
    }
}
