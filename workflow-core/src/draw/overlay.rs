//! Lays the report of a run over its graph.

use std::collections::HashMap;

use super::{BranchBox, Graph, NodeKind, NodeRun};
use crate::report::{BranchReport, ExecutionOutcome, RunReport, WaitsFor};

pub(super) fn lay(mut graph: Graph, report: &RunReport) -> Graph {
    let runs = runs(report);
    for node in graph.nodes.iter_mut().filter(|node| node.kind == NodeKind::Step) {
        node.ran = Some(runs.get(&*node.name).copied().unwrap_or(UNUSED));
    }
    for place in &mut graph.boxes {
        count_branches(place, report);
    }
    graph
}

/// A step without executions.
const UNUSED: NodeRun = NodeRun { executions: 0, failed: 0, deferred: 0 };

/// The part of each step in the run, by name.
fn runs(report: &RunReport) -> HashMap<&str, NodeRun> {
    let mut runs: HashMap<&str, NodeRun> = HashMap::with_capacity(report.steps.len());
    for row in &report.steps {
        runs.entry(&row.step).or_insert(NodeRun { executions: row.executions, ..UNUSED });
    }
    let is_failed = |outcome: &ExecutionOutcome| matches!(outcome, ExecutionOutcome::Failed { .. });
    for trace in report.trace.iter().filter(|trace| is_failed(&trace.outcome)) {
        runs.entry(&trace.step).or_insert(UNUSED).failed += 1;
    }
    for waiting in report.waiting.iter().filter(|waiting| waiting.waits_for == WaitsFor::Pause) {
        runs.entry(&waiting.step).or_insert(UNUSED).deferred += 1;
    }
    runs
}

fn count_branches(place: &mut BranchBox, report: &RunReport) {
    let item = &place.item;
    let is_item = |seq: crate::id::Seq| {
        let logged = usize::try_from(seq.0).ok().and_then(|at| report.log.get(at.checked_sub(1)?));
        logged.is_some_and(|logged| logged.event == *item)
    };
    let branches = report.branches.iter();
    let branches: Vec<&BranchReport> =
        branches.filter(|branch| branch.step == place.step && is_item(branch.item)).collect();
    let count =
        |which: fn(&BranchReport) -> bool| branches.iter().filter(|branch| which(branch)).count() as u64;
    place.branches = Some(branches.len() as u64);
    place.failed = Some(count(|branch| branch.failed));
    place.dropped = Some(count(|branch| branch.dropped)).filter(|dropped| *dropped > 0);
}
