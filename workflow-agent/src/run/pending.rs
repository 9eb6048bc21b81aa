//! Requests of a run that a person answers.

use std::fmt;

use serde_json::Value;
use workflow_core::errors::chain;
use workflow_core::report::OpenRequest;
use workflow_core::{Engine, ResumeError, RunId, SendError, Seq};

use crate::agent::Agent;
use crate::approval::{ApproveTool, AskUser, Decision};

/// A tool call that waits for a person's decision.
#[derive(Clone)]
pub struct PendingApproval {
    engine: Engine,
    agent: Agent,
    run: RunId,
    seq: Seq,
    request: ApproveTool,
}

/// A question that waits for a person's answer.
#[derive(Clone)]
pub struct PendingQuestion {
    engine: Engine,
    agent: Agent,
    run: RunId,
    seq: Seq,
    request: AskUser,
}

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The edited arguments do not fit the tool. The request stays open.
    #[error("the edited arguments do not fit{}: {problem}", at(pointer))]
    Edit {
        /// The JSON pointer; empty for the arguments as a whole.
        pointer: String,
        /// The problem.
        problem: String,
    },
    /// The edited tasks are no plan that can be carried out. The request stays open.
    #[error(transparent)]
    Plan(#[from] crate::project::PlanError),
    /// The run did not take it: it has ended, or the request was answered or expired before.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The run could not be reached: it may have ended.
    #[error("the run that asked cannot take the answer: {}", chain(.0))]
    Resume(#[from] ResumeError),
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") }
}

impl PendingApproval {
    /// The request of a run of `agent`, if it is one for an approval.
    pub(crate) fn of(engine: &Engine, agent: &Agent, run: &RunId, request: &OpenRequest) -> Option<Self> {
        let asked = request.downcast_ref::<ApproveTool>()?.clone();
        let (engine, agent, run) = (engine.clone(), agent.clone(), run.clone());
        Some(Self { engine, agent, run, seq: request.seq(), request: asked })
    }

    /// The run that asks: a sub-agent's if a sub-agent asks.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The number of the request in its run.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The id of the call.
    pub fn call(&self) -> &str {
        &self.request.call
    }

    /// The name of the tool.
    pub fn tool(&self) -> &str {
        &self.request.tool
    }

    /// The exact arguments with which the tool would run.
    pub fn arguments(&self) -> &Value {
        &self.request.arguments
    }

    /// Lets the call run.
    ///
    /// # Errors
    /// If the request is no longer open, or the run cannot be reached.
    pub async fn approve(&self) -> Result<(), AnswerError> {
        self.decide(Decision::Approve).await
    }

    /// Lets the call run, and later calls of the tool in this run without asking.
    ///
    /// # Errors
    /// If the request is no longer open, or the run cannot be reached.
    pub async fn approve_all(&self) -> Result<(), AnswerError> {
        self.decide(Decision::ApproveAll).await
    }

    /// Keeps the call from running. The model learns the reason, unless it is empty.
    ///
    /// # Errors
    /// If the request is no longer open, or the run cannot be reached.
    pub async fn reject(&self, reason: impl Into<String>) -> Result<(), AnswerError> {
        self.decide(Decision::Reject { reason: Some(reason.into()).filter(|reason| !reason.is_empty()) })
            .await
    }

    /// Lets the call run with other arguments.
    ///
    /// No item of the stream shows these. [`Shown::ToolUse`](crate::Shown::ToolUse) has the arguments of the model, and the
    /// reply to the request, in the log of the run, has these.
    ///
    /// # Errors
    /// [`AnswerError::Edit`] if they do not fit the tool, and the request stays open; or as [`approve`](Self::approve).
    pub async fn edit(&self, mut arguments: Value) -> Result<(), AnswerError> {
        self.agent.inner.caller.redactor.value(&mut arguments);
        if let Some((pointer, problem)) = crate::flow::edit_problem(&self.agent, &self.request, &arguments) {
            return Err(AnswerError::Edit { pointer, problem });
        }
        self.decide(Decision::Edit { arguments }).await
    }

    /// Replies with a decision, without the agent's secrets.
    ///
    /// # Errors
    /// If the request is no longer open, or the run cannot be reached.
    pub async fn decide(&self, mut decision: Decision) -> Result<(), AnswerError> {
        let redactor = &self.agent.inner.caller.redactor;
        match &mut decision {
            Decision::Edit { arguments } => redactor.value(arguments),
            Decision::Reject { reason: Some(reason) } => *reason = redactor.text(reason).into_owned(),
            _ => {}
        }
        reply(&self.engine, &self.run, self.seq, super::decision(&decision)).await
    }
}

impl PendingQuestion {
    /// The request of a run of `agent`, if it is a question.
    pub(crate) fn of(engine: &Engine, agent: &Agent, run: &RunId, request: &OpenRequest) -> Option<Self> {
        let asked = request.downcast_ref::<AskUser>()?.clone();
        let (engine, agent, run) = (engine.clone(), agent.clone(), run.clone());
        Some(Self { engine, agent, run, seq: request.seq(), request: asked })
    }

    /// The run that asks: a sub-agent's if a sub-agent asks.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The number of the request in its run.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The question.
    pub fn question(&self) -> &str {
        &self.request.question
    }

    /// Answers, without the agent's secrets.
    ///
    /// # Errors
    /// If the question is no longer open, or the run cannot be reached.
    pub async fn answer(&self, text: impl Into<String>) -> Result<(), AnswerError> {
        let text = self.agent.inner.caller.redactor.text(&text.into()).into_owned();
        reply(&self.engine, &self.run, self.seq, Value::String(text)).await
    }
}

/// Replies to a request of a run that this engine drives, or that it can resume.
pub(crate) async fn reply(engine: &Engine, run: &RunId, seq: Seq, value: Value) -> Result<(), AnswerError> {
    let run = match engine.find(run) {
        Some(run) => run,
        None => engine.attach_any(run.clone()).await?,
    };
    Ok(run.reply_json(seq, value).await?)
}

impl fmt::Debug for PendingApproval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingApproval")
            .field("run", &self.run)
            .field("seq", &self.seq)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PendingQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingQuestion")
            .field("run", &self.run)
            .field("seq", &self.seq)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
