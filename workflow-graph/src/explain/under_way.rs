//! The nodes whose visits have begun and not ended.

use std::collections::HashSet;

use workflow_core::report::ExecutionOutcome;
use workflow_core::{ExecutionId, ScopeId};

use crate::document::model::{Failures, Next};
use crate::trace::{History, Log, Part, StepName};

/// By node, whether a visit of it is under way. After the end of a run: whether one was when it ended.
pub(super) fn nodes(log: &Log<'_>, history: &History) -> Vec<bool> {
    let ended: HashSet<ExecutionId> = history.visited.iter().map(|visited| visited.began).collect();
    let mut found = vec![false; log.graph.nodes.len()];
    for execution in &log.report.trace {
        let step = StepName::of(&execution.step).filter(|step| step.part == Part::Work);
        let Some(node) = step.and_then(|step| log.graph.find(step.node)) else { continue };
        let is_over = matches!(execution.outcome, ExecutionOutcome::Refused)
            || (execution.outcome == ExecutionOutcome::Dropped && !log.report.status.is_ended());
        if !is_over && !ended.contains(&execution.execution) && is_open(log, execution.scope) {
            found[node] = true;
        }
    }
    for waiting in &log.report.waiting {
        if let Some(node) = StepName::of(&waiting.step).and_then(|step| log.graph.find(step.node)) {
            found[node] = true;
        }
    }
    found
}

/// Whether a scope can still have events: neither it nor one around it was gathered or dropped.
pub(super) fn is_open(log: &Log<'_>, scope: ScopeId) -> bool {
    log.scopes(scope).all(|scope| {
        let Some(branch) = log.branch_report(scope) else { return true };
        if branch.dropped || log.gathered(scope).is_some() {
            return false;
        }
        let node = StepName::of(&branch.step).and_then(|step| log.graph.find(step.node));
        let failures =
            node.map(|node| &log.graph.nodes[node]).and_then(|node| match (&node.for_each, &node.next) {
                (Some(each), _) => Some(each.failures),
                (None, Next::Parallel(parallel)) => Some(parallel.failures),
                _ => None,
            });
        failures != Some(Failures::FailAll) || !log.has_failed_branch(branch.opener)
    })
}
