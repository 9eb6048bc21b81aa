//! The visits of a run out of its log: each result is one, and so is a failure that no step caught.

use std::sync::Arc;
use std::time::Duration;

use foldhash::{HashMap, HashMapExt};
use workflow_core::report::{ExecutionTrace, LoggedEvent};
use workflow_core::{ExecutionId, RunStatus, ScopeId, Seq};

use super::log::{Log, data};
use super::{EventName, JOINED, RouteTaken, StepName, Trace, Visit, VisitError};
use crate::VisitStatus;
use crate::document::model::{Dialect, Failures, Next};
use crate::part::Part;
use crate::state::{Count, Numbered, Token, Traced, part_of};

/// The trace of a run, and where the log has its parts.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) trace: Trace,
    /// By visit.
    pub(crate) visited: Vec<Visited>,
    /// By route that was taken: the place of the visit that it left, if that has ended.
    pub(crate) came_from: Vec<Option<usize>>,
    /// By route that was taken: its scope. Paths of branches repeat where a node opens branches again.
    pub(crate) scopes: Vec<ScopeId>,
    /// By route that was taken: whether a model was asked for it.
    pub(crate) asked: Vec<bool>,
}

/// Where the log has a visit.
#[derive(Debug, Clone)]
pub(crate) struct Visited {
    /// The place of the node.
    pub(crate) node: usize,
    pub(crate) scope: ScopeId,
    /// The execution that began it.
    pub(crate) began: ExecutionId,
    /// The execution that left the result, or failed.
    pub(crate) ended_by: ExecutionId,
    /// Whether its failure, if it failed, was handled, so that the walk went on.
    pub(crate) went_on: bool,
    /// The first result, or the moment at which a failure without one counts.
    order: (Seq, Duration),
}

impl History {
    pub(crate) fn of(log: &Log<'_>) -> Self {
        let executions = log.report.trace.len();
        let places = HashMap::with_capacity(executions);
        let mut visits = Visits { log, places, found: Vec::with_capacity(executions) };
        let mut tokens = Vec::new();
        for event in &log.report.log {
            match EventName::of(&event.event) {
                EventName::Result(node) => visits.result(node, event),
                EventName::Token { .. } | EventName::Joined(_) => tokens.push(event),
                _ => {}
            }
        }
        log.report.trace.iter().for_each(|execution| visits.failure(execution));
        let order = |(visited, _): &(Visited, Visit)| (visited.order, visited.began);
        if !visits.found.is_sorted_by_key(order) {
            visits.found.sort_by_key(order);
            visits.places =
                visits.found.iter().enumerate().map(|(place, (visited, _))| (visited.began, place)).collect();
        }
        visits.failed_branches();
        let (mut routes, mut came_from, mut asked, mut scopes) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for event in tokens {
            let Some((route, place, is_asked)) = visits.route(event) else { continue };
            routes.push(route);
            came_from.push(place);
            asked.push(is_asked);
            scopes.push(event.scope);
        }
        let (visited, visits) = visits.found.into_iter().unzip();
        Self { trace: Trace { visits, routes }, visited, came_from, asked, scopes }
    }
}

struct Visits<'l, 'a> {
    log: &'l Log<'a>,
    /// The places of visits in `found`, until it is sorted.
    places: HashMap<ExecutionId, usize>,
    found: Vec<(Visited, Visit)>,
}

impl<'a> Visits<'_, 'a> {
    /// A result of a node, unless a join published it.
    fn result(&mut self, node: &str, event: &'a LoggedEvent) {
        let execution = event.execution.and_then(|id| self.log.execution(id));
        let Some((execution, place)) = execution.zip(self.log.graph.find(node)) else { return };
        let step = StepName::of(&execution.step);
        if !step.is_some_and(|step| step.node == node && step.part != Part::Join) {
            return;
        }
        let Some((began, result)) = self.log.visit_of(execution).zip(part_of::<Traced>(&event.value).ok())
        else {
            return;
        };
        let (log, end) = (self.log, self.log.since_begin(event));
        let unsaid = || skipped(log, event);
        let order = (event.seq, Duration::ZERO);
        let (visited, visit) = self.visit(place, began, execution, order, Some(result.visit));
        visited.ended_by = execution.execution;
        visited.went_on = true;
        visit.status = result.status;
        visit.iteration = result.visit;
        visit.kept = result.kept;
        // A kept result has the calls of the visit before.
        if !result.kept {
            (visit.calls, visit.retries) = (result.calls, result.retries);
        }
        visit.error = result.error.map(|error| VisitError { class: error.class, message: error.message });
        visit.warnings = result.warnings;
        if visit.status == VisitStatus::Skipped && visit.warnings.is_empty() {
            visit.warnings.extend(unsaid());
        }
        visit.took = end.saturating_sub(visit.started);
    }

    /// A failure that no step caught: it left nothing in the log.
    fn failure(&mut self, execution: &'a ExecutionTrace) {
        let Some((class, error)) = Log::failed(execution) else { return };
        let Some(step) = StepName::of(&execution.step) else { return };
        let Some(place) = self.log.graph.find(step.node) else { return };
        let Some(began) = self.log.visit_of(execution) else { return };
        let fails_node = match step.part {
            Part::Branch => false,
            Part::Each => {
                let is_known = began.failure.is_some() || self.places.contains_key(&began.execution);
                !is_known && self.item_fails(place, began.scope)
            }
            _ => true,
        };
        if execution.failure.is_some() || !fails_node {
            return;
        }
        let error: Arc<str> = match self.log.item(execution) {
            Some(item) => format!("{}: {error}", item.name()).into(),
            None => error.into(),
        };
        let class = class.to_string().into();
        let end = execution.started.saturating_add(execution.took);
        let order = (self.log.settled(began.scope).unwrap_or(Seq(u64::MAX)), end);
        let (visited, visit) = self.visit(place, began, execution, order, None);
        visited.ended_by = execution.execution;
        visited.went_on = false;
        visit.status = VisitStatus::Failed;
        visit.error = Some(VisitError { class, message: error });
        visit.took = end.saturating_sub(visit.started);
    }

    /// Whether the failure of an item is one of its node.
    fn item_fails(&self, node: usize, scope: ScopeId) -> bool {
        let failures = self.log.graph.nodes[node].for_each.as_ref().map(|each| each.failures);
        match failures {
            None | Some(Failures::ContinueOthers) => false,
            Some(Failures::FailAll) => true,
            Some(Failures::WaitAll) => {
                let is_failed =
                    |scope| self.log.branch_report(scope).is_some_and(|branch| self.log.has_failed(branch));
                self.log.report.status == RunStatus::Failed || is_failed(scope)
            }
        }
    }

    /// Visits that succeeded, and failed with the branches that they opened, because no step caught that.
    fn failed_branches(&mut self) {
        for branch in self.log.report.branches.iter().filter(|branch| self.log.has_failed(branch)) {
            let opener = self.log.execution(branch.opener).and_then(|opener| self.log.visit_of(opener));
            let Some(place) = opener.and_then(|opener| self.places.get(&opener.execution).copied()) else {
                continue;
            };
            let (visited, visit) = &self.found[place];
            let node = &self.log.graph.nodes[visited.node];
            let fails =
                matches!(&node.next, Next::Parallel(parallel) if parallel.failures == Failures::FailAll);
            if !fails || node.for_each.is_some() || visit.status != VisitStatus::Success {
                continue;
            }
            let Some(error) = self.failure_in(branch.scope) else { continue };
            let (visited, visit) = &mut self.found[place];
            visited.went_on = false;
            (visit.status, visit.error) = (VisitStatus::Failed, Some(error));
        }
    }

    /// The failure that failed a branch: the last one in it that no step caught.
    fn failure_in(&self, scope: ScopeId) -> Option<VisitError> {
        let fails = |visited: &Visited, visit: &Visit| {
            visit.status == VisitStatus::Failed
                && !visited.went_on
                && self.log.is_inside(visited.scope, scope)
        };
        let (_, visit) = self.found.iter().rev().find(|(visited, visit)| fails(visited, visit))?;
        let VisitError { class, message } = visit.error.as_ref()?;
        Some(VisitError {
            class: class.clone(),
            message: format!("`{}` failed: {message}", visit.node).into(),
        })
    }

    /// The visit that an execution began: one of before, or a new one. `number`: which visit of its node it is, if that is
    /// known.
    fn visit(
        &mut self,
        node: usize,
        began: &'a ExecutionTrace,
        ended_by: &'a ExecutionTrace,
        order: (Seq, Duration),
        number: Option<u32>,
    ) -> &mut (Visited, Visit) {
        let place = self.places.get(&began.execution).copied().unwrap_or_else(|| {
            self.places.insert(began.execution, self.found.len());
            let (began_by, ended_by) = (began.execution, ended_by.execution);
            let visited =
                Visited { node, scope: began.scope, began: began_by, ended_by, went_on: false, order };
            let number = number.unwrap_or_else(|| self.number(began));
            self.found.push((visited, self.begun(began, number)));
            self.found.len() - 1
        });
        &mut self.found[place]
    }

    /// Which visit of its node begins with an execution.
    fn number(&self, began: &ExecutionTrace) -> u32 {
        let before = self.log.latest(&began.step, began.scope, began.trigger);
        let before = before.and_then(|result| part_of::<Numbered>(&result.value).ok());
        let counted = self.log.counted(&began.step, began.scope, began.trigger).and_then(data::<Count>);
        let counted = counted.map_or(0, |count| count.visit);
        before.map_or(0, |before| before.visit).max(counted).saturating_add(1)
    }

    /// A visit of which only the begin and the number are known.
    fn begun(&self, began: &ExecutionTrace, iteration: u32) -> Visit {
        Visit {
            node: Arc::clone(&began.step),
            status: VisitStatus::Success,
            iteration,
            attempts: u32::try_from(began.attempts.len()).unwrap_or(u32::MAX).saturating_add(1),
            branch: self.log.branch(began.scope).cloned(),
            error: None,
            kept: false,
            warnings: Vec::new(),
            calls: Vec::new(),
            retries: Vec::new(),
            started: began.started,
            took: Duration::ZERO,
        }
    }

    /// A route, the place of the visit that it left, and whether a model was asked for it.
    fn route(&self, event: &'a LoggedEvent) -> Option<(RouteTaken, Option<usize>, bool)> {
        let graph = self.log.graph;
        // Not a text of its own for each route.
        let id = |name: &str| {
            graph.find(name).map_or_else(|| name.into(), |place| Arc::clone(&graph.nodes[place].id.value))
        };
        let (from, to, token) = match EventName::of(&event.event) {
            EventName::Token { from, to } => (id(from), id(to), Some(data::<Token>(event)?)),
            EventName::Joined(node) => {
                let join = self.log.joins[graph.find(node)?]?;
                (id(node), Arc::clone(&graph.nodes[join].id.value), None)
            }
            _ => return None,
        };
        let by = self.log.execution(event.execution?)?;
        let began = self.log.visit_of(by)?;
        let is_asked = StepName::of(&by.step).is_some_and(|step| step.part == Part::Route);
        let place = self.places.get(&began.execution).copied();
        let iteration = place.map_or(1, |place| self.found[place].1.iteration);
        let (reason, warnings) =
            token.map_or_else(|| (JOINED.into(), Vec::new()), |token| (token.reason, token.warnings));
        let branch = self.log.branch(event.scope).cloned();
        let route = RouteTaken { from, to, reason, iteration, branch, warnings };
        Some((route, place, is_asked))
    }
}

/// Why a node of a SWEny document was skipped: its data say so, since its warnings are those of the source.
fn skipped(log: &Log<'_>, event: &LoggedEvent) -> Option<Arc<str>> {
    let is_sweny = matches!(log.graph.dialect, Dialect::Sweny(_));
    let reason = event.value.as_json()?.get("data")?.get("skipped_reason")?.as_str()?;
    is_sweny.then(|| reason.into())
}
