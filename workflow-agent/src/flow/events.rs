//! The events between the steps of an agent, and the choices among them that steps return.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow_core::prelude::*;

use super::order::Planned;
use crate::agent::StopReason;
use crate::approval::{ApproveTool, AskUser};
use crate::entry::{Entry, ToolCall, ToolDone};
use crate::model::Usage;

/// The run belongs to a session.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.in_session")]
pub(crate) struct InSession {}

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
    /// The summary of the parts before, if there are any: a long conversation is summarised part by part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<SummarisedPart>,
}

/// The summary of the first parts of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SummarisedPart {
    pub(crate) text: Arc<str>,
    /// The number of parts that it has.
    pub(crate) parts: usize,
    /// The first entry of the run that stays.
    pub(crate) keep: usize,
    /// The tokens of its calls.
    pub(crate) usage: Usage,
}

impl Shorten {
    pub(crate) fn new(rounds: usize, overflow: bool) -> Self {
        Self { rounds, overflow, after: None }
    }
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

/// A call of a read-only tool begins.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.read_call")]
pub(crate) struct ReadCall {
    #[serde(default)]
    pub(crate) call: Arc<str>,
    /// Arguments that an approval edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<Value>,
}

/// A call of a tool that acts begins.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.act_call")]
pub(crate) struct ActCall {
    #[serde(default)]
    pub(crate) call: Arc<str>,
    /// Arguments that an approval edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<Value>,
}

/// Sub-agents begin.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(name = "agent.spawn_call")]
pub(crate) struct SpawnCall {
    #[serde(default)]
    pub(crate) call: Arc<str>,
}

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

/// The event that follows a summary.
#[derive(Debug, EventSet)]
pub(crate) enum Shortened {
    Think(Think),
    Shorten(Shorten),
    Stopping(Stopping),
}

/// The event that follows results.
#[derive(Debug, EventSet)]
pub(crate) enum Continued {
    Think(Think),
    Stopping(Stopping),
}

/// The event that begins a call.
#[derive(Debug, EventSet)]
pub(crate) enum Start {
    Read(ReadCall),
    Act(ActCall),
    Spawn(SpawnCall),
}

/// The event that begins a call which may change something.
#[derive(Debug, EventSet)]
pub(crate) enum Acting {
    Act(ActCall),
    Spawn(SpawnCall),
}

/// The calls of a reply and their order, the requests to people, the first calls that begin, and the results of those that do
/// not run.
pub(super) type Dispatched =
    (Vec<ToolCall>, Planned, Vec<Expiring<ApproveTool>>, Vec<Expiring<AskUser>>, Vec<Start>, Vec<ToolDone>);

/// The calls that begin next, or the entries of all results and the event that follows.
pub(super) type Collected = (Vec<Start>, Vec<Entry>, Option<Continued>);

/// The end of the work.
#[derive(Debug, EventSet)]
pub(crate) enum Ending {
    Accepted(Accepted),
    Stopping(Stopping),
}
