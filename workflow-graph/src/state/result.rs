//! Results of visits, and the parts of them that steps, traces and observers read: out of the value that a step left in
//! memory, or out of its JSON.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use workflow_core::AnyEvent;

use super::{Carried, Done, Failure, VisitStatus, is_default};
use crate::retried::Again;
use crate::tool_call::ToolCall;

/// `n`: the latest result of node `n`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct NodeResult {
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) status: VisitStatus,
    #[serde(default)]
    pub(crate) data: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
    /// Which visit of the node it is, from 1.
    pub(crate) visit: u32,
    /// The visit kept the result before it: it was beyond `max_visits`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) kept: bool,
    /// The work of the node in this run so far, for scripts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) done: Done,
    /// The branches that the visit opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) opened: Vec<Arc<str>>,
    /// The checks of `ensure` and their verdicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) verdicts: Vec<Verdict>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<Arc<str>>,
    #[serde(rename = "walk", default)]
    pub(crate) carried: Carried,
    /// The calls of tools by agents, in order, within the bounds of reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<ToolCall>,
    /// Why agents ran again in this visit, and judges were asked again, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) retries: Vec<Again>,
    /// The conversation of an agent, for the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<Value>,
    /// Keys of a Hive document's memory.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) writes: Map<String, Value>,
}

/// The part of a result that events tell.
#[derive(Debug, Deserialize)]
pub(crate) struct Ended {
    #[serde(default)]
    pub(crate) status: VisitStatus,
    #[serde(default)]
    pub(crate) error: Option<Failure>,
    pub(crate) visit: u32,
    #[serde(default)]
    pub(crate) kept: bool,
    #[serde(default)]
    pub(crate) warnings: Vec<Arc<str>>,
}

/// The part of a result that a trace tells.
#[derive(Debug, Deserialize)]
pub(crate) struct Traced {
    #[serde(default)]
    pub(crate) status: VisitStatus,
    #[serde(default)]
    pub(crate) error: Option<Failure>,
    pub(crate) visit: u32,
    #[serde(default)]
    pub(crate) kept: bool,
    #[serde(default)]
    pub(crate) warnings: Vec<Arc<str>>,
    #[serde(default)]
    pub(crate) calls: Vec<ToolCall>,
    #[serde(default)]
    pub(crate) retries: Vec<Again>,
}

/// The calls of tools in a result.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Calls {
    #[serde(default)]
    pub(crate) calls: Vec<ToolCall>,
}

/// The number of the visit that left a result.
#[derive(Debug, Deserialize)]
pub(crate) struct Numbered {
    pub(crate) visit: u32,
}

/// A check of `ensure` and its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) check: Arc<str>,
    /// Why the check does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

/// The part of a result that steps read, without its data.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct About {
    pub(crate) visit: u32,
    #[serde(default)]
    pub(crate) done: Done,
    #[serde(default)]
    pub(crate) walk: Carried,
    #[serde(default)]
    pub(crate) opened: Vec<Arc<str>>,
    #[serde(default)]
    pub(crate) status: VisitStatus,
    #[serde(default)]
    pub(crate) kept: bool,
}

impl From<&NodeResult> for NodeResult {
    fn from(result: &NodeResult) -> Self {
        result.clone()
    }
}

impl From<&NodeResult> for About {
    fn from(result: &NodeResult) -> Self {
        Self {
            visit: result.visit,
            done: result.done,
            walk: result.carried.clone(),
            opened: result.opened.clone(),
            status: result.status,
            kept: result.kept,
        }
    }
}

impl From<&NodeResult> for Ended {
    fn from(result: &NodeResult) -> Self {
        Self {
            status: result.status,
            error: result.error.clone(),
            visit: result.visit,
            kept: result.kept,
            warnings: result.warnings.clone(),
        }
    }
}

impl From<&NodeResult> for Traced {
    fn from(result: &NodeResult) -> Self {
        Self {
            status: result.status,
            error: result.error.clone(),
            visit: result.visit,
            kept: result.kept,
            warnings: result.warnings.clone(),
            calls: result.calls.clone(),
            retries: result.retries.clone(),
        }
    }
}

impl From<&NodeResult> for Calls {
    fn from(result: &NodeResult) -> Self {
        Self { calls: result.calls.clone() }
    }
}

impl From<&NodeResult> for Numbered {
    fn from(result: &NodeResult) -> Self {
        Self { visit: result.visit }
    }
}

/// A part of the result that an event is.
///
/// # Errors
///
/// The event is no result.
pub(crate) fn part_of<T>(event: &AnyEvent) -> Result<T, serde_json::Error>
where
    T: DeserializeOwned + for<'r> From<&'r NodeResult>,
{
    match event.typed_output::<NodeResult>() {
        Some(result) => Ok(result.into()),
        None => T::deserialize(event.as_json().unwrap_or(&Value::Null)),
    }
}

/// The data of the result that an event is.
pub(crate) fn data_of(event: &AnyEvent) -> Option<&Value> {
    match event.typed_output::<NodeResult>() {
        Some(result) => Some(&result.data),
        None => event.as_json()?.get("data"),
    }
}
