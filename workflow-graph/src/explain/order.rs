//! The order in which nodes try their routes.

use super::why::Why;
use crate::routes::{Route, RouteKind};

impl<'a> Why<'_, 'a> {
    /// The place of a route among all.
    pub(super) fn place(&self, route: &Route<'a>) -> usize {
        let places = &self.of_node[route.from];
        let place = places.iter().find(|place| std::ptr::eq(&raw const self.routes[**place], route));
        place.copied().unwrap_or(usize::MAX)
    }

    /// The order in which a node tries its routes: of Hive documents conditions first, then a model, then the others.
    pub(super) fn rank(&self, place: usize) -> (u8, usize) {
        let Some(route) = self.routes.get(place).filter(|_| self.log.graph.hive().is_some()) else {
            return (0, place);
        };
        let rank = match (route.kind, route.when) {
            (_, Some(_)) => 0,
            (RouteKind::Choice, None) => 1,
            (RouteKind::Listed, None) => 2,
            _ => 3,
        };
        (rank, place)
    }

    /// The places of the routes from which a visit chose, in the order in which it tried them.
    pub(super) fn list(&self, node: usize, is_failure: bool) -> Vec<usize> {
        let is_in = |place: &usize| match self.routes[*place].kind {
            RouteKind::Failure => is_failure,
            RouteKind::Branch | RouteKind::NoMatch | RouteKind::End => false,
            _ => !is_failure,
        };
        let mut list: Vec<usize> = self.of_node[node].iter().copied().filter(is_in).collect();
        list.sort_by_key(|place| self.rank(*place));
        list
    }
}
