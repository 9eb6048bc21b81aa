//! Where a run stands: whether it works, or waits for people, with the questions that it and its children have open. It
//! changes nothing.

use std::time::SystemTime;

use futures_util::future::BoxFuture;
use workflow_core::report::{ExecutionOutcome, RunReport};
use workflow_core::{Engine, RunStatus, SendError};
use workflow_graph::{Gate, GraphError, GraphRun};

/// The deepest child whose questions are found.
const DEPTH: usize = 32;

/// Where a run stands.
pub(crate) struct Standing {
    pub(crate) is_paused: bool,
    /// Nothing happens before a question is answered, or its time is over.
    pub(crate) is_still: bool,
    /// The open questions of the run, then those of its children.
    pub(crate) gates: Vec<Open>,
}

/// An open question.
pub(crate) struct Open {
    /// The run that asks: the one that is driven, or a child.
    pub(crate) run: GraphRun,
    pub(crate) gate: Gate,
    /// The name by which `answer` finds it.
    pub(crate) label: String,
}

impl Standing {
    pub(crate) async fn of(engine: &Engine, run: &GraphRun) -> Result<Self, GraphError> {
        let mut found = Vec::new();
        let Visited { is_still, is_paused } =
            visit(engine, run.clone(), String::new(), &mut found, DEPTH).await?;
        let gates = labelled(run, found);
        Ok(Self { is_paused, is_still: is_still && (is_paused || !gates.is_empty()), gates })
    }
}

struct Visited {
    is_still: bool,
    is_paused: bool,
}

/// An open question, and the nodes that run the child in which it is asked.
struct Found {
    run: GraphRun,
    gate: Gate,
    path: String,
}

/// Adds the open questions of a run and of its children.
fn visit<'a>(
    engine: &'a Engine,
    run: GraphRun,
    path: String,
    gates: &'a mut Vec<Found>,
    depth: usize,
) -> BoxFuture<'a, Result<Visited, GraphError>> {
    Box::pin(async move {
        let Ok(report) = run.run().report_so_far().await else {
            // It has no driver any more: its outcome says why.
            return Ok(Visited { is_still: false, is_paused: false });
        };
        let open = match run.gates().await {
            Err(GraphError::Send(SendError::Ended { .. } | SendError::Stopped { .. })) => Vec::new(),
            open => open?,
        };
        let is_overdue = open.iter().any(|gate| gate.deadline.is_some_and(|end| end <= SystemTime::now()));
        gates.extend(open.into_iter().map(|gate| Found { run: run.clone(), gate, path: path.clone() }));
        let mut is_still = !is_overdue && matches!(report.status, RunStatus::Waiting | RunStatus::Running);
        let mut is_working = false;
        for execution in report.trace.iter().filter(|execution| is_running(&execution.outcome)) {
            is_working = true;
            let children = children(engine, &report, execution.execution).await;
            is_still &= execution.next_attempt.is_none() && !children.is_empty();
            for child in children {
                is_still &= match child {
                    Some(child) if depth > 0 => {
                        let node = execution.step.split(':').next().unwrap_or_default();
                        visit(engine, child, format!("{path}{node}/"), gates, depth - 1).await?.is_still
                    }
                    _ => false,
                };
            }
        }
        // An event that has not been evaluated, or an execution that waits for its turn.
        is_still &= is_working || report.status == RunStatus::Waiting;
        let is_paused = report.status == RunStatus::Paused;
        Ok(Visited { is_still: is_still || is_paused, is_paused })
    })
}

fn is_running(outcome: &ExecutionOutcome) -> bool {
    matches!(outcome, ExecutionOutcome::Running)
}

/// The open children of an execution. One that the engine does not drive is none.
async fn children(
    engine: &Engine,
    report: &RunReport,
    execution: workflow_core::ExecutionId,
) -> Vec<Option<GraphRun>> {
    let mut children = Vec::new();
    for child in &report.children {
        if child.child.execution == execution && !child.status.is_ended() {
            children.push(match engine.find(&child.child.run) {
                Some(_) => GraphRun::attach(engine, child.child.run.clone()).await.ok(),
                None => None,
            });
        }
    }
    children
}

/// Labels questions: by node, behind the nodes that run its child; with the number of the question where a node asks several,
/// and with the run where several children do.
fn labelled(root: &GraphRun, gates: Vec<Found>) -> Vec<Open> {
    let labels: Vec<String> = gates
        .iter()
        .map(|Found { run, gate, path }| {
            let same = || gates.iter().filter(|other| other.path == *path && other.gate.node == gate.node);
            if same().count() == 1 {
                return format!("{path}{}", gate.node);
            }
            let several = same().filter(|other| other.run.id() == run.id()).count() > 1;
            let own = if several { format!("{}", gate.id) } else { gate.node.clone() };
            if run.id() == root.id() { own } else { format!("{}/{own}", run.id()) }
        })
        .collect();
    gates.into_iter().zip(labels).map(|(Found { run, gate, .. }, label)| Open { run, gate, label }).collect()
}

/// The end of a run, as a sentence has it.
pub(crate) fn has_ended(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Completed => "has completed",
        RunStatus::Failed => "has failed",
        RunStatus::Cancelled => "was cancelled",
        RunStatus::TimedOut => "has used up its time",
        RunStatus::Stalled => "has stalled",
        _ => "has ended",
    }
}

/// The question of a name: its label, its number, or a node that asks once.
///
/// # Errors
///
/// The text names the open questions.
pub(crate) fn named<'a>(gates: &'a [Open], name: &str) -> Result<&'a Open, String> {
    let number = name.strip_prefix('#').unwrap_or(name);
    let by_label = || gates.iter().find(|open| open.label == name);
    let by_number = || gates.iter().find(|open| open.gate.id.to_string().trim_start_matches('#') == number);
    let by_node = || {
        let mut of_node = gates.iter().filter(|open| open.gate.node == name);
        of_node.next().filter(|_| of_node.next().is_none())
    };
    let by_run = || gates.iter().find(|open| format!("{}/{}", open.run.id(), open.gate.node) == name);
    by_label().or_else(by_run).or_else(by_number).or_else(by_node).ok_or_else(|| {
        if gates.is_empty() {
            return format!("the run has no question `{name}`, and no other");
        }
        let labels: Vec<String> = gates.iter().map(|open| format!("`{}`", open.label)).collect();
        format!("the run has no question `{name}`: open are {}", labels.join(", "))
    })
}
