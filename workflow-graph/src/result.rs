//! The result of a run of a graph: its output, the latest result of each node, and its trace, read out of its log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow_core::errors::{BranchFailure, BranchItem};
use workflow_core::report::{Quality, RunReport};
use workflow_core::{AnyEvent, RunError, ScopeId};

use crate::document::model::Dialect;
use crate::error::GraphError;
use crate::state::{Begin, GraphStatus, NodeResult, Output, VisitStatus, names, part_of};
use crate::tool_call::ToolCall;
use crate::trace::{self, History, ItemOf, Trace, VisitError, spoken};
use crate::walk::Walk;

mod shared;

pub use shared::SharedOutcome;

/// The most failed branches that a message names.
const BRANCHES: usize = 5;

/// The end of a run that came to an end of its own.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct GraphResult {
    /// How the walk ended.
    pub status: GraphStatus,
    /// The node at which the walk ended.
    pub at: String,
    /// The output of the graph. Null at the step limit and in a dry run.
    pub output: Value,
    /// The latest result of each node that ran outside of branches, or whose branches have met. Of a run that ended before
    /// that, those in branches, too.
    pub results: BTreeMap<String, NodeOutcome>,
    /// Whether every visit succeeded, some failure was handled, or the run was no success.
    pub quality: Quality,
    /// Visits and routes, in the order of the log.
    pub trace: Trace,
    /// Warnings of visits and routes, each with its node.
    pub warnings: Vec<String>,
    /// The routes of the last node that a dry run could take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// The sources of an imported document, each with its hash. Native documents have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceHash>,
    /// Whether the run began with another version of the document.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub document_changed: bool,
}

/// A text that an imported document names or contains, as it was when the document was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SourceHash {
    /// Where the document has it, such as `nodes.study.rules[0]`.
    pub place: String,
    /// The file, as the document names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The first 16 hexadecimal digits of the SHA-256 of the text.
    pub hash: String,
}

/// The latest result of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeOutcome {
    /// Whether the node succeeded, failed or was skipped.
    pub status: VisitStatus,
    /// Its data.
    pub data: Value,
    /// The text of its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Which visit of the node it was, from 1.
    pub iteration: u32,
    /// The calls of tools by the agent, in order: 10,000 at most, with 32 KiB for each input and output, and 1 MiB for all.
    /// Larger ones are cut. A failure that nothing caught leaves none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// The checks of `ensure` that failed and those that held, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, bool>,
}

/// The end of a run that failed, was cancelled, or ran out of time.
#[derive(Debug)]
#[non_exhaustive]
pub struct GraphFailure {
    /// The engine's error.
    pub error: RunError,
    /// The node that failed, if one did.
    pub node: Option<String>,
    /// The place of the item at which it failed, from 0, in a node with `for_each`.
    pub item: Option<u64>,
    /// The latest result of each node so far.
    pub results: BTreeMap<String, NodeOutcome>,
    /// Visits and routes so far.
    pub trace: Trace,
    /// Warnings so far.
    pub warnings: Vec<String>,
    /// The time that the document allows.
    time: Option<Duration>,
    /// The items at which nodes failed, as messages name them: of each failure that the error has.
    items: Vec<Option<String>>,
}

impl GraphResult {
    pub(crate) fn of(walk: &Walk, output: &AnyEvent, report: Option<&RunReport>) -> Result<Self, GraphError> {
        let output = parsed(output)?;
        let read = Log::of(walk, report);
        let quality = match (output.status, report.map(|report| report.quality)) {
            (GraphStatus::StepLimit, _) => Quality::Failed,
            (_, Some(quality)) if quality != Quality::Clean => quality,
            _ if output.carried.degraded => Quality::Degraded,
            _ => Quality::Clean,
        };
        Ok(Self {
            status: output.status,
            at: output.at.to_string(),
            output: output.output,
            results: read.results,
            quality,
            trace: read.trace,
            warnings: read.warnings,
            candidates: output.candidates.iter().map(ToString::to_string).collect(),
            sources: match &walk.graph.dialect {
                Dialect::Sweny(sweny) => sweny.sources.clone(),
                Dialect::Native | Dialect::Hive(_) => Vec::new(),
            },
            document_changed: read.document.is_some_and(|document| Some(document) != walk.document()),
        })
    }

    /// The output of a child.
    pub(crate) fn output_of(graph: &str, ended: &AnyEvent) -> Result<Value, GraphError> {
        let output = parsed(ended)?;
        match output.status {
            GraphStatus::StepLimit => Err(GraphError::StepLimit { graph: graph.to_owned() }),
            _ => Ok(output.output),
        }
    }
}

fn parsed(event: &AnyEvent) -> Result<Output, GraphError> {
    let value = event.as_json().unwrap_or(&Value::Null);
    Output::deserialize(value).map_err(|error| GraphError::Unreadable(error.to_string()))
}

impl GraphFailure {
    pub(crate) fn of(walk: &Walk, error: RunError, report: Option<&RunReport>) -> Self {
        let read = Log::of(walk, report);
        let failures: Vec<(&str, Option<ItemOf<'_>>)> = match &error {
            RunError::StepFailed { step, item, .. } => vec![(&**step, item_of(report, item.as_deref()))],
            RunError::BranchesFailed { failures, .. } => {
                let failed = |failure: &BranchFailure| item_of(report, failure.item());
                failures.iter().take(BRANCHES).map(|failure| (failure.step(), failed(failure))).collect()
            }
            _ => Vec::new(),
        };
        let first = failures.first();
        let node = first.map(|(step, _)| step.split(':').next().unwrap_or(step).to_owned());
        let item = first.and_then(|(_, item)| Some(item.as_ref()?.index));
        let items = failures.iter().map(|(_, item)| item.map(ItemOf::name)).collect();
        let Log { results, trace, warnings, .. } = read;
        Self { node, item, results, trace, warnings, time: walk.graph.limits.time, items, error }
    }
}

/// The item of a node with `for_each` whose branch failed.
fn item_of<'a>(report: Option<&'a RunReport>, item: Option<&BranchItem>) -> Option<ItemOf<'a>> {
    ItemOf::at(report?, item?.seq)
}

impl GraphFailure {
    /// ` at item 3 (index 2, …)`, for the failure of this place.
    fn at_item(&self, place: usize) -> String {
        let item = self.items.get(place).and_then(Option::as_ref);
        item.map(|item| format!(" at {item}")).unwrap_or_default()
    }
}

impl fmt::Display for GraphFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.error, &self.node, self.time) {
            (RunError::TimedOut { after, .. }, _, Some(time)) if *after == time => {
                write!(f, "the graph was active for as long as its `limits.time` allows: {}", spoken(time))
            }
            // Attempts to be asked again are none.
            (RunError::StepFailed { step, class, source, .. }, Some(node), _)
                if step.ends_with(":expired") =>
            {
                write!(f, "`{node}` failed{} ({class}): {source}", self.at_item(0))
            }
            (RunError::StepFailed { attempts, class, source, .. }, Some(node), _) => {
                let times = if *attempts == 1 { "attempt" } else { "attempts" };
                let item = self.at_item(0);
                write!(f, "`{node}` failed{item} after {attempts} {times} ({class}): {source}")
            }
            (RunError::BranchesFailed { failures }, ..) => {
                write!(f, "{} branches failed", failures.len())?;
                for (place, failure) in failures.iter().take(BRANCHES).enumerate() {
                    let (node, error) =
                        (failure.step().split(':').next().unwrap_or_default(), failure.error());
                    let before = if place == 0 { ": " } else { "; " };
                    write!(f, "{before}`{node}`{} ({}): {error}", self.at_item(place), error.class())?;
                }
                Ok(())
            }
            (error, ..) => error.fmt(f),
        }
    }
}

/// A run so far, by its log.
#[derive(Default)]
struct Log {
    results: BTreeMap<String, NodeOutcome>,
    trace: Trace,
    warnings: Vec<String>,
    document: Option<Arc<str>>,
}

impl Log {
    fn of(walk: &Walk, report: Option<&RunReport>) -> Self {
        let Some(report) = report else { return Self::default() };
        let indexed = trace::Log::of(&walk.graph, report);
        let mut log = Self { trace: History::of(&indexed).trace, ..Self::default() };
        let mut ended: Option<Output> = None;
        let nodes = walk.graph.nodes.len();
        let [mut outside, mut in_branches] = [vec![None; nodes], vec![None; nodes]];
        for logged in &report.log {
            if let Some(node) = walk.graph.find(&logged.event) {
                if logged.scope == ScopeId::ROOT {
                    outside[node] = Some(&logged.value);
                } else if indexed.settled(logged.scope).is_none() {
                    // What ended with its branches before is published, or of no account.
                    in_branches[node] = Some(&logged.value);
                }
            } else if &*logged.event == names::INPUT {
                log.document = trace::data::<Begin>(logged).and_then(|begin| begin.document);
            } else if &*logged.event == names::OUTPUT {
                ended = trace::data(logged);
            }
        }
        // A run that ended within branches has no join that would have published their results.
        let is_whole = ended
            .as_ref()
            .is_some_and(|end| matches!(end.status, GraphStatus::Completed | GraphStatus::NoMatch));
        for (place, (outside, inside)) in outside.into_iter().zip(in_branches).enumerate() {
            let latest = outside.or(inside.filter(|_| !is_whole));
            if let Some(Ok(result)) = latest.map(part_of) {
                log.results.insert(walk.graph.nodes[place].id.value.to_string(), NodeOutcome::of(result));
            }
        }
        let visits =
            log.trace.visits.iter().flat_map(|visit| visit.warnings.iter().map(|text| (&visit.node, text)));
        let routes =
            log.trace.routes.iter().flat_map(|route| route.warnings.iter().map(|text| (&route.from, text)));
        let end = ended.iter().flat_map(|end| end.warnings.iter().map(|text| (&end.at, text)));
        log.warnings =
            visits.chain(routes).chain(end).map(|(node, text)| format!("`{node}`: {text}")).collect();
        log
    }
}

impl NodeOutcome {
    /// The failure of a visit that left nothing in the log.
    pub(crate) fn failed(iteration: u32, error: &VisitError) -> Self {
        Self {
            status: VisitStatus::Failed,
            data: Value::Null,
            error: Some(error.message.to_string()),
            iteration,
            calls: Vec::new(),
            checks: BTreeMap::new(),
        }
    }

    fn of(result: NodeResult) -> Self {
        let checks = result.verdicts.iter();
        Self {
            status: result.status,
            data: result.data,
            error: result.error.map(|error| error.message.to_string()),
            iteration: result.visit,
            calls: result.calls,
            checks: checks.map(|verdict| (verdict.check.to_string(), verdict.failure.is_none())).collect(),
        }
    }
}
