//! Drawings: a workflow's table as Mermaid, DOT and JSON, without running the workflow. The report of a run
//! can be laid over a drawing.
//!
//! ```
//! use workflow_core::prelude::*;
//! use workflow_core::draw::{EdgeKind, NodeKind};
//! # #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! # #[event(start)]
//! # struct Greet { name: String }
//! # #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
//! # #[event(stop)]
//! # struct Greeting(String);
//! # struct Greeter;
//! # #[workflow]
//! # impl Greeter {
//! #     #[step]
//! #     async fn greet(&self, greet: &Greet) -> Greeting {
//! #         Greeting(format!("Hello, {}!", greet.name))
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let graph = Greeter::graph();
//! let steps: Vec<_> = graph.nodes.iter().filter(|node| node.kind == NodeKind::Step).collect();
//! assert_eq!((&*steps[0].name, &steps[0].ran), ("greet", &None));
//! let taken = graph.edges.iter().find(|edge| edge.to == steps[0].id).unwrap();
//! assert_eq!((&*taken.from, &*taken.event, taken.kind), ("start", "Greet", EdgeKind::One));
//!
//! let engine = Engine::builder().workflow(Greeter).build()?;
//! let run = engine.start::<Greeter>(Greet { name: "Ada".into() }).await?;
//! let graph = Greeter::graph().with_report(&*run.report().await?);
//! let greet = graph.nodes.iter().find(|node| &*node.name == "greet").unwrap();
//! assert_eq!(greet.ran.as_ref().unwrap().executions, 1);
//! println!("{}", graph.to_mermaid());
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::report::RunReport;
use crate::spec::OnEnd;
use crate::table::Forecast;

mod build;
mod by_hand;
mod dot;
mod layout;
mod mermaid;
mod overlay;

/// The graph of a workflow: nodes for steps and for the outside, and an edge per event between two nodes.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Graph {
    /// The name of the workflow.
    pub workflow: Arc<str>,
    /// The description of the workflow: its doc comment.
    pub description: Arc<str>,
    /// The nodes: first those around the steps, as far as edges use them, then the steps in declaration
    /// order.
    pub nodes: Vec<Node>,
    /// The edges: one per event between two nodes.
    pub edges: Vec<Edge>,
    /// The fan-outs, whose branches are drawn as boxes.
    pub boxes: Vec<BranchBox>,
}

/// A source or a target of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Node {
    /// The id that edges refer to: `start`, `outside`, `stop`, `unread`, or for the steps `s0`, `s1`, …
    pub id: String,
    /// The name of the step; for other nodes the id.
    pub name: Arc<str>,
    /// The kind of the node.
    pub kind: NodeKind,
    /// The description of the step; empty for other nodes.
    pub description: Arc<str>,
    /// The precondition of the step.
    pub precondition: Option<Arc<str>>,
    /// The step's limit of executions per scope.
    pub max_executions: Option<u32>,
    /// The step's limit of concurrent executions.
    pub concurrency: Option<u32>,
    /// Whether the step is `at_most_once`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_most_once: bool,
    /// The ends of a run at which the step runs, of a clean-up step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_end: Option<OnEnd>,
    /// The innermost box that the step runs in, as an index of [`Graph::boxes`].
    pub branch: Option<usize>,
    /// The forecast of the step; `None` for other nodes.
    pub forecast: Option<Forecast>,
    /// The step's part in a run, if a report is laid over the graph.
    pub ran: Option<NodeRun>,
}

/// The part of a step in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeRun {
    /// The number of executions.
    pub executions: u64,
    /// The number of failed executions.
    pub failed: u64,
    /// The number of executions that wait until the run is unpaused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deferred: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeKind {
    /// The source of start events.
    Start,
    /// The source of external events and replies, and the target of requests.
    Outside,
    /// A step.
    Step,
    /// The target of stop events.
    Stop,
    /// The target of events that no step takes.
    Unread,
}

/// One event type between two nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts about the edge")]
#[non_exhaustive]
pub struct Edge {
    /// The id of the node that emits the event.
    pub from: String,
    /// The id of the node that takes the event.
    pub to: String,
    /// The wire name of the event.
    pub event: Arc<str>,
    /// How the target takes the event.
    pub kind: EdgeKind,
    /// Whether the target can run without the event.
    pub optional: bool,
    /// Whether the target reads the event when another one triggers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passive: bool,
    /// Whether one execution can emit several.
    pub many: bool,
    /// Whether each event opens a branch.
    pub fan_out: bool,
    /// Whether the event enters the log when a timer fires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed: bool,
    /// Whether the step takes the event at the end of a run, for clean-up. The event does not trigger it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cleans_up: bool,
}

/// How a node takes an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EdgeKind {
    /// One event.
    One,
    /// Every event so far.
    List,
    /// Exactly the first events, in this number.
    Fixed(u32),
    /// The reply to a request.
    Reply,
    /// The events of settled branches.
    Gather,
    /// The failure of the step that the edge comes from.
    Failure,
    /// Not by a step: the target lies outside.
    Outside,
}

/// A fan-out, drawn as a box around the steps that run in its branches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BranchBox {
    /// The step that opens the fan-out.
    pub step: Arc<str>,
    /// The wire name of the item.
    pub item: Arc<str>,
    /// The box around this one, as an index of [`Graph::boxes`].
    pub within: Option<usize>,
    /// The number of branches of a run, if a report is laid over the graph.
    pub branches: Option<u64>,
    /// The number of failed branches of that run.
    pub failed: Option<u64>,
    /// The number of branches of that run that were dropped, since enough others had settled; `None` if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
}

impl Graph {
    /// Draws the graph as a Mermaid `flowchart`. The cost grows with the drawing.
    pub fn to_mermaid(&self) -> String {
        mermaid::flowchart(self)
    }

    /// Draws the graph as DOT, the language of Graphviz. The cost grows with the drawing.
    pub fn to_dot(&self) -> String {
        dot::digraph(self)
    }

    /// Returns every field of the graph as JSON.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        // Plain data with text keys always has a form in JSON.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Lays a run over the graph: executions, failures and, in a paused run, deferred executions per step, and numbers of
    /// branches.
    pub fn with_report(self, report: &RunReport) -> Self {
        overlay::lay(self, report)
    }
}

impl Edge {
    /// The event, with marks for how it is taken and how many there can be.
    fn label(&self) -> String {
        let event = &self.event;
        let taken = match self.kind {
            EdgeKind::List => format!("[{event}]"),
            EdgeKind::Fixed(count) => format!("{event} ×{count}"),
            EdgeKind::Gather => format!("gather {event}"),
            EdgeKind::One | EdgeKind::Reply | EdgeKind::Failure | EdgeKind::Outside => event.to_string(),
        };
        let optional = if self.optional && !self.passive { "?" } else { "" };
        let reads = if self.passive { "reads " } else { "" };
        let many = match (self.fan_out, self.many) {
            (true, _) => " each",
            (_, true) => " *",
            _ => "",
        };
        let timed = if self.timed { " later" } else { "" };
        format!("{reads}{taken}{optional}{many}{timed}")
    }
}

impl Node {
    /// The lines of the node's label.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.name.to_string()];
        lines.extend(Some(summary(&self.description)).filter(|summary| !summary.is_empty()));
        lines.extend(self.precondition.as_ref().map(|name| format!("if {name}")));
        lines.extend(self.max_executions.map(at_most));
        lines.extend(self.on_end.map(|ends| format!("clean-up: {ends}")));
        lines.extend(self.concurrency.map(|most| format!("{most} at a time")));
        lines.extend(self.at_most_once.then(|| "at most once".to_owned()));
        lines.extend(self.ran.map(|ran| ran.to_string()));
        lines
    }
}

/// The first paragraph, on one line.
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
        let Some(branches) = self.branches else { return title };
        let failed = self.failed.filter(|failed| *failed > 0);
        let failed = failed.map_or_else(String::new, |failed| format!(", {failed} failed"));
        let dropped = self.dropped.map_or_else(String::new, |dropped| format!(", {dropped} dropped"));
        format!("{title}: {branches}{failed}{dropped}")
    }
}

impl fmt::Display for NodeRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.executions, self.failed) {
            (0, _) => f.write_str("did not run")?,
            (ran, 0) => write!(f, "ran ×{ran}")?,
            (ran, failed) => write!(f, "ran ×{ran}, {failed} failed")?,
        }
        if self.deferred == 0 { Ok(()) } else { write!(f, ", {} deferred", self.deferred) }
    }
}
