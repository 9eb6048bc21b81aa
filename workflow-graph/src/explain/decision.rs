//! Decisions: which of several routes the last visits of a node took, and why each one that came before it, or that would have
//! held as well, was not taken.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use workflow_core::RunStatus;

use super::failed::{self, Refused};
use super::text::with;
use super::why::{Way, Why};
use super::{Led, WhyNot, led};
use crate::VisitStatus;
use crate::document::model::OnFailure;
use crate::routes::{Route, RouteKind};
use crate::trace::on_one_line;

/// How a visit of a node chose between its routes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// Which visit it is.
    pub visit: u32,
    /// The outcome.
    pub decided: Decided,
    /// The node that the route leads to, if one was taken, or `end`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Arc<str>>,
    /// The route that was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<Led>,
    /// Those that come before it and were not taken, and those behind it whose conditions hold, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherRoute>,
}

/// The outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decided {
    /// A route was taken to another node.
    Taken,
    /// The route that was taken leads to the end.
    Ended,
    /// No route held.
    NoneHeld,
    /// A dry run ended before the decision.
    DryRun,
}

/// A route that the visit did not take.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OtherRoute {
    /// The node that it leads to, or `end`.
    pub to: Arc<str>,
    /// The route: its condition or place, as drawings label it.
    pub route: String,
    /// Why it was not taken.
    #[serde(flatten)]
    pub why: WhyNot,
}

/// The most decisions of a node that stand before its last one.
const EARLIER: usize = 3;

/// The decisions of the last visits of a node, in their order, of those that had one to make.
pub(super) fn decisions(why: &Why<'_, '_>, node: usize) -> Vec<Decision> {
    // The routes to other nodes tell the way of an earlier visit. It led nowhere if it was dropped, or ended its branch.
    let has_reason = |decision: &Decision| {
        let has_values = decision.taken.as_ref().is_some_and(|taken| !taken.values.is_empty());
        decision.decided == Decided::Taken && (has_values || !decision.others.is_empty())
    };
    let visits = std::iter::successors(why.latest[node], |place| why.before[*place]);
    let found = visits.take(EARLIER + 1).enumerate().filter_map(|(before, place)| {
        decision(why, node, place).filter(|decision| before == 0 || has_reason(decision))
    });
    let mut found: Vec<_> = found.collect();
    found.reverse();
    found
}

/// The decision of a node's visit at this place, if it had one to make.
fn decision(why: &Why<'_, '_>, node: usize, latest: usize) -> Option<Decision> {
    let (visited, visit) = (&why.history.visited[latest], &why.history.trace.visits[latest]);
    let has_failed = visit.status == VisitStatus::Failed;
    let refused = failed::refused(visit).filter(|_| has_failed);
    let is_failure = led::is_failure(why.log, why.history, latest) && refused != Some(Refused::Next);
    // Branches are no choice of one route, and a failure that ends the walk leaves none.
    let opens = why.of_node[node].iter().any(|place| why.routes[*place].kind == RouteKind::Branch);
    if (opens && !is_failure) || (has_failed && !visited.went_on && refused.is_none()) {
        return None;
    }
    if is_failure && !matches!(why.log.graph.nodes[node].on_failure, Some(OnFailure::Routes(_))) {
        return None;
    }
    let list = why.list(node, is_failure);
    let way = if refused.is_some() {
        Way { taken: None, first: None, is_dry: false }
    } else {
        why.way(latest, is_failure)
    };
    let first = way.first.map(|place| &why.routes[place]);
    let of_model = |kind| list.iter().any(|place| why.routes[*place].kind == kind);
    let asks = [RouteKind::Choice, RouteKind::Otherwise, RouteKind::Edge].into_iter().any(of_model);
    let has_completed = why.log.report.status == RunStatus::Completed;
    let decided = match (way.taken, first) {
        _ if way.is_dry => Decided::DryRun,
        (Some(_), _) => Decided::Taken,
        (None, Some(Route { to: None, .. })) if refused.is_none() => Decided::Ended,
        // A model that is asked here always has a choice, and only one of the end leaves no token.
        (None, None) if of_model(RouteKind::Otherwise) && has_completed => Decided::Ended,
        (None, None) if !asks || has_completed => Decided::NoneHeld,
        _ => return None,
    };
    let is_worth =
        list.len() > 1 || (decided == Decided::Ended && first.is_some_and(|only| only.when.is_some()));
    if !is_worth {
        return None;
    }
    let others = list.iter().filter(|place| Some(**place) != way.first || way.is_dry);
    let others = others.filter_map(|place| {
        let route = &why.routes[*place];
        let not = why.not_at(route, latest);
        let is_after = matches!(not, WhyNot::AnotherRoute { also: None, .. });
        let to = name(why, route);
        // Nodes that were not visited have the conditions that failed this one.
        let is_told = refused.is_some() && route.to.is_some_and(|to| why.latest[to].is_none());
        (!is_after && !is_told).then(|| OtherRoute { to, route: route.to_string(), why: not })
    });
    let others: Vec<_> = others.collect();
    if refused.is_some() && others.is_empty() {
        return None;
    }
    let taken = (decided == Decided::Taken || decided == Decided::Ended).then(|| Led {
        from: visit.node.clone(),
        id: first.and_then(|route| route.id.cloned()),
        on_failure: is_failure,
        branch: false,
        reason: match way.taken {
            Some(taken) => led::reason(why.history, taken),
            None if first.is_none() => "chosen by the model, or its fallback".into(),
            None => first.and_then(Route::condition).unwrap_or("default").into(),
        },
        times: 1,
        values: first.map(|route| why.values(route, latest)).unwrap_or_default(),
    });
    let to = match way.taken {
        Some(taken) => Some(why.history.trace.routes[taken].to.clone()),
        None => (decided == Decided::Ended).then(|| "end".into()),
    };
    Some(Decision { visit: visit.iteration, decided, to, taken, others })
}

fn name(why: &Why<'_, '_>, route: &Route<'_>) -> Arc<str> {
    route.to.map_or_else(|| "end".into(), |to| why.log.graph.nodes[to].id.value.clone())
}

/// A line for the outcome, and one for each other route.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("  ")?;
        // Alternate: of a node that was visited more than once.
        if self.visit > 1 || f.alternate() {
            write!(f, "at visit {} ", self.visit)?;
        }
        match (self.decided, &self.to) {
            (Decided::Ended, _) => f.write_str("ended by its route to `end`")?,
            (Decided::NoneHeld, _) => f.write_str("no route held")?,
            (Decided::DryRun, _) => f.write_str("the dry run ended before its choice")?,
            (Decided::Taken, to) => write!(f, "led to `{}`", to.as_deref().unwrap_or("end"))?,
        }
        if let Some(taken) = &self.taken {
            f.write_str(": ")?;
            taken.words(f)?;
            with(f, &taken.values, " (")?;
            f.write_str(if taken.values.is_empty() { "" } else { ")" })?;
        }
        writeln!(f)?;
        for OtherRoute { to, route, why } in &self.others {
            write!(f, "    not to `{to}` ({}): ", on_one_line(route))?;
            match why {
                WhyNot::NotChosen { .. } => {
                    f.write_str("it was open to the model, which did not choose it")?;
                }
                why => why.told(f, self.taken.as_ref().map_or("it", |taken| &taken.from))?,
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
