//! `tracing` as one observer: a span per run and per execution, and an event where something failed.

use tracing::Span;

use super::{Observation, Observed, Observer};
use crate::id::ExecutionId;
use crate::run::RunShared;

/// Gives runs and executions `tracing` spans, and reports failures and ends as `tracing` events.
///
/// What a step logs with `tracing` lies in its execution's span `workflow.step` (fields `step`, `execution`,
/// `attempt`), and that in its run's span `workflow.run` (fields `run`, `workflow`), also across awaits.
///
/// ```
/// use workflow_core::{Engine, TracingObserver};
/// let engine = Engine::builder().observer(TracingObserver::new()).build()?;
/// # Ok::<(), workflow_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct TracingObserver;

impl TracingObserver {
    /// An observer that reports to the global `tracing` subscriber.
    pub fn new() -> Self {
        Self
    }
}

impl Observer for TracingObserver {
    fn observe(&self, Observation { run, workflow, what, .. }: &Observation) {
        match what {
            Observed::ExecutionFailed { execution, step, class, error, .. } => {
                tracing::warn!(%run, %workflow, %step, %execution, %class, %error, "step failed");
            }
            Observed::CommitRefused { execution, step, events, .. } => {
                tracing::warn!(%run, %workflow, %step, %execution, ?events, "commit refused: the run has ended");
            }
            Observed::RunEnded { status } => tracing::info!(%run, %workflow, %status, "run ended"),
            Observed::Missed { count } => tracing::warn!(count, "observations were left out"),
            _ => {}
        }
    }

    fn wants_spans(&self) -> bool {
        true
    }
}

/// The span of a run; disabled if nobody wants one.
pub(crate) fn run_span(run: &RunShared) -> Span {
    if !run.observers.wants_spans() {
        return Span::none();
    }
    tracing::info_span!("workflow.run", run = %run.id, workflow = %run.table.name)
}

/// The span of an execution, below its run's.
pub(crate) fn step_span(parent: &Span, step: &str, execution: ExecutionId, attempt: u32) -> Span {
    if parent.is_none() {
        return Span::none();
    }
    tracing::info_span!(parent: parent, "workflow.step", step, %execution, attempt)
}
