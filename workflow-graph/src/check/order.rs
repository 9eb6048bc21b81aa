//! `dead-route`, `ambiguous-routes`, `no-default`: consequences of the order of routes.

use std::collections::HashMap;

use crate::document::model::{Decide, Dialect, Graph, Name, Next, Node, OnFailure, Parallel, Route, Target};
use crate::document::native::next::MOST_PARALLEL;
use crate::problem::Code;
use crate::problem::sink::{At, Problems};

pub(super) fn check(graph: &Graph, problems: &mut Problems) {
    for node in &graph.nodes {
        match &node.next {
            Next::Routes(routes) => {
                dead(node, routes, true, problems);
                no_default(graph, node, routes, problems);
            }
            Next::Decide(decide) => choices(node, decide, problems),
            Next::Parallel(parallel) if matches!(graph.dialect, Dialect::Native) => {
                branches(node, parallel, problems);
            }
            Next::End | Next::To(_) | Next::Parallel(_) | Next::Sweny(_) => {}
        }
        if let Some(OnFailure::Routes(routes)) = &node.on_failure {
            dead(node, routes, false, problems);
        }
        ids(node, problems);
    }
}

fn always_holds(route: &Route) -> bool {
    let is_true = |source: &str| matches!(source.trim(), "true" | "True");
    route.max.is_none() && route.when.as_ref().is_none_or(|when| is_true(when.parsed.source()))
}

/// The first route that holds is taken, so none is behind one that always does. `is_next`: branches could be meant.
fn dead(node: &Node, routes: &[Route], is_next: bool, problems: &mut Problems) {
    let Some(first) = routes.iter().position(always_holds) else { return };
    let (by, line) = (written(&routes[first].to), routes[first].at.line);
    let mended = unconditional(routes, is_next);
    // One change mends a list without conditions, so it is one problem.
    let most = if mended.is_some() { 1 } else { routes.len() };
    let remedy = mended.unwrap_or_else(|| format!("move it before the route to `{by}`, or remove it"));
    for route in routes[first + 1..].iter().take(most) {
        let message = format!(
            "the route of `{}` to `{}` is never taken: the one to `{by}` in line {line} always holds",
            node.id.value,
            written(&route.to)
        );
        problems.add(Code::DeadRoute, route.at, message, remedy.clone());
    }
}

/// The remedy of a list in which no route has a condition: the order of its routes means nothing.
fn unconditional(routes: &[Route], is_next: bool) -> Option<String> {
    if routes.iter().any(|route| route.when.is_some() || route.max.is_some()) {
        return None;
    }
    let all = "give each but the last a `when`";
    let targets: Option<Vec<&str>> = routes
        .iter()
        .map(|route| match &route.to {
            Target::Node(name) => Some(&*name.value),
            Target::End => None,
        })
        .collect();
    Some(match targets {
        Some(targets) if is_next && targets.len() <= MOST_PARALLEL => {
            let (by, targets) = (if targets.len() == 2 { "both" } else { "all" }, targets.join(", "));
            format!("to take {by} side by side, write `next: {{parallel: [{targets}]}}`; to choose, {all}")
        }
        _ => format!("to choose, {all}"),
    })
}

fn no_default(graph: &Graph, node: &Node, routes: &[Route], problems: &mut Problems) {
    let is_stated = node.on_no_match.or(graph.defaults.on_no_match).is_some();
    if is_stated || node.unread.default || routes.iter().any(always_holds) {
        return;
    }
    let Some(last) = routes.last() else { return };
    let id = &node.id.value;
    let led = |to: &Target| match to {
        Target::Node(name) => format!("the walk goes to `{}`", name.value),
        Target::End => "the walk ends".to_owned(),
    };
    // Behind `continue` the same routes are asked once more.
    let caught = match &node.on_failure {
        Some(OnFailure::To(name)) => Some(led(&Target::Node(name.clone()))),
        Some(OnFailure::Routes(routes)) => Some(match routes.as_slice() {
            [only] if always_holds(only) => led(&only.to),
            _ => "the walk goes on".to_owned(),
        }),
        Some(OnFailure::Continue) | None => None,
    };
    let message = match caught {
        Some(led) => {
            format!("where no route of `{id}` holds, the node fails and {led}, by its `on_failure`")
        }
        None => format!("the run fails where no route of `{id}` holds"),
    };
    let remedy = "add a route without `when` as the last one, or write `on_no_match: fail`";
    problems.add(Code::NoDefault, last.at, message, remedy);
}

/// A node runs in one branch.
fn branches(node: &Node, parallel: &Parallel, problems: &mut Problems) {
    let mut known: HashMap<&str, At> = HashMap::new();
    for Name { value, at } in parallel.branches.iter().map(|branch| &branch.to) {
        if known.insert(value, *at).is_some() {
            let message = format!(
                "two branches of `{}` begin with `{value}`, and a node runs in one branch",
                node.id.value
            );
            let remedy =
                "remove one of them, write another node for it, or work through a list with `for_each`";
            problems.add(Code::AmbiguousRoutes, *at, message, remedy);
        }
    }
}

/// The answer of a model is the id of a choice.
fn choices(node: &Node, decide: &Decide, problems: &mut Problems) {
    let mut known: HashMap<&str, At> = HashMap::new();
    for choice in &decide.choices {
        let to = written(&choice.to);
        if let Some(first) = known.get(to) {
            let message = format!(
                "two choices of `{}` lead to `{to}`, the first in line {}",
                node.id.value, first.line
            );
            let remedy = "join them into one, or lead one of them to a node of its own";
            problems.add(Code::AmbiguousRoutes, choice.at, message, remedy);
        } else {
            known.insert(to, choice.at);
        }
    }
}

/// Reports name routes by their ids.
fn ids(node: &Node, problems: &mut Problems) {
    let next: &[Route] = if let Next::Routes(routes) = &node.next { routes } else { &[] };
    let caught: &[Route] = if let Some(OnFailure::Routes(routes)) = &node.on_failure { routes } else { &[] };
    let mut known: HashMap<&str, At> = HashMap::new();
    for id in next.iter().chain(caught).filter_map(|route| route.id.as_ref()) {
        if let Some(first) = known.get(&*id.value) {
            let message = format!(
                "two routes of `{}` have the id `{}`, the first in line {}",
                node.id.value, id.value, first.line
            );
            problems.add(Code::AmbiguousRoutes, id.at, message, "rename one of them");
        } else {
            known.insert(&id.value, id.at);
        }
    }
}

fn written(target: &Target) -> &str {
    match target {
        Target::Node(name) => &name.value,
        Target::End => "end",
    }
}
