//! The end of a dry run: which of the routes that it lists a run may take.

use std::sync::Arc;

use super::WhyNot;
use super::why::Why;
use crate::GraphStatus;
use crate::document::model::{Next, OnFailure};
use crate::routes::{Route, RouteKind};
use crate::state::{Output, names};
use crate::trace::data;

impl<'a> Why<'_, 'a> {
    /// The node at which a dry run ended before its choice: not one whose child did.
    pub(super) fn dry_end(&self) -> Option<usize> {
        let output = self.log.report.log.iter().rev().find(|event| *event.event == *names::OUTPUT)?;
        let output: Output = data(output)?;
        let node = self.log.graph.find(&output.at).filter(|_| output.status == GraphStatus::DryRun)?;
        self.latest[node]?;
        let mut own = self.of_node[node].iter().map(|place| self.candidate(&self.routes[*place]));
        own.any(|name| output.candidates.contains(&name)).then_some(node)
    }

    /// Of the routes that a dry run lists, those that may hold.
    pub(super) fn may_take(&self, candidates: Vec<Arc<str>>) -> Vec<Arc<str>> {
        let Some(node) = self.dry else { return candidates };
        let may = |candidate: &Arc<str>| {
            let routes = self.of_node[node].iter().map(|place| &self.routes[*place]);
            let mut routes = routes.filter(|route| self.candidate(route) == *candidate);
            routes.any(|route| matches!(self.not(route), WhyNot::WouldTake { .. } | WhyNot::WouldAsk))
        };
        candidates.into_iter().filter(may).collect()
    }

    /// The name of a route in the list of a dry run.
    fn candidate(&self, route: &Route<'a>) -> Arc<str> {
        let node = &self.log.graph.nodes[route.from];
        let named = match (route.kind, &node.next, &node.on_failure) {
            (RouteKind::Failure, _, Some(OnFailure::Routes(list)))
            | (RouteKind::Listed, Next::Routes(list), _) => self.label(route, list),
            _ => None,
        };
        named.unwrap_or_else(|| {
            let to = route.to.map_or("end", |to| &self.log.graph.nodes[to].id.value);
            names::token(&node.id.value, to)
        })
    }
}
