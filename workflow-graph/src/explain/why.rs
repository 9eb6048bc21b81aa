//! Why a route was not taken, as the latest visit of the node before it has it.

use std::collections::HashMap;

use super::failed::{self, Refused};
use super::under_way::{Begun, Dropped, has_failed_with};
use super::view::View;
use super::{WhyNot, led};
use crate::VisitStatus;
use crate::document::model::OnFailure;
use crate::routes::{Route, RouteKind};
use crate::state::Opened;
use crate::trace::{History, Log, RouteTaken, data};

pub(super) struct Why<'e, 'a> {
    log: &'e Log<'a>,
    history: &'e History,
    routes: &'e [Route<'a>],
    begun: &'e Begun,
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
        begun: &'e Begun,
    ) -> Self {
        let nodes = log.graph.nodes.len();
        let mut why = Self {
            log,
            history,
            routes,
            begun,
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
            return match self.begun.dropped[route.from] {
                _ if self.begun.under_way[route.from] => WhyNot::UnderWay,
                Some(since) => WhyNot::Dropped { since },
                None => WhyNot::NotVisited,
            };
        };
        let visit = &self.history.trace.visits[latest];
        let has_failed = visit.status == VisitStatus::Failed;
        let node = &self.log.graph.nodes[route.from];
        let continues = matches!(node.on_failure, Some(OnFailure::Continue));
        let visited = &self.history.visited[latest];
        let refused = failed::refused(visit).filter(|_| has_failed);
        let refusal = || failed::refusal_of_next(self.log, visited, visit).filter(|_| has_failed);
        // An edge of an import leads on from a failure too.
        let continues = continues || (route.kind == RouteKind::Edge && visited.went_on);
        match route.kind {
            RouteKind::Failure if !has_failed => return WhyNot::DidNotFail,
            // Its own routes failed it, and no failure came before.
            RouteKind::Failure if refused == Some(Refused::Next) && !visited.went_on => {
                return WhyNot::Failed { error: failed::told(self.log, visited, visit) };
            }
            RouteKind::Failure => {}
            // Its branches have failed, and not the visit that opened them.
            RouteKind::Branch if self.has_opened(latest) => {}
            RouteKind::Listed if let Some(message) = refusal() => {
                return self.refused(route, latest, &message);
            }
            _ if has_failed && !continues => {
                return WhyNot::Failed { error: failed::told(self.log, visited, visit) };
            }
            _ => {}
        }
        let taken = self.taken.get(&(&*visit.node, visit.iteration)).copied();
        match route.kind {
            RouteKind::Choice | RouteKind::Otherwise | RouteKind::Edge => match taken {
                Some(taken) => {
                    WhyNot::NotChosen { taken: led::reason(self.log, taken), to: taken.to.clone() }
                }
                None if self.log.report.status.is_ended() => WhyNot::WalkEnded,
                None => WhyNot::UnderWay,
            },
            RouteKind::Branch => self.condition(route, latest).unwrap_or_else(|| self.branch(route, latest)),
            RouteKind::Only | RouteKind::NoMatch | RouteKind::End => WhyNot::WalkEnded,
            RouteKind::Listed | RouteKind::Failure => self.in_list(route, latest, taken),
        }
    }

    /// Whether the visit opened branches.
    fn has_opened(&self, latest: usize) -> bool {
        let began = self.history.visited[latest].began;
        self.log.report.branches.iter().any(|branch| {
            let opener = self.log.execution(branch.opener).and_then(|opener| self.log.visit_of(opener));
            opener.is_some_and(|opener| opener.execution == began)
        })
    }

    /// A branch that should have opened.
    fn branch(&self, route: &Route<'a>, latest: usize) -> WhyNot {
        let began = self.history.visited[latest].began;
        let to = route.to.map(|to| &self.log.graph.nodes[to].id.value);
        let branch = self.log.report.branches.iter().rev().find(|branch| {
            let opener = self.log.execution(branch.opener).and_then(|opener| self.log.visit_of(opener));
            let item = self.log.event(branch.item).and_then(data::<Opened>);
            opener.is_some_and(|opener| opener.execution == began) && item.map(|item| item.to).as_ref() == to
        });
        match branch {
            Some(branch) if has_failed_with(self.log, branch) => {
                WhyNot::NotBegun { since: Dropped::BranchFailed }
            }
            _ if self.log.report.status.is_ended() => WhyNot::NotBegun { since: Dropped::RunEnded },
            _ => WhyNot::UnderWay,
        }
    }

    /// A route of a visit that failed because none held. Such a visit leaves no event, but a message with its values.
    fn refused(&self, route: &Route<'a>, latest: usize, message: &str) -> WhyNot {
        let visit = &self.history.trace.visits[latest];
        let values = route.when.and_then(|condition| {
            let view = self.view(route, latest)?;
            let paths = condition.parsed.values(&view).into_iter().map(|(path, _)| path).collect();
            failed::values(message, condition, paths)
        });
        match (values, route.max) {
            (Some(values), _) => WhyNot::DidNotHold { visit: visit.iteration, values },
            (None, Some(max)) => WhyNot::UsedUp { max },
            (None, None) => WhyNot::Failed { error: visit.error.clone() },
        }
    }

    /// The names as the routes of the visit saw them.
    fn view(&self, route: &Route<'a>, latest: usize) -> Option<View<'e, 'a>> {
        View::at(self.log, self.history, latest, route.kind == RouteKind::Failure)
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
        let view = self.view(route, latest)?;
        let visit = self.history.trace.visits[latest].iteration;
        match view.holds(condition) {
            Ok(true) => None,
            Ok(false) => Some(WhyNot::DidNotHold { visit, values: view.seen(condition) }),
            Err(error) => {
                Some(WhyNot::Erred { visit, error: error.to_string(), values: view.seen(condition) })
            }
        }
    }
}
