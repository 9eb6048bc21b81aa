//! The traits by which a program gives nodes their work: agents and tools. This file owns what they are given and what
//! they answer; it calls nothing.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow_core::{ErrorClass, StepError};

use crate::{InlineSkill, NodeContext, ToolCall};

/// Runs the agent nodes of documents, and answers the questions that documents put to models.
///
/// Its methods may run at the same time, for several nodes and runs.
pub trait AgentExecutor: Send + Sync + 'static {
    /// Does the task of an agent node.
    fn run<'a>(
        &'a self,
        task: AgentTask<'a>,
        context: &'a NodeContext,
    ) -> BoxFuture<'a, Result<AgentResult, NodeError>>;

    /// Chooses one of the targets of a node with `decide`. An answer that names none of them counts as no answer.
    fn decide<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Choice, NodeError>>;

    /// Answers a prompt in text: the verdict of a judge, or advice for a next attempt.
    fn ask<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<String, NodeError>>;
}

/// Calls the tools that tool nodes name.
pub trait ToolExecutor: Send + Sync + 'static {
    /// Calls `tool` with the input of the node.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: Value,
        context: &'a NodeContext,
    ) -> BoxFuture<'a, Result<Value, NodeError>>;

    /// The tools that there are, so that documents are checked for them; `None` if that is not known.
    fn names(&self) -> Option<Vec<String>> {
        None
    }
}

/// The task of an agent node, in one attempt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentTask<'a> {
    /// The id of the node.
    pub node: &'a str,
    /// The task, in words.
    pub instruction: String,
    /// Rules that the agent has to heed.
    pub rules: Vec<String>,
    /// Facts that the agent should know.
    pub background: Vec<String>,
    /// The names of the skills that the node lists.
    pub skills: Vec<&'a str>,
    /// Whether the agent may work without some of its skills, as long as it has one: in SWEny documents.
    pub needs_any_skill: bool,
    /// Those of them that the document defines itself, and the program does not have.
    pub inline_skills: Vec<&'a InlineSkill>,
    /// The results that the node reads: a map of `input` and the data of nodes.
    pub context: Value,
    /// The tools that the agent may use; `None` allows all.
    pub allow: Option<Vec<&'a str>>,
    /// The tools that the agent must not use.
    pub deny: Vec<&'a str>,
    /// The JSON Schema of the data that the agent returns.
    pub output: Option<&'a Value>,
    /// The model, by a name that the executor knows.
    pub model: Option<&'a str>,
    /// The most turns.
    pub max_turns: Option<u32>,
    /// In an attempt after a failed check: why the attempt before failed, and advice.
    pub retry: Option<Mend>,
    /// The additions of Hive documents. `None` for nodes of other documents.
    pub hive: Option<HiveTask<'a>>,
}

/// The addition of a Hive document to the task of an agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HiveTask<'a> {
    /// The goal of the agent, as exported.
    pub goal: Option<&'a Value>,
    /// The identity of the agent, in all of its nodes.
    pub identity_prompt: Option<&'a str>,
    /// Whether the nodes of the graph share a conversation.
    pub conversation_mode: ConversationMode,
    /// The configuration of the agent's loop, as exported.
    pub loop_config: Option<&'a Value>,
    /// The keys that the result should have. The engine checks them for functions alone.
    pub output_keys: Vec<&'a str>,
    /// The latest agent node on the path that led here. `None` if there is none, and in [`ConversationMode::Isolated`].
    pub prior: Option<PriorAgent>,
    /// The fields of the node that have no meaning to the engine, as exported: a map.
    pub metadata: &'a Value,
}

/// Whether the agent nodes of a Hive document share a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConversationMode {
    /// Each agent node continues the conversation of the one before it on its path.
    #[default]
    Continuous,
    /// Each has a conversation of its own.
    Isolated,
}

/// The agent node whose conversation a node continues.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PriorAgent {
    /// The id of the node.
    pub node: Arc<str>,
    /// Its data.
    pub result: Value,
    /// The conversation that it returned, as [`AgentResult::conversation`] has it. One beyond 64 KiB is dropped, with a
    /// warning.
    pub conversation: Option<Value>,
}

/// The failure of the attempt before, for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mend {
    /// Why the attempt failed: each check that did not hold, in a line of its own.
    pub failure: String,
    /// The advice that the document gives, or a model's comment on the failure.
    pub guidance: Option<String>,
}

impl Mend {
    pub(crate) fn new(failure: String, guidance: Option<String>) -> Self {
        Self { failure, guidance }
    }
}

/// The end of an agent's work, as the agent sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// The task is done.
    #[default]
    Success,
    /// The agent gave up.
    Failed,
    /// There was nothing to do.
    Skipped,
}

/// The result of an agent node.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AgentResult {
    /// Whether the agent did its task.
    pub status: AgentStatus,
    /// The data of the node.
    pub data: Value,
    /// The calls of tools that the agent made, in order. The result of the node has 10,000 of them, with 32 KiB for each input
    /// and output, and 1 MiB for all: larger ones are cut.
    pub calls: Vec<ToolCall>,
    /// The conversation, in a form that only the executor reads, for the next agent node on the path.
    pub conversation: Option<Value>,
    /// Warnings about the work, for the result of the run and its observers.
    pub warnings: Vec<Arc<str>>,
}

impl AgentResult {
    /// A successful result with this data.
    pub fn new(data: impl Into<Value>) -> Self {
        Self { data: data.into(), ..Self::default() }
    }

    /// The same with this status.
    #[must_use]
    pub fn status(self, status: AgentStatus) -> Self {
        Self { status, ..self }
    }

    /// The same with the calls of tools that the agent made.
    #[must_use]
    pub fn calls(self, calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self { calls: calls.into_iter().collect(), ..self }
    }

    /// The same with the conversation so far, for the next agent node on the path.
    #[must_use]
    pub fn conversation(self, conversation: Value) -> Self {
        Self { conversation: Some(conversation), ..self }
    }

    /// The same with this warning, after those before.
    ///
    /// A node has each text once, however often its agent runs.
    #[must_use]
    pub fn warning(mut self, text: impl Into<Arc<str>>) -> Self {
        self.warnings.push(text.into());
        self
    }
}

/// The question of a node whose route a model chooses.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The id of the node.
    pub node: &'a str,
    /// The question of the document.
    pub question: &'a str,
    /// The facts to decide by: a map of `input` and the data of the latest result of every node that has ended, this one
    /// included. Of an agent node with `reads`, those nodes alone; in Hive documents, memory.
    ///
    /// It has at most 256 KiB of JSON: the largest members are cut first, and say so.
    pub context: &'a Value,
    /// The result of the node.
    pub result: &'a Value,
    /// The goal of the agent, in Hive documents that have one.
    pub goal: Option<&'a Value>,
    /// The targets that the model may choose.
    pub choices: Vec<Offer<'a>>,
    /// The model, by a name that the executor knows.
    pub model: Option<&'a str>,
    /// The number of questions that the node has asked in this run before.
    pub(crate) asked: u32,
}

/// A target that a model may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer<'a> {
    /// The id of the node that the choice leads to, or `end`.
    pub to: &'a str,
    /// When to choose the target.
    pub about: Option<&'a str>,
}

impl<'a> Offer<'a> {
    pub(crate) fn new(to: &'a str, about: Option<&'a str>) -> Self {
        Self { to, about }
    }
}

/// The target that a model chose.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The id of a target, exactly as offered.
    pub to: String,
    /// Why, in the model's words.
    pub reason: Option<String>,
}

impl Choice {
    /// Chooses this target.
    pub fn new(to: impl Into<String>) -> Self {
        Self { to: to.into(), reason: None }
    }

    /// The same with a reason.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }
}

/// A prompt to a model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Prompt<'a> {
    /// The id of the node.
    pub node: &'a str,
    /// The use of the answer.
    pub purpose: Purpose,
    /// The prompt.
    pub text: String,
    /// The model, by a name that the executor knows.
    pub model: Option<&'a str>,
    /// The number of prompts of this purpose before: of the node if a judge's, of the run otherwise.
    pub(crate) asked: u32,
}

/// The use of the answer to a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The verdict on a node's result.
    Judge,
    /// Advice for the next attempt.
    Guidance,
}

/// The failure of a node.
///
/// Any error becomes one by `?`; such an error is transient. The engine tries functions, tools and commands again, as the
/// node's `retry` says; an agent node fails at once.
pub struct NodeError {
    class: ErrorClass,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl NodeError {
    /// A failure that may pass: the engine tries again.
    pub fn transient(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { class: ErrorClass::Transient, source: error.into() }
    }

    /// A failure of a tool: the engine tries again.
    pub fn tool(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { class: ErrorClass::Tool, source: error.into() }
    }

    /// A failure of a model. The engine tries a function, tool or command again.
    pub fn model(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { class: ErrorClass::Model, source: error.into() }
    }

    /// A failure that no further attempt mends.
    pub fn permanent(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { class: ErrorClass::Permanent, source: error.into() }
    }

    /// A person, or a rule, refused. No further attempt is made.
    pub fn rejected(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { class: ErrorClass::Rejected, source: error.into() }
    }

    pub(crate) fn of_class(
        class: ErrorClass,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { class, source: error.into() }
    }

    /// The class, which decides about further attempts.
    pub fn class(&self) -> ErrorClass {
        self.class
    }
}

impl fmt::Debug for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeError").field("class", &self.class).field("source", &self.source).finish()
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for NodeError {
    fn from(error: E) -> Self {
        Self::transient(error)
    }
}

impl From<NodeError> for StepError {
    fn from(error: NodeError) -> Self {
        Self::new(error.class, error.source)
    }
}

/// The answer of an executor, whose panic is an error like any other. The future calls the executor itself, which may panic
/// before it returns a future, too.
pub(crate) async fn caught<T>(answer: impl Future<Output = Result<T, NodeError>>) -> Result<T, NodeError> {
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(NodeError::permanent(format!("the executor panicked: {text}")))
    })
}
