//! How the visits of a node ended, where they did not simply succeed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use workflow_core::RunId;

use super::{failed, waits};
use crate::VisitStatus;
use crate::document::model::{Next, OnFailure};
use crate::table::attempts;
use crate::trace::{History, Log, RouteTaken, Visit, VisitError, Visited, on_one_line};

/// The most items that an explanation names.
const NAMED: usize = 5;

/// The visits of a node that ended alike, and not just with success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VisitsEnded {
    /// How they ended.
    pub status: VisitStatus,
    /// Whether they were beyond `max_visits`, so that the result before them stays.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Whether they failed, and the walk went on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub went_on: bool,
    /// The node to which `on_failure` led from the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub led_to: Option<Arc<str>>,
    /// How many they are.
    pub times: u32,
    /// Whether the latest visit of the node is one of them.
    pub latest: bool,
    /// The attempts of the last of them, if it failed after several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The error of its first attempt, if that was another than the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<VisitError>,
    /// How the last of them failed, where its error does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedHow>,
    /// The error of the last of them, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<VisitError>,
    /// Why the last of them was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// The last child run of the last of them, if it failed and a graph does the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<RunId>,
    /// The items of the last of them, if some failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<FailedItems>,
}

/// How a visit failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailedHow {
    /// Its `requires` was not met, so that its work did not begin.
    BeforeWork,
    /// Its own work had succeeded, and the branches that it opened failed.
    WithBranches,
    /// At its first attempt, though the node may have more: failures of this class are not retried.
    NotRetried,
}

/// The items of a visit with `for_each`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedItems {
    /// How many failed.
    pub failed: u32,
    /// How many there were.
    pub of: u32,
    /// The first of those that failed.
    pub first: Vec<FailedItem>,
}

/// An item that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedItem {
    /// Its place in the list, from 0.
    pub index: u32,
    /// The text of its error.
    pub error: Arc<str>,
    /// The last child run of the item, if a graph does the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// By node, the ends of its visits that are worth a word.
pub(super) fn ends(log: &Log<'_>, history: &History) -> Vec<Vec<VisitsEnded>> {
    let mut found: Vec<Vec<VisitsEnded>> = vec![Vec::new(); log.graph.nodes.len()];
    let by_failure = by_failure(log, history);
    for (place, (visited, visit)) in history.visited.iter().zip(&history.trace.visits).enumerate() {
        let led_to = by_failure.get(&place).map(|to| Arc::clone(to));
        let ends = &mut found[visited.node];
        for ends in ends.iter_mut() {
            ends.latest = false;
        }
        let items = items(log, visited, visit);
        if visit.status == VisitStatus::Success && !visit.kept && items.is_none() {
            continue;
        }
        let went_on = visit.status == VisitStatus::Failed && visited.went_on;
        let is_alike = |ends: &VisitsEnded| {
            (ends.status, ends.kept, ends.went_on, ends.items.is_some())
                == (visit.status, visit.kept, went_on, items.is_some())
        };
        let place = ends.iter().position(is_alike).unwrap_or(ends.len());
        let times = ends.get(place).map_or(0, |ends| ends.times).saturating_add(1);
        let is_skipped = visit.status == VisitStatus::Skipped && !visit.warnings.is_empty();
        let has_failed = visit.status == VisitStatus::Failed;
        let ended = VisitsEnded {
            status: visit.status,
            kept: visit.kept,
            went_on,
            led_to: led_to.filter(|_| went_on),
            times,
            latest: true,
            attempts: Some(visit.attempts).filter(|attempts| *attempts > 1 && has_failed),
            earlier: has_failed.then(|| earlier(log, visited, visit)).flatten(),
            failed: has_failed.then(|| how(log, visited, visit)).flatten(),
            error: failed::whole(log, visited, visit),
            reason: is_skipped.then(|| visit.warnings.join("; ").into()),
            child: has_failed.then(|| child(log, visited)).flatten(),
            items,
        };
        ends.splice(place..(place + 1).min(ends.len()), [ended]);
    }
    found
}

/// How a visit failed, as far as it is worth a word.
fn how(log: &Log<'_>, visited: &Visited, visit: &Visit) -> Option<FailedHow> {
    let node = &log.graph.nodes[visited.node];
    let error = visit.error.as_ref()?;
    if matches!(node.next, Next::Parallel(_)) && log.opener(visited.began).is_some() {
        return Some(FailedHow::WithBranches);
    }
    if error.message.starts_with(&format!("`{}` requires what does not hold", node.id.value)) {
        return Some(FailedHow::BeforeWork);
    }
    let is_final = matches!(&*error.class, "permanent" | "rejected") && visit.attempts == 1;
    let is_of_work = is_final && failed::refused(visit).is_none() && node.for_each.is_none();
    (is_of_work && attempts(log.graph, node) > 1).then_some(FailedHow::NotRetried)
}

/// The error of the first attempt of a visit, if the last one failed by another.
fn earlier(log: &Log<'_>, visited: &Visited, visit: &Visit) -> Option<VisitError> {
    let first = log.execution(visited.began)?.attempts.first()?;
    let last = visit.error.as_ref()?;
    let (class, message) = (first.class.to_string().into(), Arc::from(&*first.error));
    (message != last.message).then_some(VisitError { class, message })
}

/// By the place of a visit, the node to which `on_failure` led from it.
fn by_failure<'h>(log: &Log<'_>, history: &'h History) -> HashMap<usize, &'h Arc<str>> {
    let routes = history.trace.routes.iter().zip(&history.came_from);
    let routes = routes.filter_map(|(route, visit)| Some((route, (*visit)?)));
    let by_failure = routes.filter(|(route, visit)| is_by_failure(log, history, route, *visit));
    by_failure.map(|(route, visit)| (visit, &route.to)).collect()
}

/// Whether the route is one of `on_failure`. `visit`: the place of the visit that it ended.
fn is_by_failure(log: &Log<'_>, history: &History, route: &RouteTaken, visit: usize) -> bool {
    let node = &log.graph.nodes[history.visited[visit].node];
    let leads = match node.hive() {
        Some(hive) => hive.failure.as_ref().is_some_and(|edge| edge.to.value == route.to),
        None => matches!(node.on_failure, Some(OnFailure::To(_) | OnFailure::Routes(_))),
    };
    let has_failed = history.trace.visits[visit].status == VisitStatus::Failed;
    leads && has_failed && !route.is_join() && !route.is_opening()
}

/// The items of a visit, if some of them failed and the visit did not.
fn items(log: &Log<'_>, visited: &Visited, visit: &Visit) -> Option<FailedItems> {
    log.graph.nodes[visited.node].for_each.as_ref().filter(|_| !visit.kept)?;
    let ended = log.execution(visited.ended_by)?;
    let mut events = ended.emitted.iter().filter_map(|seq| log.event(*seq));
    let result = events.find(|event| event.event == visit.node)?.value.as_json()?;
    let count = |part: &str| {
        let list = result.get("data")?.get(part).and_then(Value::as_array)?;
        u32::try_from(list.len()).ok()
    };
    let failed = count("failed").filter(|failed| *failed > 0)?;
    let list = result.get("data")?.get("failed").and_then(Value::as_array)?;
    let first = list.iter().take(NAMED).filter_map(|item| {
        let index = u32::try_from(item.get("index")?.as_u64()?).ok()?;
        let error = item.get("error")?.as_str()?.into();
        Some(FailedItem { index, error, run: child_of_item(log, visited, index) })
    });
    Some(FailedItems { failed, of: count("items")?, first: first.collect() })
}

/// The last child of an item.
fn child_of_item(log: &Log<'_>, visited: &Visited, index: u32) -> Option<RunId> {
    let mut children = log.report.children.iter().rev().filter_map(|child| {
        let execution = log.execution(child.child.execution)?;
        let is_own = log.visit_of(execution)?.execution == visited.began;
        (is_own && waits::item(log, execution) == Some(index)).then(|| child.child.run.clone())
    });
    children.next()
}

/// The last child that the visit itself ran.
fn child(log: &Log<'_>, visited: &Visited) -> Option<RunId> {
    let began = log.execution(visited.began)?;
    began.children.last().cloned()
}

impl fmt::Display for FailedItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} items failed", self.failed, self.of)?;
        for (place, FailedItem { index, error, run }) in self.first.iter().enumerate() {
            f.write_str(if place == 0 { ": " } else { "; " })?;
            write!(f, "item {} (index {index}): {}", index.saturating_add(1), on_one_line(error))?;
            run.iter().try_for_each(|run| write!(f, " (run {run})"))?;
        }
        match usize::try_from(self.failed).unwrap_or(usize::MAX).saturating_sub(self.first.len()) {
            0 => Ok(()),
            more => write!(f, "; {more} more"),
        }
    }
}
