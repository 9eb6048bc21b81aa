//! Traces: the visits and the routes of a run, in the words of its document. They are a function of the run's report.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow_core::report::RunReport;

use crate::document::model::Graph;
use crate::{Again, ToolCall, VisitStatus};

mod history;
mod item;
mod log;
mod part;
mod time;
#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests;

pub(crate) use history::{History, Visited};
pub(crate) use item::ItemOf;
pub(crate) use log::{Log, data};
pub(crate) use part::{EventName, StepName};
pub(crate) use time::{milliseconds, moment, optional_milliseconds, optional_moment, spoken, stamp};

/// The reason of the route from a parallel node to the node where its branches meet.
pub(crate) const JOINED: &str = "joined";

/// The way of a run through its graph.
///
/// It prints a line a visit. As JSON it is a map of `visits` and `routes`.
///
/// ```
/// use workflow_graph::{Trace, VisitStatus};
///
/// let trace: Trace = serde_json::from_str(r#"{
///     "visits": [{"node": "pay", "status": "success", "iteration": 1, "attempts": 3, "started_ms": 20, "took_ms": 1500}],
///     "routes": []
/// }"#)?;
/// assert_eq!(trace.visits[0].status, VisitStatus::Success);
/// assert_eq!(trace.to_string(), "pay  success  at 20ms, took 1.5s, 3 attempts\n");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trace {
    /// The visits that have ended, in the order of their ends. Dropped ones are not among them.
    pub visits: Vec<Visit>,
    /// The routes that were taken, in order. A route to the end of the walk is none of them.
    pub routes: Vec<RouteTaken>,
}

/// One visit of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Visit {
    /// The id of the node.
    pub node: Arc<str>,
    /// How the visit ended.
    pub status: VisitStatus,
    /// Which visit of the node it is, from 1, of those that it can see.
    pub iteration: u32,
    /// The number of attempts of the executor. A visit of an agent has one, however often the agent runs: `retries` has why.
    pub attempts: u32,
    /// The branch that the visit lies in: `collect/2` is the second branch of `collect`, and `collect/2/scan/1` the first
    /// one of `scan` in it. Absent outside of branches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Arc<str>>,
    /// Why the visit failed. The warnings of one that was skipped say why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<VisitError>,
    /// Whether the visit was beyond `max_visits`, so that the result before it stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Outcomes that the author of the document may not expect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Arc<str>>,
    /// The calls of tools by the agent of the node, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Why the agent ran again, and judges were asked again, in order. Absent if the visit failed for good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Again>,
    /// When the visit began, since the run did. In JSON as milliseconds: `started_ms`.
    #[serde(default, rename = "started_ms", with = "time::milliseconds")]
    pub started: Duration,
    /// How long it took, with every attempt and the time that people took. In JSON as milliseconds: `took_ms`.
    #[serde(default, rename = "took_ms", with = "time::milliseconds")]
    pub took: Duration,
}

/// The error of a visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VisitError {
    /// The class, such as `transient` or `rejected`.
    pub class: Arc<str>,
    /// The text.
    pub message: Arc<str>,
}

/// A route that a run took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RouteTaken {
    /// The node that it leaves.
    pub from: Arc<str>,
    /// The node that it leads to.
    pub to: Arc<str>,
    /// Why it was taken: its condition, `only path`, `default`, the words of a model, `fallback: …`; `joined` leads from a
    /// parallel node to the node where its branches meet.
    pub reason: Arc<str>,
    /// Which visit of `from` it ended.
    pub iteration: u32,
    /// The branch in which it was taken. A branch begins with a route in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Arc<str>>,
    /// Outcomes that the author of the document may not expect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Arc<str>>,
}

impl Trace {
    /// The trace of a run of the graph.
    pub(crate) fn of(graph: &Graph, report: &RunReport) -> Self {
        History::of(&Log::of(graph, report)).trace
    }
}

impl RouteTaken {
    /// Whether it leads to the node where branches meet, after all of them.
    pub(crate) fn is_join(&self) -> bool {
        *self.reason == *JOINED
    }

    /// Whether a branch begins with it: it lies in one of its own node.
    pub(crate) fn is_opening(&self) -> bool {
        self.branch.as_deref().and_then(|path| path.rsplit('/').nth(1)) == Some(&*self.from)
    }

    /// The number of the branch that begins with it: branches begin in any order, and are numbered in that of the
    /// document. Other routes have the largest one.
    fn number(&self) -> u32 {
        let branch = self.branch.as_deref().filter(|_| self.is_opening());
        let number = branch.and_then(|path| path.rsplit('/').next()?.parse().ok());
        number.unwrap_or(u32::MAX)
    }

    /// Whether it leaves the visit, perhaps into a branch.
    fn leaves(&self, visit: &Visit) -> bool {
        let (inner, outer) = (self.branch.as_deref(), visit.branch.as_deref());
        let is_inside = match (inner, outer) {
            (Some(inner), Some(outer)) => {
                inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            (_, outer) => outer.is_none(),
        };
        is_inside && self.from == visit.node && self.iteration == visit.iteration
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |visit: &Visit| match visit.iteration {
            0 | 1 => visit.node.to_string(),
            more => format!("{} #{more}", visit.node),
        };
        let width = self.visits.iter().map(|visit| name(visit).chars().count()).max().unwrap_or(0);
        let mut routes: HashMap<&str, Vec<&RouteTaken>> = HashMap::new();
        self.routes.iter().for_each(|route| routes.entry(&route.from).or_default().push(route));
        for visit in &self.visits {
            write!(f, "{:width$}  {visit}", name(visit))?;
            let taken = routes.get(&*visit.node).into_iter().flatten().filter(|route| route.leaves(visit));
            let mut taken: Vec<_> = taken.collect();
            taken.sort_by_key(|route| route.number());
            for (place, route) in taken.into_iter().enumerate() {
                f.write_str(if place == 0 { " → " } else { ", " })?;
                write!(f, "{} ({}", route.to, route.reason)?;
                // A reason says the fallback itself, unless its document gives the reason other words.
                let more = route.warnings.iter().filter(|warning| !route.reason.contains(&***warning));
                more.into_iter().try_for_each(|warning| write!(f, "; {}", on_one_line(warning)))?;
                f.write_str(")")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A visit without its node: status, branch, times, attempts, and why it failed or was skipped.
impl fmt::Display for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:7}", self.status)?;
        self.branch.iter().try_for_each(|branch| write!(f, "  in {branch}"))?;
        write!(f, "  at {}, took {}", spoken(self.started), spoken(self.took))?;
        if self.attempts > 1 {
            write!(f, ", {} attempts", self.attempts)?;
        }
        if !self.retries.is_empty() {
            let times = if self.retries.len() == 1 { "retry" } else { "retries" };
            write!(f, ", {} {times}", self.retries.len())?;
        }
        if !self.calls.is_empty() {
            let calls = if self.calls.len() == 1 { "call" } else { "calls" };
            write!(f, ", {} {calls} of tools", self.calls.len())?;
        }
        if self.kept {
            f.write_str(", beyond max_visits: the result before it stays")?;
        }
        match (&self.error, self.status) {
            (Some(error), _) => write!(f, ": {error}"),
            // The warnings of a visit that did not run say why.
            (None, VisitStatus::Skipped) if !self.warnings.is_empty() => {
                write!(f, ": {}", on_one_line(&self.warnings.join("; ")))
            }
            (None, _) => Ok(()),
        }
    }
}

/// Class and text on one line.
impl fmt::Display for VisitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, on_one_line(&self.message))
    }
}

/// The text with one space for each run of white space.
pub(crate) fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for VisitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        })
    }
}
