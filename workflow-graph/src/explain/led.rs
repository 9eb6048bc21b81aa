//! The routes that were taken to nodes, with the values of their conditions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;

use super::view::View;
use super::{SeenValue, meet};
use crate::VisitStatus;
use crate::document::model::OnFailure;
use crate::routes::{Route, RouteKind};
use crate::trace::{History, Log};

/// A route that was taken to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Led {
    /// The node that it leaves.
    pub from: Arc<str>,
    /// The name that the document gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// Whether it is one of `on_failure`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_failure: bool,
    /// Whether it began a branch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub branch: bool,
    /// Why it was taken, as in [`RouteTaken`](crate::RouteTaken); but where a model was asked and its route has no words of its
    /// own, `fallback: …` or `chosen by the model`.
    pub reason: Arc<str>,
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
    let mut of_node: HashMap<(usize, usize), Vec<&Route<'_>>> = HashMap::new();
    for route in routes {
        of_node.entry((route.from, route.to.unwrap_or(usize::MAX))).or_default().push(route);
    }
    let mut found: HashMap<usize, Vec<(Led, usize)>> = HashMap::new();
    let mut places: HashMap<(usize, &str, bool, Arc<str>), usize> = HashMap::new();
    for (place, route) in history.trace.routes.iter().enumerate() {
        if route.is_join() || meet::is_arrival(log, route) {
            continue;
        }
        let Some(to) = log.graph.find(&route.to) else { continue };
        let one = one(log, history, place, &of_node);
        let led = found.entry(to).or_default();
        let at = *places.entry((to, &route.from, one.on_failure, one.reason.clone())).or_insert(led.len());
        if at == led.len() {
            led.push((Led { times: 0, ..one }, place));
        }
        led[at].0.times += 1;
        led[at].1 = place;
    }
    let of = |place: usize| {
        let to = log.graph.find(&history.trace.routes[place].to)?;
        let visit = history.came_from[place]?;
        let route = written(log, history, place, of_node.get(&(history.visited[visit].node, to))?)?;
        let view = View::at(log, history, visit, route.kind)?;
        Some(view.seen(route.when?))
    };
    let with_values = found.into_iter().map(|(to, led)| {
        let led = led.into_iter();
        let led = led.map(|(led, last)| Led { values: of(last).unwrap_or_default(), ..led });
        (to, led.collect())
    });
    with_values.collect()
}

/// A route that was taken once, without values.
fn one(
    log: &Log<'_>,
    history: &History,
    place: usize,
    of_node: &HashMap<(usize, usize), Vec<&Route<'_>>>,
) -> Led {
    let taken = &history.trace.routes[place];
    let ends = log.graph.find(&taken.from).zip(log.graph.find(&taken.to));
    let routes = ends.and_then(|ends| of_node.get(&ends));
    let route = routes.and_then(|routes| written(log, history, place, routes));
    Led {
        from: taken.from.clone(),
        id: route.and_then(|route| route.id.cloned()),
        on_failure: route.is_some_and(|route| route.kind == RouteKind::Failure),
        branch: taken.is_opening(),
        reason: reason(history, place),
        times: 1,
        values: Vec::new(),
    }
}

/// Of the routes between two nodes, the one that was taken here.
fn written<'r, 'a>(
    log: &Log<'_>,
    history: &History,
    place: usize,
    routes: &[&'r Route<'a>],
) -> Option<&'r Route<'a>> {
    let taken = &history.trace.routes[place];
    let leaves_failure = history.came_from[place].is_some_and(|visit| is_failure(log, history, visit));
    let is_taken = |route: &&&Route<'_>| {
        (route.kind == RouteKind::Branch) == taken.is_opening()
            && (route.kind == RouteKind::Failure) == (leaves_failure && !taken.is_opening())
            && route.fits(&taken.reason)
    };
    // One without a condition fits every reason.
    let exact = routes.iter().filter(is_taken).find(|route| route.condition() == Some(&*taken.reason));
    exact.or_else(|| routes.iter().find(is_taken)).copied()
}

/// Whether the routes of `on_failure` lead away from the visit.
pub(super) fn is_failure(log: &Log<'_>, history: &History, visit: usize) -> bool {
    let node = &log.graph.nodes[history.visited[visit].node];
    let has_edge = node.hive().is_some_and(|hive| hive.failure.is_some());
    let has_list = matches!(node.on_failure, Some(OnFailure::To(_) | OnFailure::Routes(_)));
    history.trace.visits[visit].status == VisitStatus::Failed && (has_edge || has_list)
}

/// Why a route was taken, in words. Where a model was asked, a reason of the route's form alone says too little.
pub(super) fn reason(history: &History, place: usize) -> Arc<str> {
    let taken = &history.trace.routes[place];
    if !history.asked[place] || !matches!(&*taken.reason, "only path" | "on success") {
        return taken.reason.clone();
    }
    if !taken.warnings.is_empty() {
        return format!("fallback: {}", taken.warnings.join("; ")).into();
    }
    let visit = history.came_from[place].map(|visit| &history.trace.visits[visit]);
    let warnings = visit.map_or(&[][..], |visit| &visit.warnings);
    let fallback = warnings.iter().find(|warning| warning.starts_with("fallback: "));
    fallback.cloned().unwrap_or_else(|| "chosen by the model".into())
}
