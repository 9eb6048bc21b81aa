//! The usage of sub-agents whose runs ended without an outcome, such as cancelled ones: read from their logs.

use workflow_core::report::RunReport;
use workflow_core::{AnyRun, ExecutionId, RunStatus};

use super::{Place, find};
use crate::agent::{Agent, Answer, Outcome, Stopped};
use crate::budget::Spent;
use crate::entry::{Entry, ToolDone};
use crate::flow::State;

/// The runs of a call's tasks.
pub(super) struct Unfinished<'a> {
    agent: &'a Agent,
    place: &'a Place<'a>,
    /// Handles that keep runs findable after their end.
    held: Vec<AnyRun>,
}

impl<'a> Unfinished<'a> {
    pub(super) fn new(agent: &'a Agent, place: &'a Place<'a>) -> Self {
        Self { agent, place, held: Vec::new() }
    }

    /// Holds the runs that are about to be cancelled.
    pub(super) async fn hold(&mut self) {
        let Some(report) = self.parent().await else { return };
        let open = report
            .children
            .iter()
            .filter(|child| child.child.execution == self.place.info.execution() && !child.status.is_ended());
        self.held = open.filter_map(|child| self.place.engine.find(&child.child.run)).collect();
    }

    /// The usage of the runs without an outcome. A reply that had not ended when its run was cancelled is unknown.
    pub(super) async fn spent(self) -> Spent {
        let mut spent = Spent::default();
        for run in &self.held {
            if let Ok(report) = run.report().await {
                self.add(&mut spent, &report);
            }
        }
        let Some(report) = self.parent().await else { return spent };
        let ended = report.children.iter().filter(|child| {
            child.child.execution == self.place.info.execution()
                && self.held.iter().all(|held| *held.id() != child.child.run)
        });
        for report in ended.filter_map(|child| child.report.as_deref()) {
            self.add(&mut spent, report);
        }
        spent
    }

    async fn parent(&self) -> Option<std::sync::Arc<RunReport>> {
        self.place.engine.find(self.place.info.run())?.report_so_far().await.ok()
    }

    /// Adds the usage of a run, unless its outcome has it.
    fn add(&self, spent: &mut Spent, report: &RunReport) {
        if report.status != RunStatus::Completed {
            self.add_log(spent, report);
        }
    }

    /// Adds the replies of a run, the results of its calls, and the runs behind calls that have no result.
    fn add_log(&self, spent: &mut Spent, report: &RunReport) {
        let Some(agent) = find(self.agent, self.place.info.workflow(), &report.workflow) else { return };
        let entries = report.log.iter().filter_map(|logged| logged.value.downcast::<Entry>());
        let entries: Vec<_> = entries.filter(|entry| !matches!(**entry, Entry::Results { .. })).collect();
        let own: Vec<&Entry> = entries.iter().map(|entry| &**entry).collect();
        *spent += State::of(&own, agent).spent;
        let mut done: Vec<ExecutionId> = Vec::new();
        for logged in &report.log {
            if let Some(result) = logged.value.downcast::<ToolDone>() {
                done.extend(logged.execution);
                *spent += Spent {
                    usage: result.usage.unwrap_or_default(),
                    cost: result.cost,
                    tool_calls: u64::from(result.ran) + result.tool_calls,
                };
            }
        }
        for child in report.children.iter().filter(|child| !done.contains(&child.child.execution)) {
            match child.report.as_deref() {
                Some(report) if report.status == RunStatus::Completed => add_outcome(spent, report),
                Some(report) => self.add_log(spent, report),
                None => {}
            }
        }
    }
}

/// Adds the usage that a run's outcome has.
fn add_outcome(spent: &mut Spent, report: &RunReport) {
    for logged in &report.log {
        let answer = logged.value.downcast::<Answer>().map(|answer| Outcome::Answered((*answer).clone()));
        let stopped =
            || logged.value.downcast::<Stopped>().map(|stopped| Outcome::Stopped((*stopped).clone()));
        if let Some(outcome) = answer.or_else(stopped) {
            *spent += Spent::of(&outcome);
        }
    }
}
