//! The work of a node, by its kind. People are asked in steps of their own.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use workflow_core::{RunOptions, StepError};

use super::child::{self, Kind};
use super::visit::Visit;
use crate::command::{self, CommandSpec};
use crate::context::{NodeContext, Parts, Services};
use crate::document::model::{Agent, Command, Work};
use crate::document::template::Template;
use crate::executor::AgentStatus;
use crate::expression::Scope;
use crate::node::agent::{self, AgentWork};
use crate::node::{Sees, render};
use crate::retried::Again;
use crate::sight::Sight;
use crate::state::{Begin, GraphStatus, NodeResult, Output, Verdict, VisitStatus, names};
use crate::tool_call::ToolCall;

/// The result of a node's work.
#[derive(Debug, Default)]
pub(super) struct Worked {
    pub(super) status: VisitStatus,
    pub(super) data: Value,
    /// Whether schema and checks are done, as the loop of an agent does them.
    pub(super) is_checked: bool,
    pub(super) verdicts: Vec<Verdict>,
    pub(super) warnings: Vec<Arc<str>>,
    pub(super) conversation: Option<Value>,
    pub(super) calls: Vec<ToolCall>,
    pub(super) again: Vec<Again>,
    /// Holds what the work has saved, which is forgotten once the visit has succeeded.
    pub(super) saved: Option<NodeContext>,
    pub(super) runs: u32,
    pub(super) judged: u32,
    pub(super) prompts: u32,
    /// A dry run of a child that ended before a choice: the routes that it could take.
    pub(super) dry: Option<Vec<Arc<str>>>,
}

impl Worked {
    pub(super) fn of(data: Value) -> Self {
        Self { data, runs: 1, ..Self::default() }
    }
}

impl<'w> Visit<'w> {
    /// One attempt. Its input is made at once, so that the work keeps nothing of the visit.
    pub(super) fn work(&self) -> Result<BoxFuture<'w, Result<Worked, StepError>>, StepError> {
        let (walk, node) = (self.walk, self.node());
        let executors = &walk.executors;
        let attempt = self.call.attempt();
        // A node that needs several attempts has run once in each.
        let worked = move |data| Worked { runs: attempt, ..Worked::of(data) };
        Ok(match &node.work {
            Work::Function(name) => {
                let function =
                    executors.function(&name.value).ok_or_else(|| unbound("function", &name.value))?;
                let (input, context) = (self.with()?, self.context()?);
                Box::pin(async move {
                    let data = function.call(input, context.clone()).await?;
                    Ok(Worked { saved: Some(context), ..worked(data) })
                })
            }
            Work::Tool(name) => {
                let tools = executors.tools().ok_or_else(|| unbound("tool", &name.value))?;
                let (input, context) = (self.with()?, self.context()?);
                Box::pin(async move {
                    let data = tools.call(&name.value, input, &context).await?;
                    Ok(Worked { saved: Some(context), ..worked(data) })
                })
            }
            Work::Agent(agent) => self.agent(agent)?,
            Work::Command(command) => {
                if let Some(script) = executors.script() {
                    let context = self.context()?;
                    return Ok(Box::pin(async move { Ok(worked(script.play(&context).await?)) }));
                }
                let command = self.command(command)?;
                Box::pin(async move { Ok(worked(command::run(command).await?)) })
            }
            Work::Value(template) => {
                let data = self.render(template)?;
                Box::pin(std::future::ready(Ok(worked(data))))
            }
            Work::Graph(name) => {
                let known = walk.children.get(&name.value);
                let document = known.map(|child| child.document.clone());
                let played = self.done.runs.saturating_add(attempt - 1);
                let begin = Begin { input: self.with()?, dry_run: self.is_dry, played, document };
                let options = RunOptions::new();
                let is_bounded = known.is_some_and(|child| child.is_bounded);
                let children = self.call.children()?;
                Box::pin(async move {
                    let ended = children.run_json(&name.value, names::INPUT, begin, options).await;
                    let ended = ended
                        .map_err(|error| child::failed(Kind::Graph { is_bounded }, &name.value, error))?;
                    let output: Output = super::read(ended.as_json().unwrap_or(&Value::Null))?;
                    match output.status {
                        GraphStatus::StepLimit => {
                            let message = format!(
                                "the graph `{}` made as many visits as its `limits.steps` allows",
                                name.value
                            );
                            Err(StepError::permanent(message))
                        }
                        GraphStatus::DryRun => {
                            let candidates = output.candidates.iter();
                            let candidates =
                                candidates.map(|route| format!("{}: {route}", name.value).into());
                            Ok(Worked { dry: Some(candidates.collect()), ..worked(Value::Null) })
                        }
                        GraphStatus::Completed | GraphStatus::NoMatch => Ok(worked(output.output)),
                    }
                })
            }
            Work::Workflow { name, start } => {
                let (input, children) = (self.with()?, self.call.children()?);
                Box::pin(async move {
                    let ended = children.run_json(&name.value, &start.value, input, RunOptions::new()).await;
                    let ended = ended.map_err(|error| child::failed(Kind::Workflow, &name.value, error))?;
                    Ok(worked(ended.to_json().map_err(|error| StepError::permanent(error.to_string()))?))
                })
            }
            Work::Human(_) => return Err(StepError::permanent("people are asked in steps of their own")),
        })
    }

    fn agent(&self, agent: &'w Agent) -> Result<BoxFuture<'w, Result<Worked, StepError>>, StepError> {
        let (walk, node) = (self.walk, self.node());
        let Some(agents) = walk.executors.agents() else { return Err(unbound("agent", &node.id.value)) };
        let view = View { sight: self.sight.clone(), context: self.context()? };
        let (judged, prompts) = (self.done.judged, self.carried.prompts);
        let hive = node.hive().and_then(|hive| self.hive_task(hive));
        let reads = node.hive().map(|hive| self.hive_input(hive));
        Ok(Box::pin(async move {
            let done = agent::run(AgentWork {
                node,
                agent,
                defaults: &walk.graph.defaults,
                executor: &**agents,
                sees: &view,
                reads: reads.unwrap_or_else(|| view.sight.everything()),
                judged,
                prompts,
                hive,
            });
            let done = done.await?;
            Ok(Worked {
                saved: Some(view.context),
                status: match done.status {
                    AgentStatus::Skipped => VisitStatus::Skipped,
                    AgentStatus::Success | AgentStatus::Failed => VisitStatus::Success,
                },
                data: done.data,
                is_checked: true,
                verdicts: done.verdicts,
                warnings: done.warnings,
                conversation: done.conversation,
                calls: done.calls,
                again: done.again,
                runs: done.asked.runs,
                judged: done.asked.judged,
                prompts: done.asked.prompts,
                dry: None,
            })
        }))
    }

    /// The input of the node.
    fn with(&self) -> Result<Value, StepError> {
        if let Some(hive) = self.node().hive() {
            return Ok(self.hive_input(hive));
        }
        self.node()
            .with
            .as_ref()
            .map_or_else(|| Ok(Value::Object(serde_json::Map::new())), |with| self.render(with))
    }

    fn command(&self, command: &Command) -> Result<CommandSpec, StepError> {
        let text = |template: &Template| {
            render::render_text(template, &self.sight)
                .map_err(|error| StepError::permanent(error.to_string()))
        };
        let env = command.env.iter().map(|(name, value)| Ok((name.value.to_string(), text(value)?)));
        Ok(CommandSpec {
            run: command.run.iter().map(text).collect::<Result<_, _>>()?,
            stdin: command.stdin.as_ref().map(text).transpose()?,
            env: env.collect::<Result<_, StepError>>()?,
            parse: command.parse,
        })
    }

    /// The surroundings of this attempt.
    pub(super) fn context(&self) -> Result<NodeContext, StepError> {
        let attempt = self.call.attempt();
        Ok(NodeContext::new(Parts {
            run: self.call.run().clone(),
            node: self.node().id.value.clone(),
            iteration: self.sight.visit,
            attempt,
            item: self.sight.item.as_ref().map(|(_, index)| *index),
            input: self.sight.input.clone(),
            results: self.sight.all_results().collect(),
            runs: self.done.runs.saturating_add(attempt - 1),
            services: Services::of(self.call.injectables()?, attempt),
        }))
    }
}

/// The sight of an agent's work.
struct View {
    sight: Sight,
    context: NodeContext,
}

impl Sees for View {
    fn before(&self) -> &(dyn Scope + Send + Sync) {
        &self.sight
    }

    fn with<'a>(&'a self, data: &'a Value) -> Box<dyn Scope + Send + Sync + 'a> {
        let own = NodeResult { data: data.clone(), visit: self.sight.visit, ..NodeResult::default() };
        Box::new(self.sight.with_own(Arc::new(own)))
    }

    fn context(&self, runs: u32) -> NodeContext {
        self.context.after(runs)
    }
}

fn unbound(kind: &str, name: &str) -> StepError {
    StepError::permanent(format!("the {kind} `{name}` is not registered"))
}
