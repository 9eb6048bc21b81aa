//! Why a route was not taken, as the latest visit of the node before it has it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::failed::{self, Refused};
use super::under_way::{Begun, Dropped, has_failed_with};
use super::view::View;
use super::{SeenValue, WhyNot, led};
use crate::VisitStatus;
use crate::document::model::{Next, OnFailure, Route as Written};
use crate::routes::{Route, RouteKind};
use crate::state::Opened;
use crate::trace::{History, Log, RouteTaken, data};
use crate::walk::label;

pub(super) struct Why<'e, 'a> {
    pub(super) log: &'e Log<'a>,
    pub(super) history: &'e History,
    pub(super) routes: &'e [Route<'a>],
    begun: &'e Begun,
    /// By node, the place of its latest visit.
    pub(super) latest: Vec<Option<usize>>,
    /// By visit, the place of the one before it of the same node.
    pub(super) before: Vec<Option<usize>>,
    /// By visit, the place of the last route that it took to another node.
    taken: HashMap<usize, usize>,
    /// By node, the places of its routes.
    pub(super) of_node: Vec<Vec<usize>>,
    /// The node at which a dry run ended, before its choice.
    pub(super) dry: Option<usize>,
    /// The view that was asked for last: those of one node come one after the other.
    last: RefCell<Option<(usize, RouteKind, Rc<View<'e, 'a>>)>>,
    /// By latest visit, the route of its list that it took, or would have taken.
    first: RefCell<HashMap<(usize, bool), Option<usize>>>,
}

/// The decision of a visit, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// The place of the route among those that were taken.
    pub(super) taken: Option<usize>,
    /// The place of the route in its list.
    pub(super) first: Option<usize>,
    pub(super) is_dry: bool,
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
            before: Vec::with_capacity(history.visited.len()),
            taken: HashMap::new(),
            of_node: vec![Vec::new(); nodes],
            dry: None,
            last: RefCell::default(),
            first: RefCell::default(),
        };
        for (place, visited) in history.visited.iter().enumerate() {
            let before = why.latest[visited.node].replace(place);
            why.before.push(before);
        }
        let routes_of = history.trace.routes.iter().zip(&history.came_from).enumerate();
        for (place, (taken, visit)) in routes_of {
            if let Some(visit) = visit.filter(|_| !taken.is_join() && !taken.is_opening()) {
                why.taken.insert(visit, place);
            }
        }
        for (place, route) in routes.iter().enumerate() {
            why.of_node[route.from].push(place);
        }
        why.dry = why.dry_end();
        why
    }

    /// As the latest visit of the node before has it.
    pub(super) fn not(&self, route: &Route<'a>) -> WhyNot {
        match self.latest[route.from] {
            Some(latest) => self.not_at(route, latest),
            None => match self.begun.dropped[route.from] {
                _ if self.begun.under_way[route.from] => WhyNot::UnderWay,
                Some(since) => WhyNot::Dropped { since },
                None => WhyNot::NotVisited,
            },
        }
    }

    /// As the visit at the place `latest` has it.
    pub(super) fn not_at(&self, route: &Route<'a>, latest: usize) -> WhyNot {
        let visit = &self.history.trace.visits[latest];
        let has_failed = visit.status == VisitStatus::Failed;
        let node = &self.log.graph.nodes[route.from];
        // Edges of SWEny documents are followed after every failure.
        let continues =
            matches!(node.on_failure, Some(OnFailure::Continue)) || matches!(node.next, Next::Sweny(_));
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
        let is_dry = self.is_dry(latest);
        match route.kind {
            RouteKind::Choice | RouteKind::Otherwise | RouteKind::Edge => self.of_model(route, latest),
            RouteKind::Branch if is_dry => match self.condition(route, latest) {
                Some(not) => not,
                None => WhyNot::WouldTake { values: self.values(route, latest) },
            },
            RouteKind::Branch => self.condition(route, latest).unwrap_or_else(|| self.branch(route, latest)),
            RouteKind::Only if self.log.graph.hive().is_some() => self.in_list(route, latest),
            RouteKind::Only | RouteKind::NoMatch | RouteKind::End => WhyNot::WalkEnded,
            RouteKind::Listed | RouteKind::Failure => self.in_list(route, latest),
        }
    }

    /// A route that a model may choose.
    fn of_model(&self, route: &Route<'a>, latest: usize) -> WhyNot {
        if let Some(max) = route.max.filter(|_| self.is_used_up(route, latest)) {
            return WhyNot::UsedUp { max, values: Vec::new() };
        }
        let Way { taken, first, is_dry, .. } = self.way(latest, false);
        // A condition that holds comes before the question. (Hive)
        if first.is_some_and(|first| self.routes[first].when.is_some()) {
            return self.in_list(route, latest);
        }
        match taken {
            Some(taken) => WhyNot::NotChosen {
                taken: led::reason(self.history, taken),
                to: self.history.trace.routes[taken].to.clone(),
            },
            None if is_dry => WhyNot::WouldAsk,
            None if self.log.report.status.is_ended() => WhyNot::WalkEnded,
            None => WhyNot::UnderWay,
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
            let paths = condition.parsed.values(&*view).into_iter().map(|(path, _)| path).collect();
            failed::values(message, condition, paths)
        });
        match (values, route.max) {
            (Some(values), _) => WhyNot::DidNotHold { visit: visit.iteration, values },
            (None, Some(max)) => WhyNot::UsedUp { max, values: Vec::new() },
            (None, None) => WhyNot::Failed { error: visit.error.clone() },
        }
    }

    /// The names as the routes of the visit saw them.
    fn view(&self, route: &Route<'a>, latest: usize) -> Option<Rc<View<'e, 'a>>> {
        let mut last = self.last.borrow_mut();
        if let Some((of, kind, view)) = &*last
            && (*of, *kind) == (latest, route.kind)
        {
            return Some(Rc::clone(view));
        }
        let view = Rc::new(View::at(self.log, self.history, latest, route.kind)?);
        *last = Some((latest, route.kind, Rc::clone(&view)));
        Some(view)
    }

    /// A route of a list: one before it was taken, or it did not hold.
    fn in_list(&self, route: &Route<'a>, latest: usize) -> WhyNot {
        let Way { taken, first, is_dry, .. } = self.way(latest, route.kind == RouteKind::Failure);
        let place = self.place(route);
        // A dry run took none of them, so that each has its own condition first.
        if is_dry && let Some(not @ WhyNot::DidNotHold { .. }) = self.refusal(route, latest) {
            return not;
        }
        if let Some(first) = first.filter(|first| self.rank(*first) < self.rank(place)) {
            let other = &self.routes[first];
            let reason = taken.map(|taken| led::reason(self.history, taken));
            let to = other.to.map_or_else(|| "end".into(), |to| self.log.graph.nodes[to].id.value.clone());
            let reason = reason.unwrap_or_else(|| other.condition().unwrap_or("default").into());
            // A condition that was not asked for holds, too, or does not: it says nothing where it errs.
            let holds = route.when.is_some() && self.refusal(route, latest).is_none();
            let also = holds.then(|| self.values(route, latest));
            return WhyNot::AnotherRoute { taken: reason, to, also };
        }
        if let Some(not) = self.refusal(route, latest) {
            return not;
        }
        match route.max {
            _ if is_dry && first == Some(place) => WhyNot::WouldTake { values: self.values(route, latest) },
            _ if is_dry => WhyNot::WouldAsk,
            Some(max) if first != Some(place) => WhyNot::UsedUp { max, values: self.values(route, latest) },
            _ => WhyNot::WalkEnded,
        }
    }

    /// Why the route could not be taken, by itself: the routes before it are left aside.
    fn refusal(&self, route: &Route<'a>, latest: usize) -> Option<WhyNot> {
        let refused = self.condition(route, latest);
        match (route.max.filter(|_| self.is_used_up(route, latest)), refused) {
            (_, Some(refused @ WhyNot::DidNotHold { .. })) => Some(refused),
            (Some(max), refused) => {
                let values = if refused.is_none() { self.values(route, latest) } else { Vec::new() };
                Some(WhyNot::UsedUp { max, values })
            }
            (None, refused) => refused,
        }
    }

    /// Whether the route had been taken as often as it may be, before the visit.
    fn is_used_up(&self, route: &Route<'a>, latest: usize) -> bool {
        let is_used_up = || {
            let node = &self.log.graph.nodes[route.from];
            let key = match (route.kind, &node.next, &node.on_failure) {
                (RouteKind::Edge, ..) => self.log.graph.nodes[route.to?].id.value.to_string(),
                (RouteKind::Failure, _, Some(OnFailure::Routes(list))) => {
                    format!("on_failure.{}", self.label(route, list)?)
                }
                (RouteKind::Listed, Next::Routes(list), _) => format!("next.{}", self.label(route, list)?),
                _ => return None,
            };
            Some(self.view(route, latest)?.used(&key) >= u64::from(route.max?))
        };
        is_used_up().unwrap_or_default()
    }

    /// The name by which walks count the route, and list it.
    pub(super) fn label(&self, route: &Route<'a>, list: &[Written]) -> Option<Arc<str>> {
        let place = self.place(route);
        let alike = self.of_node[route.from].iter().filter(|at| self.routes[**at].kind == route.kind);
        let place = alike.take_while(|at| **at < place).count();
        (place < list.len()).then(|| label(&self.log.graph.nodes[route.from].id.value, list, place))
    }

    /// The decision of a visit, which is the latest of its node.
    pub(super) fn way(&self, latest: usize, is_failure: bool) -> Way {
        let taken = self.taken.get(&latest).copied();
        let node = self.history.visited[latest].node;
        let known = self.first.borrow().get(&(latest, is_failure)).copied();
        let first = known.unwrap_or_else(|| {
            let list = self.list(node, is_failure);
            let first = match taken.map(|taken| &self.history.trace.routes[taken]) {
                Some(taken) => list.into_iter().find(|place| self.is_taken(*place, taken)),
                None => self.first_that_holds(&list, latest),
            };
            self.first.borrow_mut().insert((latest, is_failure), first);
            first
        });
        Way { taken, first, is_dry: self.is_dry(latest) }
    }

    /// Whether a dry run ended with the visit, before its choice.
    fn is_dry(&self, visit: usize) -> bool {
        self.dry.is_some_and(|node| self.latest[node] == Some(visit))
    }

    fn is_taken(&self, place: usize, taken: &RouteTaken) -> bool {
        let route = &self.routes[place];
        let to = route.to.map(|to| &self.log.graph.nodes[to].id.value);
        to == Some(&taken.to) && route.fits(&taken.reason)
    }

    /// The first route that the visit could take, unless a model chooses before.
    fn first_that_holds(&self, list: &[usize], latest: usize) -> Option<usize> {
        let mut tried = list.iter().map(|place| (*place, &self.routes[*place]));
        let is_of_model = |kind| matches!(kind, RouteKind::Choice | RouteKind::Otherwise | RouteKind::Edge);
        let found = tried.find(|(_, route)| is_of_model(route.kind) || self.refusal(route, latest).is_none());
        found.filter(|(_, route)| !is_of_model(route.kind)).map(|(place, _)| place)
    }

    /// The values that the condition of a route saw.
    pub(super) fn values(&self, route: &Route<'a>, latest: usize) -> Vec<SeenValue> {
        let seen = || Some(self.view(route, latest)?.seen(route.when?));
        seen().unwrap_or_default()
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
                // The error says where a path ends.
                let values = view.seen(condition).into_iter().map(|seen| SeenValue { ends: None, ..seen });
                Some(WhyNot::Erred { visit, error, values: values.collect() })
            }
        }
    }
}
