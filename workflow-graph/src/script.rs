//! Scripts as executors: they stand in for functions, tools, agents, commands and people. This file plays entries; the
//! reader is with the format, and the walk counts.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::document::{self, Entry, Play, Script};
use crate::problem::CheckError;
use crate::problem::sink::Problems;
use crate::{
    AgentExecutor, AgentResult, AgentStatus, AgentTask, Choice, NodeContext, NodeError, Prompt, Purpose,
    Question, ToolExecutor,
};

#[cfg(test)]
mod tests;

/// Plays a script in place of functions, tools, agents, commands and people: for tests and for trials of documents.
///
/// A script is YAML or JSON. Each node has its attempts in order, over all of its visits, and the last one repeats. A node
/// that is not in the script returns `{}`, a judge says `yes`, and nobody answers questions to people. Values,
/// conditions, routes and child runs are real.
///
/// ```yaml
/// nodes:
///   review: [{data: {score: 0.4}}, {fail: "model is away", class: transient}, {skip: "nothing to do"}]
///   draft: [{data: {text: a}, called: [{tool: search, ok: true}], after: 50ms}]
/// decide: {investigate: [skip]}          # choices of a model at a node
/// judge: {draft: ["no: too long", "yes: fine"]}
/// ask: ["Shorten it."]                   # advice for next attempts
/// replies: {approve: [{granted: true}]}
/// ```
///
/// The entry that is played follows from the run's log, not from what was played before. So a run that is resumed plays
/// the entries that it would have played, and one executor serves any number of runs. `after` waits on the clock of
/// tokio, which tests can pause.
///
/// ```
/// use workflow_graph::{Registry, ScriptedExecutor};
///
/// let script = ScriptedExecutor::parse("nodes: {look_up: [{data: {paid: 900}}]}", "refund.script.yaml")?;
/// let registry = Registry::new().script(script);
/// # drop(registry);
/// # Ok::<(), workflow_graph::CheckError>(())
/// ```
#[derive(Clone)]
pub struct ScriptedExecutor {
    file: Arc<str>,
    script: Arc<Script>,
}

impl ScriptedExecutor {
    /// Reads a script, YAML or JSON. Problems call the file `name`.
    ///
    /// # Errors
    ///
    /// Every problem of the script.
    ///
    /// ```
    /// use workflow_graph::ScriptedExecutor;
    ///
    /// let error = ScriptedExecutor::parse("nodes: {a: [{dta: 1}]}", "a.script.yaml").unwrap_err();
    /// assert_eq!(error.problems[0].similar, ["data"]);
    /// ```
    pub fn parse(text: &str, name: &str) -> Result<Self, CheckError> {
        Self::read(text, Problems::new(name))
    }

    /// Reads the script in the file at `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has problems: every one of them.
    ///
    /// ```
    /// use workflow_graph::{Code, ScriptedExecutor};
    ///
    /// let error = ScriptedExecutor::load("absent.script.yaml").unwrap_err();
    /// assert_eq!(error.problems[0].code, Code::FileNotFound);
    /// ```
    pub fn load(path: impl AsRef<Path>) -> Result<Self, CheckError> {
        let path = path.as_ref();
        let mut problems = Problems::new(&path.display().to_string());
        let text = document::read_file(path, "script", &mut problems)?;
        Self::read(&text, problems)
    }

    /// Takes a script that is JSON already. Problems have places in its shortest text, which they call `script`.
    ///
    /// # Errors
    ///
    /// Every problem of the script.
    ///
    /// ```
    /// use serde_json::json;
    /// use workflow_graph::ScriptedExecutor;
    ///
    /// assert!(ScriptedExecutor::from_json(&json!({"decide": {"triage": ["close"]}})).is_ok());
    /// assert!(ScriptedExecutor::from_json(&json!({"decide": ["close"]})).is_err());
    /// ```
    pub fn from_json(script: &Value) -> Result<Self, CheckError> {
        Self::parse(&script.to_string(), "script")
    }

    fn read(text: &str, mut problems: Problems) -> Result<Self, CheckError> {
        let script = document::script(text, &mut problems);
        let file = problems.file().clone();
        problems.finish()?;
        Ok(Self { file, script: Arc::new(script) })
    }

    /// The reply of the script's people to a question, if they have one. Loops that answer gates of several runs call it;
    /// [`GraphRun::play`](crate::GraphRun::play) does so for one run.
    pub fn reply_to(&self, gate: &crate::Gate) -> Option<&Value> {
        self.replies(&gate.node, gate.iteration)
    }

    pub(crate) fn file(&self) -> &Arc<str> {
        &self.file
    }

    pub(crate) fn script(&self) -> &Script {
        &self.script
    }

    /// Whether the script has attempts of the node.
    pub(crate) fn plays(&self, node: &str) -> bool {
        self.script.nodes.contains_key(node)
    }

    /// The reply of people to a visit of a node, from 1. Nothing: nobody answers.
    pub(crate) fn replies(&self, node: &str, visit: u32) -> Option<&Value> {
        let replies = self.script.replies.get(node)?;
        nth(&replies.value, visit.saturating_sub(1))
    }

    /// Plays the attempt of a function, tool or command.
    pub(crate) async fn play(&self, context: &NodeContext) -> Result<Value, NodeError> {
        match self.attempt(context).await {
            None => Ok(json!({})),
            Some(Entry { play: Play::Data(data), .. }) => Ok(data.clone()),
            Some(Entry { play: Play::Fail { message, class }, .. }) => {
                Err(NodeError::of_class(*class, message.to_string()))
            }
            Some(Entry { play: Play::Skip(_), .. }) => {
                let message =
                    format!("the script skips `{}`, and only agents skip their work", context.node());
                Err(NodeError::permanent(message))
            }
        }
    }

    async fn play_agent(&self, context: &NodeContext) -> Result<AgentResult, NodeError> {
        let Some(entry) = self.attempt(context).await else { return Ok(AgentResult::new(json!({}))) };
        let result = match &entry.play {
            Play::Data(data) => AgentResult::new(data.clone()),
            Play::Skip(reason) => {
                AgentResult::new(json!({"skipped_reason": reason})).status(AgentStatus::Skipped)
            }
            Play::Fail { message, class } => return Err(NodeError::of_class(*class, message.to_string())),
        };
        Ok(result.calls(entry.called.iter().cloned()))
    }

    /// The entry of an attempt, after its time, and after it has shown its calls.
    async fn attempt(&self, context: &NodeContext) -> Option<&Entry> {
        let entries = self.script.nodes.get(context.node())?;
        let entry = nth(&entries.value, context.runs())?;
        for call in &entry.called {
            context.tool_called(call.tool.clone(), Value::clone(&call.input));
            context.tool_returned(call);
        }
        if let Some(after) = entry.after {
            tokio::time::sleep(after).await;
        }
        Some(entry)
    }

    fn choice(&self, question: &Question<'_>) -> Result<Choice, NodeError> {
        let node = question.node;
        let answers = self.script.decide.get(node).and_then(|answers| nth(&answers.value, question.asked));
        let to = answers.ok_or_else(|| silent(&format!("no choice of a model at `{node}`")))?;
        Ok(Choice::new(&**to))
    }

    fn answer(&self, prompt: &Prompt<'_>) -> Result<String, NodeError> {
        let (found, otherwise) = match prompt.purpose {
            Purpose::Judge => {
                let verdicts = self.script.judge.get(prompt.node);
                (verdicts.and_then(|verdicts| nth(&verdicts.value, prompt.asked)), Some("yes"))
            }
            Purpose::Guidance => (nth(&self.script.ask, prompt.asked), None),
        };
        let answer = found.map(|text| &**text).or(otherwise);
        answer.map(str::to_owned).ok_or_else(|| silent("no answer to prompts for advice"))
    }
}

/// The entry of this place; the last one repeats.
fn nth<T>(entries: &[T], place: u32) -> Option<&T> {
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    entries.get(place).or(entries.last())
}

fn silent(lack: &str) -> NodeError {
    NodeError::permanent(format!("the script has {lack}"))
}

impl AgentExecutor for ScriptedExecutor {
    fn run<'a>(
        &'a self,
        _task: AgentTask<'a>,
        context: &'a NodeContext,
    ) -> BoxFuture<'a, Result<AgentResult, NodeError>> {
        Box::pin(self.play_agent(context))
    }

    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Choice, NodeError>> {
        Box::pin(async move { self.choice(&question) })
    }

    fn ask<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<String, NodeError>> {
        Box::pin(async move { self.answer(&prompt) })
    }
}

impl ToolExecutor for ScriptedExecutor {
    fn call<'a>(
        &'a self,
        _tool: &'a str,
        _input: Value,
        context: &'a NodeContext,
    ) -> BoxFuture<'a, Result<Value, NodeError>> {
        Box::pin(self.play(context))
    }
}

impl fmt::Debug for ScriptedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedExecutor").field("file", &self.file).finish_non_exhaustive()
    }
}
