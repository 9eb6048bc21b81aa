//! Lays the report of a run over its graph.

use std::collections::HashMap;
use std::sync::Arc;

use super::{BranchBox, Graph, NodeKind, NodeRun};
use crate::id::Seq;
use crate::report::{BranchReport, ExecutionOutcome, RunReport, WaitsFor};

pub(super) fn lay(mut graph: Graph, report: &RunReport) -> Graph {
    let runs = runs(report);
    for node in graph.nodes.iter_mut().filter(|node| node.kind == NodeKind::Step) {
        node.ran = Some(runs.get(&*node.name).copied().unwrap_or(UNUSED));
    }
    let branches = branches(report);
    for place in &mut graph.boxes {
        let opened = (Arc::clone(&place.step), Arc::clone(&place.item));
        let opened = branches.get(&opened).map_or(&[][..], Vec::as_slice);
        count_branches(place, opened);
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

/// The branches that each step opened, by the names of the step and of the item.
fn branches(report: &RunReport) -> HashMap<(Arc<str>, Arc<str>), Vec<&BranchReport>> {
    let item = |seq: Seq| {
        let place = usize::try_from(seq.0).ok()?.checked_sub(1)?;
        report.log.get(place).map(|logged| Arc::clone(&logged.event))
    };
    let mut branches: HashMap<(Arc<str>, Arc<str>), Vec<&BranchReport>> = HashMap::new();
    for branch in &report.branches {
        if let Some(item) = item(branch.item) {
            branches.entry((Arc::clone(&branch.step), item)).or_default().push(branch);
        }
    }
    branches
}

fn count_branches(place: &mut BranchBox, branches: &[&BranchReport]) {
    let count =
        |which: fn(&BranchReport) -> bool| branches.iter().filter(|branch| which(branch)).count() as u64;
    place.branches = Some(branches.len() as u64);
    place.failed = Some(count(|branch| branch.failed));
    place.dropped = Some(count(|branch| branch.dropped)).filter(|dropped| *dropped > 0);
}
