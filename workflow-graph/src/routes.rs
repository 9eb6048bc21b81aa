//! The routes of a graph one by one, with the words that drawings and explanations have for them. It takes none of them.

use std::fmt;
use std::sync::Arc;

use crate::document::model::hive::{Condition, HiveNode};
use crate::document::model::{Graph, Next, Node, OnFailure, OnNoMatch, Route as Written, Target};
use crate::document::template::Expression;

/// One way out of a node.
#[derive(Debug, Clone)]
pub(crate) struct Route<'a> {
    /// The place of the node that it leaves.
    pub(crate) from: usize,
    /// The place of the node that it leads to; absent for the end of the walk.
    pub(crate) to: Option<usize>,
    pub(crate) kind: RouteKind,
    pub(crate) when: Option<&'a Expression>,
    pub(crate) max: Option<u32>,
    /// The name that the document gives it.
    pub(crate) id: Option<&'a Arc<str>>,
    /// When a model should choose it.
    pub(crate) about: Option<&'a Arc<str>>,
}

/// The form in which the document writes a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteKind {
    /// The only one of its node.
    Only,
    /// One of a list, of which the first that holds is taken.
    Listed,
    /// The begin of a branch.
    Branch,
    /// One that a model chooses.
    Choice,
    /// The one that is taken if the model chooses none.
    Otherwise,
    /// One of an imported document, which a model chooses unless it is the only one.
    Edge,
    /// It leads away from a failure.
    Failure,
    /// The end of the walk because no route holds.
    NoMatch,
    /// The end of the walk because the node has no routes.
    End,
}

/// Every route of the graph, in the order of its nodes.
pub(crate) fn routes(graph: &Graph) -> Vec<Route<'_>> {
    let mut found = Vec::new();
    for (from, node) in graph.nodes.iter().enumerate() {
        let mut list = List { graph, from, found: &mut found };
        list.next(node);
        list.on_failure(node);
    }
    found
}

struct List<'a, 'f> {
    graph: &'a Graph,
    from: usize,
    found: &'f mut Vec<Route<'a>>,
}

impl<'a> List<'a, '_> {
    fn add(&mut self, to: Option<usize>, kind: RouteKind) -> &mut Route<'a> {
        let route = Route { from: self.from, to, kind, when: None, max: None, id: None, about: None };
        self.found.push(route);
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    fn next(&mut self, node: &'a Node) {
        if let Some(hive) = node.hive() {
            return self.hive(hive, matches!(node.next, Next::Parallel(_)));
        }
        match &node.next {
            Next::End => drop(self.add(None, RouteKind::End)),
            Next::To(name) => drop(self.add(self.graph.find(&name.value), RouteKind::Only)),
            Next::Routes(list) => {
                self.listed(list, RouteKind::Listed);
                let is_default = |route: &Written| route.when.is_none() && route.max.is_none();
                let on_no_match = node.on_no_match.or(self.graph.defaults.on_no_match);
                if on_no_match == Some(OnNoMatch::End) && !list.iter().any(is_default) {
                    self.add(None, RouteKind::NoMatch);
                }
            }
            Next::Parallel(parallel) => {
                for branch in &parallel.branches {
                    let to = self.graph.find(&branch.to.value);
                    self.add(to, RouteKind::Branch).when = branch.when.as_ref();
                }
            }
            Next::Sweny(sweny) => {
                for edge in &sweny.edges {
                    let to = self.graph.find(&edge.to.value);
                    let route = self.add(to, RouteKind::Edge);
                    (route.about, route.max) = (edge.when.as_ref(), edge.max);
                }
                if sweny.edges.iter().all(|edge| edge.when.is_some() || edge.max.is_some()) {
                    self.add(None, RouteKind::NoMatch);
                }
            }
            Next::Decide(decide) => {
                for choice in &decide.choices {
                    let to = self.target(&choice.to);
                    self.add(to, RouteKind::Choice).about = choice.about.as_ref();
                }
                let to = self.target(&decide.otherwise);
                self.add(to, RouteKind::Otherwise);
            }
        }
    }

    fn hive(&mut self, hive: &'a HiveNode, opens: bool) {
        if hive.edges.is_empty() {
            self.add(None, RouteKind::End);
            return;
        }
        for edge in &hive.edges {
            let kind = match edge.condition {
                Condition::LlmDecide => RouteKind::Choice,
                Condition::OnSuccess if opens => RouteKind::Branch,
                Condition::OnSuccess => RouteKind::Only,
                Condition::Conditional | Condition::Always | Condition::OnFailure => RouteKind::Listed,
            };
            let route = self.add(self.graph.find(&edge.to.value), kind);
            route.when = edge.when.as_ref();
            route.about = edge.description.as_ref().filter(|_| edge.condition == Condition::LlmDecide);
        }
    }

    fn on_failure(&mut self, node: &'a Node) {
        if let Some(failure) = node.hive().and_then(|hive| hive.failure.as_ref()) {
            self.add(self.graph.find(&failure.to.value), RouteKind::Failure);
            return;
        }
        match &node.on_failure {
            Some(OnFailure::To(name)) => drop(self.add(self.graph.find(&name.value), RouteKind::Failure)),
            Some(OnFailure::Routes(list)) => self.listed(list, RouteKind::Failure),
            Some(OnFailure::Continue) | None => {}
        }
    }

    fn listed(&mut self, list: &'a [Written], kind: RouteKind) {
        for written in list {
            let to = self.target(&written.to);
            let route = self.add(to, kind);
            route.when = written.when.as_ref();
            route.max = written.max;
            route.id = written.id.as_ref().map(|id| &id.value);
        }
    }

    fn target(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Node(name) => self.graph.find(&name.value),
            Target::End => None,
        }
    }
}

impl Route<'_> {
    /// The source of its condition.
    pub(crate) fn condition(&self) -> Option<&str> {
        self.when.map(|when| when.parsed.source())
    }

    /// Whether a token with this reason may be of this route. Several routes may lead from one node to another.
    pub(crate) fn fits(&self, reason: &str) -> bool {
        let condition = self.condition();
        let id = self.id.map(|id| &**id);
        match self.kind {
            RouteKind::Edge => self.about.map_or("only path", |about| about) == reason,
            RouteKind::Choice => !reason.starts_with("fallback"),
            RouteKind::Otherwise => reason.starts_with("fallback"),
            // The walk has no name of a route without a condition for its reason.
            _ if condition.is_none() && matches!(reason, "default" | "only path") => true,
            _ => condition.or(id).is_none_or(|_| condition == Some(reason) || id == Some(reason)),
        }
    }
}

/// The words of a route: its name, condition and bound.
impl fmt::Display for Route<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.iter().try_for_each(|id| write!(f, "{id}: "))?;
        match (self.kind, self.condition()) {
            (RouteKind::Only, _) => f.write_str("next"),
            (RouteKind::Listed, Some(condition)) => f.write_str(condition),
            (RouteKind::Listed, None) => f.write_str("default"),
            (RouteKind::Branch, Some(condition)) => write!(f, "branch if {condition}"),
            (RouteKind::Branch, None) => f.write_str("branch"),
            (RouteKind::Edge, _) => f.write_str(self.about.map_or("next", |about| about)),
            (RouteKind::Choice, _) => f.write_str(self.about.map_or("choice", |about| about)),
            (RouteKind::Otherwise, _) => f.write_str("otherwise"),
            (RouteKind::Failure, Some(condition)) => write!(f, "on failure, {condition}"),
            (RouteKind::Failure, None) => f.write_str("on failure"),
            (RouteKind::NoMatch, _) => f.write_str("no route holds"),
            (RouteKind::End, _) => f.write_str("end"),
        }?;
        self.max.iter().try_for_each(|max| write!(f, ", max {max}"))
    }
}
