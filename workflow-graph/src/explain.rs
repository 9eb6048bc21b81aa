//! Explanations: for each node of a graph the routes that led there, or why each route did not. They are a function of the
//! graph and the run's report, so they can be made at any time, also from a journal.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;
use workflow_core::report::RunReport;
use workflow_core::{RunId, RunStatus};

use crate::VisitError;
use crate::document::model::Graph;
use crate::draw::kind;
use crate::routes::{Route, routes};
use crate::trace::{History, Log};

mod decision;
mod dry;
mod ends;
mod failed;
mod led;
mod meet;
mod memory;
mod once;
mod order;
mod summary;
mod text;
mod under_way;
mod view;
mod waits;
mod why;
#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests;

pub use decision::{Decided, Decision, OtherRoute};
pub use ends::{FailedHow, FailedItem, FailedItems, VisitsEnded};
pub use led::Led;
pub use meet::{BranchEnd, BranchState, Meeting};
use under_way::Begun;
pub use under_way::Dropped;
pub use waits::Wait;

/// Where a run is, and why each node was visited or not.
///
/// It prints for people, and serialises for programs.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The id of the run.
    pub run: RunId,
    /// The name of the graph.
    pub graph: Arc<str>,
    /// The status of the run.
    pub status: RunStatus,
    /// Where the run is, or how it ended, in a sentence.
    pub summary: String,
    /// The events for which the run waits. Empty once it has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// The nodes, in the order of the document.
    pub nodes: Vec<NodeExplanation>,
}

/// Why one node was visited, or not.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NodeExplanation {
    /// The id of the node.
    pub node: Arc<str>,
    /// The kind of its work and the name of that, such as `function orders.find`.
    pub kind: String,
    /// The number of its visits that have ended.
    pub visits: u32,
    /// Whether a visit of it has begun and not ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub under_way: bool,
    /// Why its last visit without an end was dropped, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<Dropped>,
    /// The visits that did not just succeed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<VisitsEnded>,
    /// Whether runs begin with it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub start: bool,
    /// The branches that meet at it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meets: Vec<Meeting>,
    /// The routes that were taken to it. Those with which branches arrive at it are in `meets`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub led: Vec<Led>,
    /// How its last four visits chose between several routes, in their order. Those before the last are there only if they
    /// led to another node, and values or other routes tell why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// The routes to it that were not taken. Empty if it was visited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_taken: Vec<NotTaken>,
}

/// A route that was never taken.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NotTaken {
    /// The node that it leaves.
    pub from: Arc<str>,
    /// The route: its condition or place, as drawings label it.
    pub route: String,
    /// The reason, as the latest visit of `from` has it.
    #[serde(flatten)]
    pub why: WhyNot,
}

/// Why a route was not taken.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhyNot {
    /// The node before was not visited.
    NotVisited,
    /// The node before has not ended yet, or its model has not chosen.
    UnderWay,
    /// The condition was false.
    DidNotHold {
        /// Which visit of the node before.
        visit: u32,
        /// The values that the condition saw, each with its path as the document writes it.
        values: Vec<SeenValue>,
    },
    /// The condition could not be evaluated.
    Erred {
        /// Which visit of the node before.
        visit: u32,
        /// The error.
        error: String,
        /// The values that the condition saw.
        values: Vec<SeenValue>,
    },
    /// The route had been taken as often as its `max` allows.
    UsedUp {
        /// The bound.
        max: u32,
        /// The values that its condition saw, with which it would have held.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        values: Vec<SeenValue>,
    },
    /// The visit of the node before has no end: it was dropped.
    Dropped {
        /// Why it was.
        since: Dropped,
    },
    /// The branch had not begun when another one failed, or the run ended.
    NotBegun {
        /// Why it never will.
        since: Dropped,
    },
    /// Another route of the list came first, and held.
    AnotherRoute {
        /// Its reason.
        taken: Arc<str>,
        /// The node that it leads to, or `end`.
        to: Arc<str>,
        /// If the condition of this route holds, too: the values that it saw.
        #[serde(skip_serializing_if = "Option::is_none")]
        also: Option<Vec<SeenValue>>,
    },
    /// The model chose another one.
    NotChosen {
        /// The reason of the one that was taken.
        taken: Arc<str>,
        /// The node that it leads to.
        to: Arc<str>,
    },
    /// The node before did not fail.
    DidNotFail,
    /// The node before failed.
    Failed {
        /// Its error.
        error: Option<VisitError>,
    },
    /// A dry run ended at the node before, and a run would take the route.
    WouldTake {
        /// The values that its condition saw.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        values: Vec<SeenValue>,
    },
    /// A dry run ended at the node before, where a run asks a model.
    WouldAsk,
    /// The walk ended at the node before, by a limit, a dry run or an end of the run.
    WalkEnded,
}

/// A value that a condition saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SeenValue {
    /// The path, as the document writes it.
    pub path: String,
    /// The value, or a short form of a long one as text; absent if the path led to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Where a path ends that led to none, or where a null comes from, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
}

impl Explanation {
    /// Explains a run of the graph, as it is at the time `now`.
    pub(crate) fn of(graph: &Graph, report: &RunReport, now: SystemTime) -> Self {
        let log = Log::of(graph, report);
        let history = History::of(&log);
        let begun = Begun::of(&log, &history);
        let routes = routes(graph);
        let why = why::Why::of(&log, &history, &routes, &begun);
        let waits = if report.status.is_ended() { Vec::new() } else { waits::waits(&log, now) };
        Self {
            run: report.run.clone(),
            graph: graph.name.value.clone(),
            status: report.status,
            summary: summary::summary(&log, &history, &begun, &why),
            waits,
            nodes: nodes(&log, &history, &begun, &why),
        }
    }
}

/// Each node in the order of the document.
fn nodes(log: &Log<'_>, history: &History, begun: &Begun, why: &why::Why<'_, '_>) -> Vec<NodeExplanation> {
    let graph = log.graph;
    let routes = why.routes;
    let mut visits = vec![0_u32; graph.nodes.len()];
    history.visited.iter().for_each(|visited| visits[visited.node] += 1);
    let mut led = led::led(log, history, routes);
    let taken = led::taken(history);
    let mut ends = ends::ends(log, history);
    let mut to_node: HashMap<usize, Vec<&Route<'_>>> = HashMap::new();
    for route in routes {
        to_node.entry(route.to.unwrap_or(usize::MAX)).or_default().push(route);
    }
    let mut found = Vec::with_capacity(graph.nodes.len());
    for (place, node) in graph.nodes.iter().enumerate() {
        let led = led.remove(&place).unwrap_or_default();
        let is_led = |route: &Route<'_>| {
            let ends = (&*graph.nodes[route.from].id.value, &*node.id.value);
            taken.get(&ends).is_some_and(|reasons| reasons.iter().any(|reason| route.fits(reason)))
        };
        let open = to_node.get(&place).into_iter().flatten();
        let open = open.filter(|route| visits[place] == 0 && !is_led(route));
        let not_taken = open.map(|route| NotTaken {
            from: graph.nodes[route.from].id.value.clone(),
            route: route.to_string(),
            why: why.not(route),
        });
        found.push(NodeExplanation {
            node: node.id.value.clone(),
            kind: kind(&node.work),
            visits: visits[place],
            under_way: begun.under_way[place],
            dropped: begun.dropped[place],
            ends: std::mem::take(&mut ends[place]),
            meets: meet::meetings(log, history, begun, place),
            start: graph.start() == Some(place),
            decisions: decision::decisions(why, place),
            not_taken: not_taken.collect(),
            led,
        });
    }
    found
}
