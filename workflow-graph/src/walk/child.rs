//! The ends of child runs without an output, as the nodes that ran them say it: in the words of documents.

use workflow_core::errors::chain;
use workflow_core::{RunError, StepError};

use crate::trace::spoken;

/// The most failed branches that are named.
const NAMED: usize = 5;

/// The kind of a child.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A graph, and whether its document bounds its time.
    Graph {
        is_bounded: bool,
    },
    Workflow,
}

/// The failure of the node whose child `name` ended so.
pub(super) fn failed(kind: Kind, name: &str, error: RunError) -> StepError {
    let (child, part) = match kind {
        Kind::Graph { .. } => (format!("the graph `{name}`"), "node"),
        Kind::Workflow => (format!("the workflow `{name}`"), "step"),
    };
    // Parts of nodes are steps of their own.
    let named = |step: &str| step.split(':').next().unwrap_or(step).to_owned();
    let text = match &error {
        RunError::StepFailed { step, source, .. } => {
            format!("{child} failed at {part} `{}`: {}", named(step), chain(source))
        }
        RunError::BranchesFailed { failures } => {
            let failed = failures.iter().take(NAMED);
            let failed: Vec<String> =
                failed.map(|failure| format!("`{}`: {}", named(failure.step()), failure.error())).collect();
            let more = failures.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!("; and {more} more") };
            format!("{child} failed in branches, at {part} {}{more}", failed.join("; "))
        }
        RunError::TimedOut { after, .. } => {
            let by =
                if matches!(kind, Kind::Graph { is_bounded: true }) { " by its `limits.time`" } else { "" };
            format!("{child} was active for {}, as long as it may be{by}", spoken(*after))
        }
        RunError::Cancelled { reason } => format!("{child} was cancelled: {reason}"),
        _ => return error.into(),
    };
    text.into()
}
