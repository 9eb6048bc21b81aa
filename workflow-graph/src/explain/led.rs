//! The routes that were taken to nodes, with the values of their conditions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;

use super::ends::is_by_failure;
use super::view::View;
use super::{SeenValue, meet};
use crate::VisitStatus;
use crate::document::model::{Dialect, Next};
use crate::routes::{Route, RouteKind};
use crate::state::ONLY_PATH;
use crate::trace::{History, Log, RouteTaken};

/// A route that was taken to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Led {
    /// The node that it leaves.
    pub from: Arc<str>,
    /// Why it was taken, as in [`RouteTaken`](crate::RouteTaken). One edge of several of a SWEny document that has no
    /// condition says so.
    pub reason: Arc<str>,
    /// Whether it is a route of `on_failure`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_failure: bool,
    /// How often it was taken for this reason.
    pub times: u32,
    /// The values that its condition saw when it was taken, the last time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<SeenValue>,
}

/// The reasons of the routes that were taken, by the nodes between which they lead.
pub(super) fn taken(history: &History) -> HashMap<(&str, &str), HashSet<&str>> {
    let mut found: HashMap<(&str, &str), HashSet<&str>> = HashMap::new();
    for route in history.trace.routes.iter().filter(|route| !route.is_join()) {
        found.entry((&route.from, &route.to)).or_default().insert(&route.reason);
    }
    found
}

/// The routes that were taken, by the node that they lead to.
pub(super) fn led(log: &Log<'_>, history: &History, routes: &[Route<'_>]) -> HashMap<usize, Vec<Led>> {
    let mut found: HashMap<usize, Vec<(Led, usize)>> = HashMap::new();
    let mut places: HashMap<(&str, &str, &str, bool), usize> = HashMap::new();
    for (place, route) in history.trace.routes.iter().enumerate() {
        if route.is_join() || meet::is_arrival(log, route) {
            continue;
        }
        let Some(to) = log.graph.find(&route.to) else { continue };
        let led = found.entry(to).or_default();
        let visit = history.came_from[place];
        let on_failure = visit.is_some_and(|visit| is_by_failure(log, history, route, visit));
        let at = *places.entry((&route.from, &route.to, &route.reason, on_failure)).or_insert(led.len());
        if at == led.len() {
            let (from, reason) = (route.from.clone(), reason(log, route));
            led.push((Led { from, reason, on_failure, times: 0, values: Vec::new() }, place));
        }
        led[at].0.times += 1;
        led[at].1 = place;
    }
    let mut of_node: HashMap<(usize, usize), Vec<&Route<'_>>> = HashMap::new();
    for route in routes.iter().filter(|route| route.when.is_some()) {
        of_node.entry((route.from, route.to.unwrap_or(usize::MAX))).or_default().push(route);
    }
    let values = |to: usize, place: usize| {
        let visit = history.came_from[place]?;
        let routes = of_node.get(&(history.visited[visit].node, to))?;
        values(log, history, visit, routes, &history.trace.routes[place])
    };
    let with_values = found.into_iter().map(|(to, led)| {
        let led = led.into_iter();
        let led = led.map(|(led, last)| Led { values: values(to, last).unwrap_or_default(), ..led });
        (to, led.collect())
    });
    with_values.collect()
}

/// The reason of a route that was taken. One edge of several has none of its own where the model chose no other.
pub(super) fn reason(log: &Log<'_>, taken: &RouteTaken) -> Arc<str> {
    let node = log.graph.find(&taken.from).map(|place| &log.graph.nodes[place]);
    let is_one_of_several =
        matches!(node.map(|node| &node.next), Some(Next::Sweny(sweny)) if sweny.edges.len() > 1);
    match (&*taken.reason, &*taken.warnings) {
        (ONLY_PATH, []) if is_one_of_several => "the edge without a condition".into(),
        (ONLY_PATH, warnings) if is_one_of_several => {
            format!("the edge without a condition, since {}", warnings.join("; ")).into()
        }
        _ => taken.reason.clone(),
    }
}

/// The values that the condition of a taken route saw. `routes`: those between the same nodes that have a condition.
fn values(
    log: &Log<'_>,
    history: &History,
    visit: usize,
    routes: &[&Route<'_>],
    taken: &RouteTaken,
) -> Option<Vec<SeenValue>> {
    // Names of imported documents have other meanings.
    if !matches!(log.graph.dialect, Dialect::Native) {
        return None;
    }
    let has_failed = history.trace.visits[visit].status == VisitStatus::Failed;
    let is_taken = |route: &&&Route<'_>| {
        route.condition() == Some(&*taken.reason)
            && (route.kind == RouteKind::Branch) == taken.is_opening()
            && (route.kind != RouteKind::Failure || has_failed)
    };
    let route = routes.iter().find(is_taken)?;
    let view = View::at(log, history, visit, route.kind == RouteKind::Failure)?;
    Some(view.seen(route.when?))
}
