//! The static shape of Hive edges: which nodes open branches, and where these meet. Checks and tables go by it; which edges a
//! visit takes is a matter of the walk.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::document::model::hive::{Condition, HiveEdge};
use crate::document::model::{
    Branch, Conflicts, Dialect, Extras, Failures, Graph, Located, Name, Next, OnFailure, Parallel, Route,
    Target,
};

/// The most nodes that the search for joins looks at. Behind it, a join is the nearest node on every way, as in native
/// documents, so that a file of 10,000 nodes takes no minutes.
const MOST_REACHED: usize = 5_000_000;

/// Gives the nodes their edges.
pub(super) fn shape(
    graph: &mut Graph,
    edges: Vec<Vec<HiveEdge>>,
    terminals: &[Name],
    resumes: &Map<String, Value>,
    (failures, conflicts): (Failures, Conflicts),
) {
    let terminals: HashSet<&Arc<str>> = terminals.iter().map(|name| &name.value).collect();
    let mut roots = Vec::new();
    for (place, edges) in edges.into_iter().enumerate() {
        let node = &mut graph.nodes[place];
        let Extras::Hive(hive) = &mut node.extras else { continue };
        let first = |condition| edges.iter().find(|edge| edge.condition == condition).cloned();
        hive.failure = first(Condition::OnFailure).or_else(|| first(Condition::Always));
        let resume = resumes.get(&*node.id.value).and_then(Value::as_str).filter(|_| hive.is_pause);
        hive.edges = match resume {
            Some(to) => vec![resumed(to, &node.id)],
            None if terminals.contains(&node.id.value) => {
                roots.extend(edges.iter().map(|edge| edge.to.value.clone()));
                Vec::new()
            }
            None => edges.into_iter().filter(|edge| edge.condition != Condition::OnFailure).collect(),
        };
        let targets = targets(&hive.edges);
        let opens = targets.len() > 1 && may_take_several(&hive.edges);
        node.next = match (opens, &*targets) {
            (_, []) => Next::End,
            (true, targets) => {
                let branches = targets.iter().map(|to| Branch { to: to.clone(), when: None }).collect();
                let (at, concurrency) = (node.id.at, None);
                let conflicts = Some(conflicts);
                Next::Parallel(Box::new(Parallel {
                    at,
                    branches,
                    join: None,
                    failures,
                    conflicts,
                    concurrency,
                }))
            }
            (false, targets) => {
                let route = |to: &Name| Route {
                    at: to.at,
                    to: Target::Node(to.clone()),
                    when: None,
                    max: None,
                    id: None,
                };
                Next::Routes(targets.iter().map(route).collect())
            }
        };
        if let Some(failure) = &hive.failure {
            // A target that runs in a branch is entered by a branch, whether the node succeeded or not.
            hive.failure_opens = opens && targets.iter().any(|to| to.value == failure.to.value);
            node.on_failure = Some(if hive.failure_opens {
                OnFailure::Continue
            } else {
                OnFailure::To(failure.to.clone())
            });
        }
    }
    if let Dialect::Hive(hive) = &mut graph.dialect {
        hive.roots.extend(roots);
    }
    let mut budget = MOST_REACHED;
    for place in 0..graph.nodes.len() {
        let meet = meet(graph, place, &mut budget);
        if let (Next::Parallel(parallel), Some(meet)) = (&mut graph.nodes[place].next, meet) {
            parallel.join = Some(meet);
        }
    }
}

/// The edge from a pause node to the entry point where the run goes on.
fn resumed(to: &str, from: &Name) -> HiveEdge {
    HiveEdge {
        to: Located { value: to.into(), at: from.at },
        condition: Condition::OnSuccess,
        when: None,
        mapping: Vec::new(),
        description: None,
    }
}

/// Each target once, in order.
fn targets(edges: &[HiveEdge]) -> Vec<Name> {
    let mut known = HashSet::new();
    edges.iter().map(|edge| &edge.to).filter(|to| known.insert(to.value.clone())).cloned().collect()
}

/// Whether one visit can take more than one of the edges.
fn may_take_several(edges: &[HiveEdge]) -> bool {
    let count = |condition| edges.iter().filter(|edge| edge.condition == condition).count();
    let chosen = count(Condition::Conditional) + count(Condition::LlmDecide);
    let successes = count(Condition::OnSuccess);
    (successes + chosen.min(1)).max(successes + count(Condition::Always)) > 1
}

/// The node where the branches of a node meet: the one that every way into what two of them share leads to first. Ways that
/// end before do not count, since branches may end early.
fn meet(graph: &Graph, place: usize, budget: &mut usize) -> Option<Name> {
    let Next::Parallel(parallel) = &graph.nodes[place].next else { return None };
    let begins: Vec<usize> =
        parallel.branches.iter().filter_map(|branch| graph.find(&branch.to.value)).collect();
    let mut reached = vec![0_u32; graph.nodes.len()];
    for begin in &begins {
        for node in reach(graph, *begin, |node| node == place, budget) {
            reached[node] += 1;
        }
    }
    let is_shared = |node: usize| node == place || reached[node] > 1;
    let mut found = BTreeSet::new();
    for begin in &begins {
        let ways = reach(graph, *begin, is_shared, budget);
        found.extend(ways.into_iter().filter(|node| is_shared(*node)));
    }
    if *budget == 0 {
        return None;
    }
    // A way back to the node itself leaves the branches only behind the place where they meet.
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(meet), None) => Some(graph.nodes[meet].id.clone()),
        _ => None,
    }
}

/// The nodes that ways from `begin` reach, which stop at nodes of which `stops` holds.
fn reach(graph: &Graph, begin: usize, stops: impl Fn(usize) -> bool, budget: &mut usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::from([begin]);
    let mut open = vec![begin];
    while let Some(node) = open.pop() {
        *budget = budget.saturating_sub(1);
        if stops(node) || *budget == 0 {
            continue;
        }
        let Some(hive) = graph.nodes[node].hive() else { continue };
        for edge in hive.edges.iter().chain(&hive.failure) {
            if let Some(to) = graph.find(&edge.to.value)
                && found.insert(to)
            {
                open.push(to);
            }
        }
    }
    found
}
