//! The loop of an agent node: hands the task to the executor, checks the result, and tries again with the reasons and
//! with advice, as often as `ensure.retries` says. Attempts for other reasons, and their time, are the walk's.

use std::sync::Arc;

use serde_json::Value;
use workflow_core::StepError;

use super::judge::{Judges, bounded};
use super::render::render_text;
use super::{Sees, checks, reason};
use crate::document::model::{Agent, Defaults, Guidance, Node};
use crate::document::template::Template;
use crate::expression::Scope;
use crate::retried::Again;
use crate::state::Verdict;
use crate::{
    AgentExecutor, AgentResult, AgentStatus, AgentTask, HiveTask, Mend, NodeContext, Prompt, Purpose,
    ToolCall,
};

/// An agent node, and the needs of its work.
#[derive(Clone)]
pub(crate) struct AgentWork<'a> {
    pub(crate) node: &'a Node,
    /// The task of `node`.
    pub(crate) agent: &'a Agent,
    pub(crate) defaults: &'a Defaults,
    pub(crate) executor: &'a dyn AgentExecutor,
    pub(crate) sees: &'a dyn Sees,
    /// The map that the agent is shown.
    pub(crate) reads: Value,
    /// Questions to judges before, of this node in this run.
    pub(crate) judged: u32,
    /// Prompts for guidance before, of this run.
    pub(crate) prompts: u32,
    /// The addition of a Hive document.
    pub(crate) hive: Option<HiveTask<'a>>,
}

/// The work of an agent that did its task, or had nothing to do.
#[derive(Debug)]
pub(crate) struct AgentDone {
    /// Success, or skipped.
    pub(crate) status: AgentStatus,
    pub(crate) data: Value,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) conversation: Option<Value>,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) warnings: Vec<Arc<str>>,
    pub(crate) again: Vec<Again>,
    pub(crate) asked: Asked,
}

/// The number of times that this attempt called the executor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Runs of the agent.
    pub(crate) runs: u32,
    /// Questions to judges.
    pub(crate) judged: u32,
    /// Prompts for guidance.
    pub(crate) prompts: u32,
}

/// Does the work of an agent node. An error of the executor ends it: only failed checks are retried here. (G17)
pub(crate) async fn run(work: AgentWork<'_>) -> Result<AgentDone, StepError> {
    let model = work.defaults.judge_model.as_deref();
    let judges = Judges::new(&work.node.id.value, Some(work.executor), model, &work.reads, work.judged);
    let (warnings, again) = (Vec::new(), Vec::new());
    let mut course = Course { work: &work, judges, runs: 0, prompts: 0, warnings, again, context: None };
    let mut task = match work.task() {
        Ok(task) => task,
        Err(error) => return Err(error),
    };
    let retries = work.node.ensure.as_ref().map_or(0, |ensure| ensure.retries);
    loop {
        let result = match course.run(task.clone()).await {
            Ok(result) => result,
            Err(error) => return Err(error),
        };
        match result.status {
            AgentStatus::Success => {}
            AgentStatus::Skipped => return Ok(course.done(result, Vec::new())),
            AgentStatus::Failed => {
                return Err(StepError::model(given_up(&result.data)));
            }
        }
        let verdicts = course.check(&result).await;
        let Some(text) = checks::failure_text(&verdicts) else { return Ok(course.done(result, verdicts)) };
        if course.runs > retries {
            return Err(StepError::permanent(after_runs(text, course.runs)));
        }
        let failure = checks::failures(&verdicts).join("\n");
        course.runs_again(&failure);
        let guidance = course.guidance(&task.instruction, &failure, &result.data).await;
        task.retry = Some(Mend::new(failure, guidance));
    }
}

/// The failure of an agent, and how often it ran if it ran again.
fn after_runs(failure: String, runs: u32) -> String {
    if runs > 1 { format!("{failure} (the agent ran {runs} times)") } else { failure }
}

fn given_up(data: &Value) -> String {
    match data.get("error").and_then(Value::as_str).map(reason) {
        Some(error) if !error.is_empty() => format!("the agent failed: {error}"),
        _ => "the agent failed, and gives no `error` in its data".to_owned(),
    }
}

impl AgentWork<'_> {
    fn model(&self) -> Option<&str> {
        self.agent.model.as_deref().or(self.defaults.model.as_deref())
    }

    fn task(&self) -> Result<AgentTask<'_>, StepError> {
        let agent = self.agent;
        let scope = self.sees.before();
        Ok(AgentTask {
            node: &self.node.id.value,
            instruction: rendered(&agent.instruction, "instruction", scope)?,
            rules: all_rendered(&agent.rules, "rules", scope)?,
            background: all_rendered(&agent.background, "background", scope)?,
            skills: agent.skills.iter().map(|name| &*name.value).collect(),
            needs_any_skill: false,
            inline_skills: Vec::new(),
            context: self.reads.clone(),
            allow: agent.allow.as_ref().map(|allow| allow.iter().map(|name| &*name.value).collect()),
            deny: agent.deny.iter().map(|name| &*name.value).collect(),
            output: self.node.output.as_ref().map(|schema| &*schema.value),
            model: self.model(),
            max_turns: agent.max_turns,
            retry: None,
            hive: self.hive.clone(),
        })
    }
}

fn rendered(template: &Template, key: &str, scope: &dyn Scope) -> Result<String, StepError> {
    render_text(template, scope)
        .map_err(|error| StepError::permanent(format!("`{key}` has no value: {error}")))
}

fn all_rendered(templates: &[Template], key: &str, scope: &dyn Scope) -> Result<Vec<String>, StepError> {
    templates.iter().map(|template| rendered(template, key, scope)).collect()
}

/// The work as far as it is done.
struct Course<'a> {
    work: &'a AgentWork<'a>,
    judges: Judges<'a>,
    runs: u32,
    prompts: u32,
    warnings: Vec<Arc<str>>,
    again: Vec<Again>,
    /// Of the latest run.
    context: Option<NodeContext>,
}

impl Course<'_> {
    fn runs_again(&mut self, failure: &str) {
        let again = Again::agent(failure);
        if let Some(context) = &self.context {
            context.again(again.clone());
        }
        self.again.push(again);
    }

    async fn run(&mut self, task: AgentTask<'_>) -> Result<AgentResult, StepError> {
        let context = self.work.sees.context(self.runs);
        self.judges.show_by(context.clone());
        if self.runs == 0 && self.work.agent.instruction.fixed_text().is_none() {
            context.instructed(&task.instruction);
        }
        self.runs += 1;
        let mut result = self.work.executor.run(task, &context).await?;
        self.context = Some(context);
        super::add_warnings(&mut self.warnings, std::mem::take(&mut result.warnings));
        Ok(result)
    }

    /// The checks of `ensure` run on data that fits the schema: expressions rely on it. (SW6)
    async fn check(&mut self, result: &AgentResult) -> Vec<Verdict> {
        let node = self.work.node;
        if let Some(Err(error)) = node.output.as_ref().map(|schema| checks::output(schema, &result.data)) {
            return vec![Verdict { check: "output".into(), failure: Some(error) }];
        }
        let Some(ensure) = &node.ensure else { return Vec::new() };
        let scope = self.work.sees.with(&result.data);
        let verdicts = checks::ensure(ensure, &result.data, &*scope, &result.calls, &mut self.judges).await;
        self.again.extend(self.judges.take_again());
        verdicts
    }

    /// Advice for the next run. Without any, the run has the reasons alone, and a warning says so. (SW9)
    async fn guidance(&mut self, instruction: &str, failure: &str, data: &Value) -> Option<String> {
        let advice = match self.work.node.ensure.as_ref()?.guidance.as_ref()? {
            Guidance::Text(text) => {
                let scope = self.work.sees.with(data);
                render_text(text, &*scope).map_err(|error| error.to_string())
            }
            Guidance::Auto => self.comment(instruction, failure, data).await,
        };
        match advice {
            Ok(advice) => Some(advice),
            Err(error) => {
                self.warnings
                    .push(reason(&format!("the agent tries again without guidance: {error}")).into());
                None
            }
        }
    }

    async fn comment(&mut self, instruction: &str, failure: &str, data: &Value) -> Result<String, String> {
        let work = self.work;
        let asked = work.prompts.saturating_add(self.prompts);
        self.prompts += 1;
        let text = format!(
            "An agent did a task, and its result failed the checks below. Advise it for its next attempt, in a few \
             sentences.\n\n# Task\n{instruction}\n\n# Result\n{}\n\n# Failed checks\n{failure}",
            bounded(data)
        );
        let prompt = Prompt {
            node: &work.node.id.value,
            purpose: Purpose::Guidance,
            text,
            model: work.model(),
            asked,
        };
        let advice = work.executor.ask(prompt).await.map_err(|error| error.to_string())?;
        if advice.trim().is_empty() { Err("the model said nothing".to_owned()) } else { Ok(advice) }
    }

    fn asked(&self) -> Asked {
        Asked { runs: self.runs, judged: self.judges.asked(), prompts: self.prompts }
    }

    fn done(self, result: AgentResult, verdicts: Vec<Verdict>) -> AgentDone {
        let asked = self.asked();
        let AgentResult { status, data, calls, conversation, .. } = result;
        let (warnings, again) = (self.warnings, self.again);
        AgentDone { status, data, calls, conversation, verdicts, warnings, again, asked }
    }
}
