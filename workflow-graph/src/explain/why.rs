//! Why a route was not taken, as the latest visit of the node before it has it.

use std::collections::HashMap;

use super::view::View;
use super::{SeenValue, WhyNot};
use crate::VisitStatus;
use crate::document::model::OnFailure;
use crate::document::template::Expression;
use crate::expression::short;
use crate::routes::{Route, RouteKind};
use crate::trace::{History, Log, RouteTaken};

/// The most bytes of a value that an explanation has in full.
const VALUE: usize = 1_000;

pub(super) struct Why<'e, 'a> {
    log: &'e Log<'a>,
    history: &'e History,
    routes: &'e [Route<'a>],
    under_way: &'e [bool],
    /// By node, the place of its latest visit.
    latest: Vec<Option<usize>>,
    /// By node and visit, the last route that was taken.
    taken: HashMap<(&'e str, u32), &'e RouteTaken>,
    /// By node, the places of its routes.
    of_node: Vec<Vec<usize>>,
}

impl<'e, 'a> Why<'e, 'a> {
    pub(super) fn of(
        log: &'e Log<'a>,
        history: &'e History,
        routes: &'e [Route<'a>],
        under_way: &'e [bool],
    ) -> Self {
        let nodes = log.graph.nodes.len();
        let mut why = Self {
            log,
            history,
            routes,
            under_way,
            latest: vec![None; nodes],
            taken: HashMap::new(),
            of_node: vec![Vec::new(); nodes],
        };
        for (place, visited) in history.visited.iter().enumerate() {
            why.latest[visited.node] = Some(place);
        }
        for taken in history.trace.routes.iter().filter(|taken| !taken.is_join()) {
            why.taken.insert((&taken.from, taken.iteration), taken);
        }
        for (place, route) in routes.iter().enumerate() {
            why.of_node[route.from].push(place);
        }
        why
    }

    pub(super) fn not(&self, route: &Route<'a>) -> WhyNot {
        let Some(latest) = self.latest[route.from] else {
            return if self.under_way[route.from] { WhyNot::UnderWay } else { WhyNot::NotVisited };
        };
        let visit = &self.history.trace.visits[latest];
        let has_failed = visit.status == VisitStatus::Failed;
        let node = &self.log.graph.nodes[route.from];
        let continues = matches!(node.on_failure, Some(OnFailure::Continue));
        match route.kind {
            RouteKind::Failure if !has_failed => return WhyNot::DidNotFail,
            RouteKind::Failure => {}
            _ if has_failed && !continues => return WhyNot::Failed { error: visit.error.clone() },
            _ => {}
        }
        let taken = self.taken.get(&(&*visit.node, visit.iteration)).copied();
        match route.kind {
            RouteKind::Choice | RouteKind::Otherwise | RouteKind::Edge => match taken {
                Some(taken) => WhyNot::NotChosen { taken: taken.reason.clone(), to: taken.to.clone() },
                None if self.log.report.status.is_ended() => WhyNot::WalkEnded,
                None => WhyNot::UnderWay,
            },
            RouteKind::Only | RouteKind::NoMatch | RouteKind::End => WhyNot::WalkEnded,
            RouteKind::Branch => self.condition(route, latest).unwrap_or(WhyNot::WalkEnded),
            RouteKind::Listed | RouteKind::Failure => self.in_list(route, latest, taken),
        }
    }

    /// A route of a list: one before it was taken, or it did not hold.
    fn in_list(&self, route: &Route<'a>, latest: usize, taken: Option<&RouteTaken>) -> WhyNot {
        if let Some(taken) = taken {
            let places = &self.of_node[route.from];
            let is_taken = |place: &&usize| {
                let other = &self.routes[**place];
                let to = other.to.map(|to| &self.log.graph.nodes[to].id.value);
                other.kind == route.kind && to == Some(&taken.to) && other.fits(&taken.reason)
            };
            let first = places.iter().find(is_taken);
            let this = places.iter().find(|place| std::ptr::eq(&raw const self.routes[**place], route));
            if first.zip(this).is_some_and(|(first, this)| first < this) {
                return WhyNot::AnotherRoute { taken: taken.reason.clone(), to: taken.to.clone() };
            }
        }
        let false_or_err = self.condition(route, latest);
        false_or_err.unwrap_or_else(|| route.max.map_or(WhyNot::WalkEnded, |max| WhyNot::UsedUp { max }))
    }

    /// The condition of the route, unless it held at the visit.
    fn condition(&self, route: &Route<'a>, latest: usize) -> Option<WhyNot> {
        let condition = route.when?;
        let visited = &self.history.visited[latest];
        let began = self.log.execution(visited.began)?;
        let ended = self.log.execution(visited.ended_by)?;
        let visit = self.history.trace.visits[latest].iteration;
        let view = View::of(self.log, began, ended, visit, route.kind == RouteKind::Failure);
        match condition.parsed.evaluate_condition(&view) {
            Ok(true) => None,
            Ok(false) => Some(WhyNot::DidNotHold { visit, values: values(condition, &view) }),
            Err(error) => {
                Some(WhyNot::Erred { visit, error: error.to_string(), values: values(condition, &view) })
            }
        }
    }
}

fn values(condition: &Expression, view: &View<'_, '_>) -> Vec<SeenValue> {
    let values = condition.parsed.values(view).into_iter();
    values
        .map(|(path, value)| {
            let value =
                value.map(|value| if value.to_string().len() > VALUE { short(&value).into() } else { value });
            SeenValue { path, value }
        })
        .collect()
}
