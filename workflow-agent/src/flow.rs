//! The workflow of an agent: which step takes which event. Each step's work is in a file of its own below.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow_chat::ChatTurn;
use workflow_core::prelude::*;
use workflow_core::{Cancellation, StepFailed};

mod admit;
mod call;
mod collect;
mod finish;
mod judge;
mod open;
mod request;
mod shorten;
mod state;
mod think;

pub(crate) use admit::edit_problem;
use request::Sources;
pub(crate) use state::State;

use crate::agent::{Agent, Outcome, Prompt, StopReason, Terms};
use crate::approval::{ApproveTool, AskUser};
use crate::budget::Spent;
use crate::entry::{Entry, ToolCall, ToolDone};
use crate::model::Usage;

/// The model is to be called.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.think")]
pub(crate) struct Think {}

/// The calls of a reply are to be run.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.call_tools")]
pub(crate) struct CallTools {
    /// The entries of the run that the model saw. The first reply behind them is the one with the calls: messages may have
    /// arrived before it.
    pub(crate) seen: usize,
}

/// A reply that may be the answer.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.candidate")]
pub(crate) struct CandidateAnswer {
    /// The entries of the run that the model saw: see [`CallTools::seen`].
    pub(crate) seen: usize,
}

/// The conversation is to be summarised.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.shorten")]
pub(crate) struct Shorten {
    /// The rounds that stay.
    pub(crate) rounds: usize,
    /// Whether an error of the provider led to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) overflow: bool,
}

/// The answer counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "agent.accepted")]
pub(crate) struct Accepted {
    /// Its data, if there is a schema.
    #[serde(default, deserialize_with = "crate::entry::some", skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
    /// The tokens of the judge, and their cost.
    pub(crate) usage: Usage,
    #[serde(default)]
    pub(crate) cost: f64,
}

/// The run is to stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(name = "agent.stopping")]
pub(crate) struct Stopping {
    pub(crate) reason: StopReason,
    /// The tokens of a judge that led to it, and their cost.
    #[serde(default)]
    pub(crate) usage: Usage,
    #[serde(default)]
    pub(crate) cost: f64,
}

impl From<StopReason> for Stopping {
    fn from(reason: StopReason) -> Self {
        Self { reason, usage: Usage::default(), cost: 0.0 }
    }
}

/// A call of a read-only tool may run.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.read_call")]
pub(crate) struct ReadCall {
    /// Arguments that an approval edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<Value>,
}

/// A call of a tool that acts may run.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.act_call")]
pub(crate) struct ActCall {
    /// Arguments that an approval edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<Value>,
}

/// Sub-agents may run.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.spawn_call")]
pub(crate) struct SpawnCall {}

/// A message for a run that works: the next model call sees it, marked as data.
///
/// [`AgentRun::steer`](crate::AgentRun::steer) sends one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Event)]
#[event(external, name = "agent.steer")]
#[non_exhaustive]
pub struct Steer {
    /// The text, at most 1 MiB; the rest is left out.
    pub text: Arc<str>,
}

impl Steer {
    /// A message.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into() }
    }
}

/// The event that follows a turn.
#[derive(Debug, EventSet)]
pub(crate) enum Next {
    Think(Think),
    CallTools(CallTools),
    Candidate(CandidateAnswer),
    Shorten(Shorten),
    Stopping(Stopping),
}

/// The event that follows a judgement.
#[derive(Debug, EventSet)]
pub(crate) enum Judged {
    Accepted(Accepted),
    Think(Think),
    Stopping(Stopping),
}

/// The event that follows results, or a summary.
#[derive(Debug, EventSet)]
pub(crate) enum Continued {
    Think(Think),
    Stopping(Stopping),
}

/// The event that follows the check of a call.
#[derive(Debug, EventSet)]
pub(crate) enum Admitted {
    Read(ReadCall),
    Act(ActCall),
    Spawn(SpawnCall),
    Done(ToolDone),
}

/// The end of the work.
#[derive(Debug, EventSet)]
pub(crate) enum Ending {
    Accepted(Accepted),
    Stopping(Stopping),
}

#[workflow(output = Outcome)]
impl Agent {
    /// Begins a run for a prompt: what session and memory add, and the message.
    #[step]
    async fn open(
        &self,
        prompt: &Prompt,
        thread: &ThreadContext,
        info: &RunInfo,
    ) -> Result<(Vec<Entry>, Think), StepError> {
        Ok((open::entries(self, prompt, thread, info).await?, Think {}))
    }

    /// Begins a run for a turn of a chat, whose client keeps the conversation.
    #[step]
    async fn open_chat(
        &self,
        turn: &ChatTurn,
        thread: &ThreadContext,
    ) -> Result<(Vec<Entry>, Think), StepError> {
        Ok((open::chat_entries(self, turn, thread).await?, Think {}))
    }

    /// Calls the model.
    #[step(loops)]
    async fn think(
        &self,
        _: &Think,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        chat: Passive<&ChatTurn>,
        thread: &ThreadContext,
        engine: &Engine,
        display: &Display,
    ) -> Result<(Vec<Entry>, Next), StepError> {
        let own: Vec<&Entry> = entries.iter().collect();
        let terms = Terms { prompt: *prompt, agent: self };
        think::turn(&terms, &own, *chat, Sources { thread, engine }, display).await
    }

    /// Opens a branch for each call of a reply.
    #[step]
    async fn dispatch(&self, calls: &CallTools, entries: Passive<List<Entry>>) -> FanOut<ToolCall> {
        let behind = (calls.seen..entries.len()).filter_map(|index| entries.get(index));
        admit::branches(state::reply_behind(behind, 0))
    }

    /// Checks a call: unknown tools and unfit arguments end here, and a person is asked where the tool wants it.
    #[step]
    async fn admit(
        &self,
        call: &ToolCall,
        prompt: Passive<&Prompt>,
        entries: Passive<List<Entry>>,
        context: &RunContext,
    ) -> Result<(Option<Admitted>, Option<Expiring<ApproveTool>>, Option<Expiring<AskUser>>), StepError> {
        let terms = Terms { prompt: *prompt, agent: self };
        let admitted = admit::call(&terms, call, entries.iter(), context).await?;
        let expires = self.inner.rules.approval_expires;
        Ok(match admitted {
            admit::Admission::Go(admitted) => (Some(admitted), None, None),
            admit::Admission::Approve(ask) => (None, Some(ask.expires_in(expires)), None),
            admit::Admission::Ask(ask) => (None, None, Some(ask.expires_in(expires))),
        })
    }

    /// Takes a person's decision.
    #[step]
    async fn approved(
        &self,
        decision: &Reply<ApproveTool>,
        call: Passive<&ToolCall>,
        context: &RunContext,
    ) -> Result<Admitted, StepError> {
        let Some(call) = *call else { return Err(StepError::permanent("the branch has no call")) };
        admit::decided(self, call, decision, context).await
    }

    /// Handles an approval that nobody gave in time.
    #[step]
    async fn unanswered(&self, asked: &Expired<ApproveTool>, call: Passive<&ToolCall>) -> Option<ToolDone> {
        let _ = asked;
        call.map(|call| admit::unanswered(self, call))
    }

    /// Takes the answer to a question of the model.
    #[step]
    async fn told(&self, answer: &Reply<AskUser>, call: Passive<&ToolCall>) -> Option<ToolDone> {
        call.map(|call| call::output(self, call, answer.value(), false))
    }

    /// Handles a question that nobody answered in time.
    #[step]
    async fn untold(&self, asked: &Expired<AskUser>, call: Passive<&ToolCall>) -> Option<ToolDone> {
        let _ = asked;
        call.map(|call| ToolDone::error(call, "nobody answered in time, and the question expired"))
    }

    /// Runs a call of a read-only tool, beside others.
    #[step(concurrency = 16)]
    async fn read(
        &self,
        admitted: &ReadCall,
        call: Passive<&ToolCall>,
        display: &Display,
        cancellation: &Cancellation,
        info: &RunInfo,
    ) -> Result<Option<ToolDone>, StepError> {
        let Some(call) = *call else { return Ok(None) };
        call::run(self, call, admitted.edited.as_ref(), display, cancellation, info).await.map(Some)
    }

    /// Runs a call of a tool that acts, one at a time.
    #[step(concurrency = 1)]
    async fn act(
        &self,
        admitted: &ActCall,
        call: Passive<&ToolCall>,
        display: &Display,
        cancellation: &Cancellation,
        info: &RunInfo,
    ) -> Result<Option<ToolDone>, StepError> {
        let Some(call) = *call else { return Ok(None) };
        call::run(self, call, admitted.edited.as_ref(), display, cancellation, info).await.map(Some)
    }

    /// Runs sub-agents as child runs.
    #[step]
    async fn spawn(
        &self,
        _: &SpawnCall,
        call: Passive<&ToolCall>,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        children: &Children,
        info: &RunInfo,
        engine: &Engine,
    ) -> Result<Option<ToolDone>, StepError> {
        let Some(call) = *call else { return Ok(None) };
        let terms = Terms { prompt: *prompt, agent: self };
        let own: Vec<&Entry> = entries.iter().collect();
        let place = crate::sub_agent::Place { children, info, engine };
        crate::sub_agent::spawn(&terms, call, &State::of(&own, self), &place).await.map(Some)
    }

    /// Gives a call whose step failed for good its result.
    #[step(catches = [admit, approved, unanswered, told, untold, read, act, spawn])]
    async fn failed(
        &self,
        failed: &StepFailed,
        call: Passive<&ToolCall>,
        info: &RunInfo,
        engine: &Engine,
    ) -> Option<ToolDone> {
        let done = call::failed(self, (*call)?, failed);
        if &*failed.step != "spawn" {
            return Some(done);
        }
        // Sub-agents may have worked before.
        let tasks = crate::sub_agent::Unfinished::new(self, info, engine, failed.execution);
        let Spent { usage, cost, tool_calls } = tasks.spent_so_far().await;
        Some(ToolDone { usage: Some(usage), cost, tool_calls, ..done })
    }

    /// Collects the results of all calls.
    #[step]
    async fn collect(
        &self,
        results: &Gather<ToolDone>,
        entries: Passive<List<Entry>>,
    ) -> (Vec<Entry>, Continued) {
        collect::results(self, results, &entries)
    }

    /// Summarises the older part of the conversation.
    #[step]
    async fn shorten(
        &self,
        shorten: &Shorten,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        chat: Passive<&ChatTurn>,
        thread: &ThreadContext,
        engine: &Engine,
    ) -> Result<(Option<Entry>, Continued), StepError> {
        let own: Vec<&Entry> = entries.iter().collect();
        let terms = Terms { prompt: *prompt, agent: self };
        shorten::summary(&terms, shorten, &own, *chat, Sources { thread, engine }).await
    }

    /// Checks an answer, asks the judge, and ends the phase or the run.
    #[step]
    async fn judge(
        &self,
        candidate: &CandidateAnswer,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        chat: Passive<&ChatTurn>,
    ) -> Result<(Option<Entry>, Judged), StepError> {
        let own: Vec<&Entry> = entries.iter().collect();
        let terms = Terms { prompt: *prompt, agent: self };
        judge::candidate(&terms, candidate.seen, &own, *chat).await
    }

    /// Logs a message that arrived meanwhile.
    #[step]
    async fn hear(&self, steer: &Steer) -> Entry {
        Entry::Steer { text: self.heard(steer) }
    }

    /// Ends the run: the exchange enters its session and the memory, once.
    #[step]
    async fn finish(
        &self,
        ending: Ending,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        chat: Passive<&ChatTurn>,
        thread: &ThreadContext,
        info: &RunInfo,
        children: &Children,
        engine: &Engine,
    ) -> Result<Outcome, StepError> {
        let own: Vec<&Entry> = entries.iter().collect();
        let terms = Terms { prompt: *prompt, agent: self };
        let place = finish::Place { thread, info, children, engine };
        finish::run(&terms, ending, &own, *chat, &place).await
    }

    /// Ends a run in which a step failed for good.
    #[step(catches = [open, open_chat, think, dispatch, collect, shorten, judge, hear, finish])]
    async fn give_up(
        &self,
        failed: &StepFailed,
        entries: Passive<List<Entry>>,
        prompt: Passive<&Prompt>,
        accepted: Passive<&Accepted>,
        stopping: Passive<&Stopping>,
        thread: &ThreadContext,
    ) -> Result<crate::agent::Stopped, StepError> {
        let own: Vec<&Entry> = entries.iter().collect();
        let terms = Terms { prompt: *prompt, agent: self };
        // The last verdict of a judge is in no entry.
        let accepted = accepted.map(|accepted| (accepted.usage, accepted.cost));
        let judged = accepted.or_else(|| stopping.map(|stopping| (stopping.usage, stopping.cost)));
        finish::gave_up(&terms, failed, &own, judged.unwrap_or_default(), thread).await
    }
}

impl Agent {
    /// The text of a message as the conversation has it: without secrets, and within its bound.
    pub(crate) fn heard(&self, steer: &Steer) -> Arc<str> {
        let text = self.inner.caller.redactor.shared(&steer.text);
        if text.len() <= crate::agent::TEXT {
            text
        } else {
            crate::tool::head(&text, crate::agent::TEXT).into()
        }
    }
}
