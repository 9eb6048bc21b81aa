//! Lays a run over the drawing of its graph: visits per node, and how often each route was taken.

use std::collections::HashMap;

use serde_json::json;
use workflow_core::draw::{Graph as Drawing, NodeKind, NodeRun};

use super::draw;
use crate::VisitStatus;
use crate::document::model::Graph;
use crate::routes::{Route, RouteKind, routes};
use crate::trace::{RouteTaken, Trace};

/// Draws the graph with the visits of a run, and with a count at each route that the run took.
pub(crate) fn draw_run(graph: &Graph, trace: &Trace) -> Drawing {
    let mut drawing = draw(graph);
    let mut visits: HashMap<&str, (u64, u64)> = HashMap::new();
    for visit in &trace.visits {
        let (all, failed) = visits.entry(&visit.node).or_default();
        *all += 1;
        *failed += u64::from(visit.status == VisitStatus::Failed);
    }
    for node in drawing.nodes.iter_mut().filter(|node| node.kind == NodeKind::Step) {
        let (all, failed) = visits.get(&*node.name).copied().unwrap_or_default();
        node.ran = ran(all, failed);
    }
    let routes = routes(graph);
    let taken = taken(graph, &routes, &trace.routes);
    // The first edge is that of the start, if there is one, and the others are the routes in their order.
    let begin = drawing.edges.len() - routes.len();
    for (edge, count) in drawing.edges[begin..].iter_mut().zip(taken) {
        if count > 0 {
            edge.event = format!("{} (taken ×{count})", edge.event).into();
        }
    }
    for place in &mut drawing.boxes {
        // A branch begins with the token of its parallel node.
        let opened = trace.routes.iter().filter(|route| route.from == place.step && route.is_opening());
        place.branches = Some(opened.count() as u64);
    }
    drawing
}

/// The part of a node in a run. The core's type has no constructor, and is plain data.
fn ran(visits: u64, failed: u64) -> Option<NodeRun> {
    serde_json::from_value(json!({"executions": visits, "failed": failed})).ok()
}

/// How often each route was taken.
fn taken(graph: &Graph, routes: &[Route<'_>], tokens: &[RouteTaken]) -> Vec<u64> {
    let mut between: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    for (place, route) in routes.iter().enumerate() {
        if let Some(to) = route.to {
            between.entry((route.from, to)).or_default().push(place);
        }
    }
    let mut counts = vec![0; routes.len()];
    for token in tokens.iter().filter(|token| !token.is_join()) {
        let ends = graph.find(&token.from).zip(graph.find(&token.to));
        let Some(places) = ends.and_then(|ends| between.get(&ends)) else { continue };
        let is_branch = |place: &usize| routes[*place].kind == RouteKind::Branch;
        let mut fits = places.iter().filter(|place| routes[**place].fits(&token.reason));
        let fits = fits.find(|place| is_branch(place) == token.is_opening());
        if let Some(place) = fits.or(places.first()) {
            counts[*place] += 1;
        }
    }
    counts
}
