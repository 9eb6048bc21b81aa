//! The nodes whose visits have begun and not ended.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use workflow_core::report::{BranchReport, ExecutionOutcome};
use workflow_core::{ExecutionId, ScopeId};

use crate::part::Part;
use crate::state::names;
use crate::trace::{History, Log, StepName};

/// Why a visit was dropped, so that it has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dropped {
    /// Another branch failed, and with it all of them.
    BranchFailed,
    /// The run ended.
    RunEnded,
    /// The run had used all of its steps, and ended before the visit's work.
    StepsUsed,
}

/// The visits that have begun and have no end.
#[derive(Debug)]
pub(super) struct Begun {
    /// By node, whether a visit is under way. After the end of a run none is.
    pub(super) under_way: Vec<bool>,
    /// By node, why its last visit without an end was dropped.
    pub(super) dropped: Vec<Option<Dropped>>,
    /// The scopes with visits that are under way, or were when the run ended.
    pub(super) scopes: HashSet<ScopeId>,
}

impl Begun {
    pub(super) fn of(log: &Log<'_>, history: &History) -> Self {
        let nodes = log.graph.nodes.len();
        let mut begun =
            Self { under_way: vec![false; nodes], dropped: vec![None; nodes], scopes: HashSet::new() };
        let ended: HashSet<ExecutionId> = history.visited.iter().map(|visited| visited.began).collect();
        let has_ended = log.report.status.is_ended();
        for execution in &log.report.trace {
            let Some(step) = StepName::of(&execution.step) else { continue };
            let Some(node) = log.graph.find(step.node) else { continue };
            let is_late = matches!(execution.outcome, ExecutionOutcome::Failed { .. })
                && Log::failed(execution).is_none();
            let is_lost =
                is_late || matches!(execution.outcome, ExecutionOutcome::Refused | ExecutionOutcome::Dropped);
            if matches!(step.part, Part::Branch | Part::Each) {
                if is_open(log, execution.scope)
                    && (is_lost || execution.outcome == ExecutionOutcome::Running)
                {
                    begun.scopes.extend(log.scopes(execution.scope));
                }
                continue;
            }
            if step.part != Part::Visit || ended.contains(&execution.execution) {
                continue;
            }
            if !is_open(log, execution.scope) {
                let with_branch = has_failed_around(log, execution.scope);
                begun.dropped[node] = with_branch.then_some(Dropped::BranchFailed);
                continue;
            }
            if has_ended {
                // Such a visit ends the run itself, and leaves no result.
                let mut emitted = execution.emitted.iter().filter_map(|seq| log.event(*seq));
                let has_ended_run = emitted.any(|event| *event.event == *names::OUTPUT);
                let since = if has_ended_run { Dropped::StepsUsed } else { Dropped::RunEnded };
                begun.dropped[node] = Some(since);
            } else if !is_lost {
                begun.under_way[node] = true;
            }
            begun.scopes.extend(log.scopes(execution.scope));
        }
        for waiting in &log.report.waiting {
            begun.scopes.extend(log.scopes(waiting.scope));
            let step = StepName::of(&waiting.step).filter(|step| step.part != Part::Branch);
            if let Some(node) = step.and_then(|step| log.graph.find(step.node)) {
                begun.under_way[node] = true;
            }
        }
        begun
    }
}

/// Whether a scope can still have events: neither it nor one around it was gathered or dropped.
pub(super) fn is_open(log: &Log<'_>, scope: ScopeId) -> bool {
    log.scopes(scope).all(|scope| {
        let Some(branch) = log.branch_report(scope) else { return true };
        !branch.dropped && log.gathered(scope).is_none() && !has_failed_with(log, branch)
    })
}

/// Whether the failure of a branch fails this one, which is another or the same.
pub(super) fn has_failed_with(log: &Log<'_>, branch: &BranchReport) -> bool {
    log.fails_all(branch) && log.has_failed_branch(branch.opener)
}

/// Whether the scope, or one around it, was dropped because another branch failed.
pub(super) fn has_failed_around(log: &Log<'_>, scope: ScopeId) -> bool {
    let mut branches = log.scopes(scope).filter_map(|scope| log.branch_report(scope));
    branches.any(|branch| branch.dropped || (has_failed_with(log, branch) && !log.has_failed(branch)))
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BranchFailed => "dropped, since another branch failed (`fail_all`)",
            Self::RunEnded => "dropped, since the run ended",
            Self::StepsUsed => "not begun, since the run had used all of its steps",
        })
    }
}
