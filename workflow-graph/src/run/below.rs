//! The runs for which a run works: the open children of its executions.

use workflow_core::report::{ExecutionOutcome, ExecutionTrace, RunReport};
use workflow_core::{AnyRun, Engine};

/// The deepest child that is looked at.
pub(super) const DEPTH: usize = 32;

/// The executions of a run that work now.
pub(super) fn working(report: &RunReport) -> impl Iterator<Item = &ExecutionTrace> {
    report.trace.iter().filter(|execution| matches!(execution.outcome, ExecutionOutcome::Running))
}

/// The open children that an execution waits for; `None` for one that the engine does not drive.
pub(super) fn children<'a>(
    engine: &'a Engine,
    report: &'a RunReport,
    execution: &'a ExecutionTrace,
) -> impl Iterator<Item = Option<AnyRun>> + 'a {
    let is_open = |child: &&workflow_core::report::ChildReport| {
        child.child.execution == execution.execution && child.child.awaited && !child.status.is_ended()
    };
    report.children.iter().filter(is_open).map(|child| engine.find(&child.child.run))
}
