//! The handle of an agent's run: a stream of everything that it shows, and the answers of people.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::stream::Stream;
use serde_json::{Value, json};
use workflow_chat::{Chunk, Thought};
use workflow_core::report::OpenRequest;
use workflow_core::{
    DisplayItem, Engine, ExecutionId, RequestEnd, RunError, RunHandle, RunId, RunStatus, SendError, Seq,
};

mod feed;
mod open;
mod pending;
mod piece;

pub(crate) use feed::{Fed, Feed};
#[cfg(feature = "graph")]
pub(crate) use open::{Open, requests};
pub(crate) use pending::reply;
pub use pending::{AnswerError, PendingApproval, PendingQuestion};
pub use piece::Piece;

use crate::agent::{Agent, Outcome};
use crate::approval::{ApproveTool, AskUser};
use crate::entry::{Summarised, ToolCall, ToolDone};
use crate::flow::Steer;

/// A run of an agent: a stream of [`Shown`] items, and the handle of the run.
///
/// Dropping it does not affect the run. Items that the run showed before the stream began come first, as far as the
/// engine's display still has them.
pub struct AgentRun {
    engine: Engine,
    agent: Agent,
    run: RunHandle<Agent>,
    feed: Feed<Shown>,
}

/// An item that an agent's run shows.
#[derive(Debug)]
#[non_exhaustive]
pub enum Shown {
    /// A piece of the model's text. Pieces with one execution belong to one reply; a run of several turns has several
    /// replies, and only the last one is the answer.
    Delta(Piece),
    /// A piece of the model's thoughts, with the execution of their reply.
    Thought(Piece),
    /// The agent handles a tool call, with the arguments of the model. A person may [edit](PendingApproval::edit) them.
    ToolUse(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolDone),
    /// The older part of the conversation was replaced by a summary, since it would soon exceed the context window. The
    /// model reads the summary in its place.
    Summarised(Summarised),
    /// A tool call waits for a person: a call of this run, or of a sub-agent at any depth.
    ///
    /// Those of sub-agents come as they are too, and not inside of [`SubAgent`](Self::SubAgent). Their
    /// [`run`](PendingApproval::run) is that of the sub-agent.
    Approval(PendingApproval),
    /// The model asks a person: that of this run, or of a sub-agent at any depth, as with [`Approval`](Self::Approval).
    Question(PendingQuestion),
    /// A request of the run `run` is no longer open: an approval or a question, also of a sub-agent.
    Closed {
        /// The run that asked.
        run: RunId,
        /// The number of the request in that run.
        seq: Seq,
        /// How it was closed.
        how: RequestEnd,
    },
    /// An item of a sub-agent, at any depth, but no approval, question or end of one.
    SubAgent {
        /// The run of the sub-agent.
        run: RunId,
        /// The item.
        item: Box<Self>,
    },
    /// An attempt failed: remove each [`Delta`](Self::Delta) and [`Thought`](Self::Thought) with this execution and
    /// attempt.
    ///
    /// Attempts of tools are retracted too, and other texts stay. Executions belong to their run: a retraction inside of
    /// [`SubAgent`](Self::SubAgent) concerns pieces of the same sub-agent's run.
    Retracted {
        /// The execution.
        execution: ExecutionId,
        /// Its attempt.
        attempt: u32,
    },
    /// The viewer was too slow for this many items; `None` after a restart.
    Missed(Option<u64>),
    /// The run has answered or stopped, and has ended. The stream ends.
    Done(Outcome),
    /// The run ended in another way, such as cancelled. The stream ends.
    Ended(RunStatus),
}

impl AgentRun {
    pub(crate) fn new(engine: Engine, agent: Agent, run: RunHandle<Agent>) -> Self {
        let feed = Feed::new(run.display());
        Self { engine, agent, run, feed }
    }

    /// Attaches to a run of the agent: to watch it, to answer its requests, or for its outcome. A run that an ended
    /// process left resumes.
    ///
    /// # Errors
    /// If there is no such run, or the engine cannot drive it.
    pub async fn attach(
        engine: &Engine,
        agent: &Agent,
        run: impl Into<RunId>,
    ) -> Result<Self, workflow_core::ResumeError> {
        let handle = engine.attach::<Agent>(run).await?;
        Ok(Self::new(engine.clone(), agent.clone(), handle))
    }

    /// The id.
    pub fn id(&self) -> &RunId {
        self.run.id()
    }

    /// The core's handle, for reports, explanations and everything else.
    pub fn handle(&self) -> &RunHandle<Agent> {
        &self.run
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// If the run was cancelled, timed out, or lost its store.
    pub async fn outcome(&self) -> Result<Outcome, RunError> {
        self.run.outcome().await
    }

    /// Sends a message, which the next model call sees, marked as data. Secrets of the agent are removed from it before
    /// anything is stored.
    ///
    /// # Errors
    /// If the run has ended.
    pub async fn steer(&self, text: impl Into<Arc<str>>) -> Result<(), SendError> {
        let text = self.agent.inner.caller.redactor.shared(&text.into());
        self.run.send(Steer::new(text)).await
    }

    /// Ends the run.
    ///
    /// # Errors
    /// If the run has ended, or its store failed.
    pub async fn cancel(&self, reason: impl Into<Arc<str>>) -> Result<(), SendError> {
        let reason = self.agent.inner.caller.redactor.shared(&reason.into());
        self.run.cancel(reason).await
    }

    /// The messages that no model call of the run has seen, in order. Ask for them once the run has ended.
    ///
    /// # Errors
    /// If the run is unknown meanwhile, or its store failed.
    pub async fn unheard(&self) -> Result<Vec<Arc<str>>, RunError> {
        let report = self.run.report_so_far().await?;
        let entries: Vec<Arc<crate::entry::Entry>> =
            report.log.iter().filter_map(|logged| logged.value.downcast()).collect();
        let own: Vec<&crate::entry::Entry> = entries.iter().map(|entry| &**entry).collect();
        let unheard = crate::transcript::unheard(&own).filter_map(|index| match own[index] {
            crate::entry::Entry::Steer { text } => Some(Arc::clone(text)),
            _ => None,
        });
        let mut texts: Vec<Arc<str>> = unheard.collect();
        // The end of the run dropped steps that had not logged their message. Steps log in any order.
        let mut logged: Vec<&str> = own
            .iter()
            .filter_map(|entry| match entry {
                crate::entry::Entry::Steer { text } => Some(&**text),
                _ => None,
            })
            .collect();
        let sent = report.log.iter().filter_map(|logged| logged.value.downcast::<Steer>());
        for text in sent.map(|steer| self.agent.heard(&steer)) {
            match logged.iter().position(|logged| **logged == *text) {
                Some(place) => drop(logged.swap_remove(place)),
                None => texts.push(text),
            }
        }
        Ok(texts)
    }

    /// The open approvals of the run and of its sub-agents, at any depth: first those of the run.
    ///
    /// For a page that lists them; the stream has each as it is asked. A sub-agent's run that an ended process left
    /// resumes. The run of an agent without sub-agents only looks its open requests up. Each open run of an agent that has
    /// sub-agents makes a report too, in O(events + executions) of that run, to find those below.
    ///
    /// A run that ended or stopped here has none.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn approvals(&self) -> Result<Vec<PendingApproval>, SendError> {
        let open = self.open().await?.into_iter();
        let pending = open.filter_map(|open::Open { run, agent, request }| {
            PendingApproval::of(&self.engine, &agent, &run, &request)
        });
        Ok(pending.collect())
    }

    /// The open questions of the run and of its sub-agents, at any depth, in the order and at the cost of
    /// [`approvals`](Self::approvals).
    ///
    /// # Errors
    /// If the store failed.
    pub async fn questions(&self) -> Result<Vec<PendingQuestion>, SendError> {
        let open = self.open().await?.into_iter();
        let pending = open.filter_map(|open::Open { run, agent, request }| {
            PendingQuestion::of(&self.engine, &agent, &run, &request)
        });
        Ok(pending.collect())
    }

    /// A run that ended or stopped here has none.
    async fn open(&self) -> Result<Vec<open::Open>, SendError> {
        match open::requests(&self.engine, &self.agent, self.run.any()).await {
            Err(SendError::Ended { .. } | SendError::Stopped { .. }) => Ok(Vec::new()),
            open => open,
        }
    }

    /// The item of the stream for an item of the display, if people need it.
    fn shown(&self, item: &DisplayItem) -> Option<Shown> {
        match item {
            DisplayItem::Child { path, item } => {
                let child = path.last()?;
                let agent = crate::sub_agent::find(&self.agent, self.run.workflow(), &child.workflow)?;
                match shown(&self.engine, &child.run, agent, item)? {
                    shown @ (Shown::Approval(_) | Shown::Question(_) | Shown::Closed { .. }) => Some(shown),
                    Shown::Ended(_) => None,
                    shown => Some(Shown::SubAgent { run: child.run.clone(), item: Box::new(shown) }),
                }
            }
            item => shown(&self.engine, self.id(), &self.agent, item),
        }
    }
}

/// The first open request among all runs of an engine, if there is one: a viewer that was too slow finds requests of
/// sub-agents here, too.
pub(crate) async fn first_request(engine: &Engine) -> Result<Option<OpenRequest>, SendError> {
    for run in engine.running() {
        let Some(run) = engine.find(&run) else { continue };
        match run.requests().await {
            Ok(requests) if requests.is_empty() => {}
            Ok(requests) => return Ok(requests.into_iter().next()),
            Err(SendError::Ended { .. } | SendError::Stopped { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The tool for which a request asks a person, or `ask_user`.
pub(crate) fn tool_of(request: &OpenRequest) -> Option<String> {
    match request.downcast_ref::<ApproveTool>() {
        Some(asked) => Some(asked.tool.to_string()),
        None => request.downcast_ref::<AskUser>().map(|_| crate::agent::ASK_USER.to_owned()),
    }
}

/// The item for an item that a run of `agent` itself displays, if people need it.
pub(crate) fn shown(engine: &Engine, run: &RunId, agent: &Agent, item: &DisplayItem) -> Option<Shown> {
    Some(match item {
        DisplayItem::Asked { request } => {
            let approval = PendingApproval::of(engine, agent, run, request).map(Shown::Approval);
            approval.or_else(|| PendingQuestion::of(engine, agent, run, request).map(Shown::Question))?
        }
        DisplayItem::Closed { seq, how } => Shown::Closed { run: run.clone(), seq: *seq, how: *how },
        DisplayItem::Retracted { execution, attempt, .. } => {
            Shown::Retracted { execution: *execution, attempt: *attempt }
        }
        DisplayItem::Missed { count } => Shown::Missed(*count),
        DisplayItem::Ended { status } => Shown::Ended(*status),
        item => shown_event(item)?,
    })
}

/// The item for an event that a step showed, or that entered the log.
fn shown_event(item: &DisplayItem) -> Option<Shown> {
    if let DisplayItem::Shown { execution, attempt, event, .. } = item {
        let piece = |text: &str| Piece { text: text.to_owned(), execution: *execution, attempt: *attempt };
        if let Some(chunk) = event.downcast_ref::<Chunk>() {
            return Some(Shown::Delta(piece(&chunk.text)));
        }
        if let Some(thought) = event.downcast_ref::<Thought>() {
            return Some(Shown::Thought(piece(&thought.text)));
        }
    }
    if let Some(call) = item.event::<ToolCall>() {
        return Some(Shown::ToolUse(call.clone()));
    }
    if let Some(done) = item.event::<ToolDone>() {
        return Some(Shown::ToolResult(done.clone()));
    }
    if let Some(summarised) = item.event::<Summarised>() {
        return Some(Shown::Summarised(summarised.clone()));
    }
    if let Some(answer) = item.event::<crate::agent::Answer>() {
        return Some(Shown::Done(Outcome::Answered(answer.clone())));
    }
    item.event::<crate::agent::Stopped>().map(|stopped| Shown::Done(Outcome::Stopped(stopped.clone())))
}

impl Stream for AgentRun {
    type Item = Shown;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Shown>> {
        loop {
            match ready!(self.feed.poll(cx)) {
                None => return Poll::Ready(None),
                Some(Fed::Ready(shown)) => return Poll::Ready(Some(shown)),
                Some(Fed::Displayed(DisplayItem::Ended { status })) => {
                    let run = self.run.clone();
                    self.feed
                        .end(async move { run.outcome().await.map_or(Shown::Ended(status), Shown::Done) });
                }
                Some(Fed::Displayed(item)) => match self.shown(&item) {
                    // The end has the outcome.
                    Some(Shown::Done(_)) | None => {}
                    Some(shown) => self.feed.add(shown),
                },
            }
        }
    }
}

impl fmt::Debug for AgentRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentRun").field("id", self.id()).finish_non_exhaustive()
    }
}

/// The JSON of a decision.
fn decision(decision: &crate::approval::Decision) -> Value {
    serde_json::to_value(decision).unwrap_or_else(|_| json!({ "decision": "reject" }))
}
