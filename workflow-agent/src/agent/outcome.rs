//! How a run of an agent ends.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow_core::{Event, EventSet, RunId};

use crate::budget::Spent;
use crate::entry::FailureClass;
use crate::model::Usage;
use crate::phase::Conversation;

/// The end of a run: an answer, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, EventSet)]
#[non_exhaustive]
pub enum Outcome {
    /// The agent answered.
    Answered(Answer),
    /// The run stopped before.
    Stopped(Stopped),
}

impl Outcome {
    /// The text of the answer, or the last text before the stop.
    pub fn text(&self) -> &str {
        match self {
            Self::Answered(answer) => &answer.text,
            Self::Stopped(stopped) => &stopped.text,
        }
    }

    /// The tokens that the run used, sub-agents and summaries included.
    pub fn usage(&self) -> Usage {
        match self {
            Self::Answered(answer) => answer.usage,
            Self::Stopped(stopped) => stopped.usage,
        }
    }

    /// The tool calls that ran, those of sub-agents included.
    pub fn tool_calls(&self) -> u64 {
        match self {
            Self::Answered(answer) => answer.tool_calls,
            Self::Stopped(stopped) => stopped.tool_calls,
        }
    }

    /// The amounts that the run used.
    pub(crate) fn spent(&self) -> Spent {
        Spent { usage: self.usage(), cost: self.cost(), tool_calls: self.tool_calls() }
    }

    /// The cost, in the currency of the model's price; 0 without one.
    pub fn cost(&self) -> f64 {
        match self {
            Self::Answered(answer) => answer.cost,
            Self::Stopped(stopped) => stopped.cost,
        }
    }
}

/// The answer of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop, display, name = "agent.answered")]
#[non_exhaustive]
pub struct Answer {
    /// The text; for an answer with data and without text, the data as JSON.
    pub text: String,
    /// The data, if the run has an output schema.
    #[serde(default, deserialize_with = "crate::entry::some", skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The tokens that the run used, sub-agents and summaries included.
    pub usage: Usage,
    /// The cost, in the currency of the model's price; 0 without one.
    #[serde(default)]
    pub cost: f64,
    /// The tool calls that ran, those of sub-agents included.
    #[serde(default)]
    pub tool_calls: u64,
    /// The conversation, if the prompt asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// The work behind the answer, if the prompt asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) work: Option<Work>,
}

/// The work behind an answer, for the caller that continues it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// The run that answered.
    pub(crate) run: RunId,
    /// Its calls of tools that ended, in order.
    pub(crate) calls: Vec<Called>,
}

/// A call of a tool that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Called {
    pub(crate) tool: Arc<str>,
    pub(crate) ok: bool,
}

impl Answer {
    /// Reads the data as `T`.
    ///
    /// # Errors
    /// [`DataError::None`] if the prompt had no output schema, and [`DataError::Unfit`] if the data is no `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, DataError> {
        let data = self.data.as_ref().ok_or(DataError::None)?;
        serde_path_to_error::deserialize(data).map_err(|error| {
            let path = error.path().to_string();
            DataError::Unfit { path, source: error.into_inner() }
        })
    }
}

/// Why the data of an answer is no value of a type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The answer has a text only.
    #[error(
        "the answer has no data: ask with `Agent::ask_for`, or give the prompt a type with `Prompt::output_of`"
    )]
    None,
    /// The data is not of the type.
    #[error("the data of the answer cannot be read at `{path}`: {source}")]
    Unfit {
        /// The path of the problem.
        path: String,
        /// The problem.
        source: serde_json::Error,
    },
}

/// A run that stopped without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop, display, name = "agent.stopped")]
#[non_exhaustive]
pub struct Stopped {
    /// The reason.
    pub reason: StopReason,
    /// The last text of the model; empty if there is none.
    pub text: String,
    /// The tokens that the run used, sub-agents and summaries included.
    pub usage: Usage,
    /// The cost, in the currency of the model's price; 0 without one.
    #[serde(default)]
    pub cost: f64,
    /// The tool calls that ran, those of sub-agents included.
    #[serde(default)]
    pub tool_calls: u64,
}

/// ` at` and the place, unless that is the whole answer.
fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" at `{path}`") }
}

/// Why a run stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The run made as many model calls as it may.
    #[error("the run reached its limit of {turns} turns: raise `max_turns`, or switch on `closing_call`")]
    TurnLimit {
        /// The limit.
        turns: u32,
    },
    /// The answer, or two replies with calls in a row, reached the longest output.
    #[error("the model's reply reached its longest length: raise `max_output`, or ask for less at a time")]
    OutputLimit,
    /// The model or its provider refused.
    #[error("the model refused to answer")]
    Refused,
    /// The same calls had the same results again and again.
    #[error(
        "the model made the same calls with the same results in {turns} turns running: look at what the tool returns, or \
         raise `repeats`"
    )]
    Looping {
        /// The number of turns.
        turns: u32,
    },
    /// The judge escalated.
    #[error("the judge escalated: {why}")]
    Escalated {
        /// The reason of the judge.
        why: Arc<str>,
    },
    /// The judge wanted another answer too often.
    #[error("the judge did not accept an answer after {retries} retries: {feedback}")]
    JudgeRetries {
        /// The number of retries.
        retries: u32,
        /// Its last feedback.
        feedback: Arc<str>,
    },
    /// The answer did not fit its schema too often.
    #[error("the answer does not fit its schema{}: {problem}", at(path))]
    InvalidOutput {
        /// The JSON pointer of the last misfit.
        path: Arc<str>,
        /// The last misfit.
        problem: Arc<str>,
    },
    /// The budget is used up.
    #[error(
        "the budget is used up after {tokens} tokens and {tool_calls} tool calls: raise the agent's `Budget`"
    )]
    Budget {
        /// The tokens used.
        tokens: u64,
        /// The tool calls that ran.
        tool_calls: u64,
    },
    /// A step failed for good.
    #[error("a failure ended the run ({}): {error}", class.as_str())]
    Failed {
        /// The class of the failure.
        class: FailureClass,
        /// The failure.
        error: Arc<str>,
    },
}

impl StopReason {
    /// Whether the exchange belongs to its session all the same.
    pub(crate) fn is_partial_answer(&self) -> bool {
        matches!(self, Self::TurnLimit { .. } | Self::OutputLimit | Self::Budget { .. })
    }
}
