//! Drawing: a workflow's table as Mermaid, DOT and JSON, without running anything, and with a run's report
//! laid over it.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::run::RunReport;
use crate::table::Forecast;

mod build;
mod dot;
mod mermaid;
mod overlay;

/// The graph of a workflow: a node per step and for what lies outside, and an edge per event between two of
/// them.
///
/// ```
/// use workflow_core::prelude::*;
/// # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
/// # #[event(start)]
/// # struct Greet { name: String }
/// # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
/// # #[event(stop)]
/// # struct Greeting(String);
/// # struct Greeter;
/// # #[workflow]
/// # impl Greeter {
/// #     #[step]
/// #     async fn greet(&self, greet: &Greet) -> Greeting {
/// #         Greeting(format!("Hello, {}!", greet.name))
/// #     }
/// # }
/// let graph = Greeter::graph();
/// assert!(graph.to_mermaid().starts_with("flowchart"));
/// assert!(graph.to_dot().starts_with("digraph"));
/// assert_eq!(graph.to_json()["nodes"][0]["kind"], "start");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Graph {
    /// The workflow.
    pub workflow: Arc<str>,
    /// The workflow's doc comment.
    pub description: Arc<str>,
    /// Where events come from and go to.
    pub nodes: Vec<Node>,
    /// An edge per event between two nodes.
    pub edges: Vec<Edge>,
    /// The fan-outs; a branch of one is drawn as a box.
    pub boxes: Vec<BranchBox>,
}

/// Where events come from or go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Node {
    /// What edges name: `start`, `outside`, `stop`, `unread`, or the place of a step as `s0`, `s1`, …
    pub id: String,
    /// The step's name, or the kind.
    pub name: Arc<str>,
    /// What it is.
    pub kind: NodeKind,
    /// The step's doc comment.
    pub description: Arc<str>,
    /// The step's precondition.
    pub precondition: Option<Arc<str>>,
    /// The step's limit per scope.
    pub max_executions: Option<u32>,
    /// The step's executions at a time.
    pub concurrency: Option<u32>,
    /// The innermost box the step runs in, by its place in [`Graph::boxes`].
    pub branch: Option<usize>,
    /// How often the table allows the step to run; none for what is no step.
    pub forecast: Option<Forecast>,
    /// What a run did with the step, where a report is laid over the graph.
    pub ran: Option<NodeRun>,
}

/// What a run did with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodeRun {
    /// How often it was executed.
    pub executions: u64,
    /// How many executions failed.
    pub failed: u64,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeKind {
    /// Where start events come from.
    Start,
    /// Where external events and replies come from, and requests go to.
    Outside,
    /// A step.
    Step,
    /// Where stop events go to.
    Stop,
    /// Where events go that no step takes.
    Unread,
}

/// One event between two nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the edge")]
#[non_exhaustive]
pub struct Edge {
    /// The node that emits it.
    pub from: String,
    /// The node that takes it.
    pub to: String,
    /// The event's wire name.
    pub event: Arc<str>,
    /// How it is taken.
    pub kind: EdgeKind,
    /// Whether the step can run without it.
    pub optional: bool,
    /// Whether one execution can emit several.
    pub many: bool,
    /// Whether each one opens a branch.
    pub fan_out: bool,
    /// Whether it comes only when its time has come.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub timed: bool,
}

/// How an event is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EdgeKind {
    /// One of it.
    One,
    /// All of it so far.
    List,
    /// Exactly the first so many.
    Fixed(u32),
    /// As a reply.
    Reply,
    /// Gathered from settled branches.
    Gather,
    /// As a failure of the step that it comes from.
    Failure,
    /// Not by a step.
    Outside,
}

/// A fan-out: the steps that run in its branches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BranchBox {
    /// The step that fans out.
    pub step: Arc<str>,
    /// The item's wire name.
    pub item: Arc<str>,
    /// The box this one lies in, by its place in [`Graph::boxes`].
    pub within: Option<usize>,
    /// How many branches a run opened, where a report is laid over the graph.
    pub branches: Option<u64>,
    /// How many of them failed.
    pub failed: Option<u64>,
}

impl Graph {
    /// As Mermaid: a `flowchart`.
    pub fn to_mermaid(&self) -> String {
        mermaid::flowchart(self)
    }

    /// As DOT, the language of Graphviz.
    pub fn to_dot(&self) -> String {
        dot::digraph(self)
    }

    /// As JSON, every field of this type.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        // Plain data with text keys always has a form in JSON.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Lays a run over the graph: what ran, how often, what failed, and how many branches there were.
    pub fn with_report(self, report: &RunReport) -> Self {
        overlay::lay(self, report)
    }

    /// Whether no step runs only in a box or in those that lie in it.
    fn is_empty_box(&self, place: usize) -> bool {
        let holds_a_node = self.nodes.iter().any(|node| node.branch == Some(place));
        let mut inner = (0..self.boxes.len()).filter(|inner| self.boxes[*inner].within == Some(place));
        !holds_a_node && inner.all(|inner| self.is_empty_box(inner))
    }
}

impl Edge {
    /// The event with a mark for how it is taken and how many there can be.
    fn label(&self) -> String {
        let event = &self.event;
        let taken = match self.kind {
            EdgeKind::List => format!("[{event}]"),
            EdgeKind::Fixed(count) => format!("{event} ×{count}"),
            EdgeKind::Gather => format!("gather {event}"),
            EdgeKind::One | EdgeKind::Reply | EdgeKind::Failure | EdgeKind::Outside => event.to_string(),
        };
        let optional = if self.optional { "?" } else { "" };
        let many = match (self.fan_out, self.many) {
            (true, _) => " each",
            (_, true) => " *",
            _ => "",
        };
        let timed = if self.timed { " later" } else { "" };
        format!("{taken}{optional}{many}{timed}")
    }
}

impl Node {
    /// The lines of the node's label.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.name.to_string()];
        lines.extend(Some(summary(&self.description)).filter(|summary| !summary.is_empty()));
        lines.extend(self.precondition.as_ref().map(|name| format!("if {name}")));
        lines.extend(self.max_executions.map(at_most));
        lines.extend(self.concurrency.map(|most| format!("{most} at a time")));
        lines.extend(self.ran.map(|ran| ran.to_string()));
        lines
    }
}

/// The first paragraph on one line.
fn summary(description: &str) -> String {
    let lines = description.lines().map(str::trim).skip_while(|line| line.is_empty());
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn at_most(executions: u32) -> String {
    match executions {
        1 => "at most once".into(),
        2 => "at most twice".into(),
        more => format!("at most {more} times"),
    }
}

impl BranchBox {
    fn title(&self) -> String {
        let title = format!("each {} of {}", self.item, self.step);
        match (self.branches, self.failed) {
            (Some(branches), Some(failed)) if failed > 0 => format!("{title}: {branches}, {failed} failed"),
            (Some(branches), _) => format!("{title}: {branches}"),
            _ => title,
        }
    }
}

impl fmt::Display for NodeRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.executions, self.failed) {
            (0, _) => f.write_str("did not run"),
            (ran, 0) => write!(f, "ran ×{ran}"),
            (ran, failed) => write!(f, "ran ×{ran}, {failed} failed"),
        }
    }
}
