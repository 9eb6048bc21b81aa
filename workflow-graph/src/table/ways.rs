//! The nodes to which a visit can lead, as the document says.

use std::collections::BTreeSet;

use crate::document::model::hive::HiveNode;
use crate::document::model::{Failures, Graph, Next, Node, OnFailure, Route, Target};
use crate::node::checks;
use crate::part::Part;

/// The node that a target names.
pub(crate) fn target(graph: &Graph, target: &Target) -> Option<usize> {
    match target {
        Target::Node(name) => graph.find(&name.value),
        Target::End => None,
    }
}

/// The nodes to which a visit can lead by one token, those of `on_failure` included; not those of branches.
pub(crate) fn leads_to(graph: &Graph, node: &Node) -> BTreeSet<usize> {
    let of_routes = |routes: &[Route]| routes.iter().filter_map(|route| target(graph, &route.to)).collect();
    let mut to: BTreeSet<usize> = match &node.next {
        Next::End | Next::Parallel(_) => BTreeSet::new(),
        Next::To(name) => graph.find(&name.value).into_iter().collect(),
        Next::Routes(routes) => of_routes(routes),
        Next::Sweny(sweny) => sweny.edges.iter().filter_map(|edge| graph.find(&edge.to.value)).collect(),
        Next::Decide(decide) => {
            let choices = decide.choices.iter().map(|choice| &choice.to).chain([&decide.otherwise]);
            choices.filter_map(|to| target(graph, to)).collect()
        }
    };
    match &node.on_failure {
        Some(OnFailure::To(name)) => to.extend(graph.find(&name.value)),
        Some(OnFailure::Routes(routes)) => to.extend::<BTreeSet<usize>>(of_routes(routes)),
        Some(OnFailure::Continue) | None => {}
    }
    to
}

/// Whether routes of the node are counted.
pub(crate) fn counts(node: &Node) -> bool {
    let bounded = |routes: &[Route]| routes.iter().any(|route| route.max.is_some());
    matches!(&node.next, Next::Routes(routes) if bounded(routes))
        || matches!(&node.next, Next::Sweny(sweny) if sweny.is_counted())
        || matches!(&node.on_failure, Some(OnFailure::Routes(routes)) if bounded(routes))
}

/// Whether the node publishes failed results of its branches.
pub(super) fn publishes_failed(node: &Node) -> bool {
    matches!(&node.next, Next::Parallel(parallel) if parallel.failures == Failures::WaitAll)
}

/// Whether a model may choose the route, in a step of its own.
pub(super) fn asks_model(node: &Node) -> bool {
    match &node.next {
        Next::Decide(_) => true,
        Next::Sweny(sweny) => sweny.is_conditional(),
        _ => node.hive().is_some_and(HiveNode::asks_model),
    }
}

/// Whether this part of the node asks a model about the results so far: for the route of `decide`, or as a judge.
pub(super) fn shows_results(node: &Node, part: Part) -> bool {
    match part {
        Part::Route => matches!(node.next, Next::Decide(_)),
        Part::Visit | Part::Each | Part::Reply => node.ensure.as_ref().is_some_and(checks::has_judge),
        Part::Expired | Part::Caught | Part::Branch | Part::Join | Part::Collect => false,
    }
}

/// The targets of a parallel node, each once.
pub(crate) fn branches(graph: &Graph, node: &Node) -> BTreeSet<usize> {
    match &node.next {
        Next::Parallel(parallel) => {
            parallel.branches.iter().filter_map(|branch| graph.find(&branch.to.value)).collect()
        }
        _ => BTreeSet::new(),
    }
}
