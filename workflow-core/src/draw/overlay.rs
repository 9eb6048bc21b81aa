//! Lays the report of a run over its graph.

use super::{BranchBox, Graph, Node, NodeKind, NodeRun};
use crate::report::{BranchReport, ExecutionOutcome, RunReport, WaitsFor};

pub(super) fn lay(mut graph: Graph, report: &RunReport) -> Graph {
    for node in graph.nodes.iter_mut().filter(|node| node.kind == NodeKind::Step) {
        node.ran = Some(node_run(node, report));
    }
    for place in &mut graph.boxes {
        count_branches(place, report);
    }
    graph
}

fn node_run(node: &Node, report: &RunReport) -> NodeRun {
    let of_step = report.trace.iter().filter(|trace| trace.step == node.name);
    let failed = of_step.filter(|trace| matches!(trace.outcome, ExecutionOutcome::Failed { .. })).count();
    let waiting = report.waiting.iter().filter(|waiting| waiting.step == node.name);
    let deferred = waiting.filter(|waiting| waiting.waits_for == WaitsFor::Pause).count();
    NodeRun { executions: report.executions(&node.name), failed: failed as u64, deferred: deferred as u64 }
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
