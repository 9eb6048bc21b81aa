//! Where a run stands: whether it works, or waits for people, with the questions that it and its children have open. It
//! changes nothing.

use std::time::SystemTime;

use workflow_core::{RunStatus, SendError};
use workflow_graph::{Gate, GraphError, GraphRun};

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
    /// The run that is driven: it answers the questions of its children, too.
    pub(crate) run: GraphRun,
    pub(crate) gate: Gate,
    /// The name by which `answer` finds it.
    pub(crate) label: String,
}

impl Standing {
    pub(crate) async fn of(run: &GraphRun) -> Result<Self, GraphError> {
        let settled = run.settled_now().await;
        let gates = match run.gates().await {
            Err(GraphError::Send(SendError::Ended { .. } | SendError::Stopped { .. })) => Vec::new(),
            gates => gates?,
        };
        let is_overdue = gates.iter().any(|gate| gate.deadline.is_some_and(|end| end <= SystemTime::now()));
        let is_paused = settled == Some(RunStatus::Paused);
        let is_still = settled.is_some() && (is_paused || !gates.is_empty() && !is_overdue);
        Ok(Self { is_paused, is_still, gates: labelled(run, gates) })
    }
}

/// Labels questions: by node, behind the nodes that run its child; with the number of the question where a node asks several,
/// and with the run where several children do.
fn labelled(root: &GraphRun, gates: Vec<Gate>) -> Vec<Open> {
    let labels: Vec<String> = gates
        .iter()
        .map(|gate| {
            let same = || gates.iter().filter(|other| other.path == gate.path && other.node == gate.node);
            if same().count() == 1 {
                let path = gate.path.iter().fold(String::new(), |path, node| path + node + "/");
                return format!("{path}{}", gate.node);
            }
            let several = same().filter(|other| other.run == gate.run).count() > 1;
            let own = if several { format!("{}", gate.id) } else { gate.node.clone() };
            if gate.run == *root.id() { own } else { format!("{}/{own}", gate.run) }
        })
        .collect();
    gates.into_iter().zip(labels).map(|(gate, label)| Open { run: root.clone(), gate, label }).collect()
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
    let by_run = || gates.iter().find(|open| format!("{}/{}", open.gate.run, open.gate.node) == name);
    by_label().or_else(by_run).or_else(by_number).or_else(by_node).ok_or_else(|| {
        if gates.is_empty() {
            return format!("the run has no question `{name}`, and no other");
        }
        let labels: Vec<String> = gates.iter().map(|open| format!("`{}`", open.label)).collect();
        format!("the run has no question `{name}`: open are {}", labels.join(", "))
    })
}
