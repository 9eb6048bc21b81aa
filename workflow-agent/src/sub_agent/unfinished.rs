//! The usage of sub-agents whose runs ended without an outcome, such as cancelled ones: read from their logs.

use std::sync::Arc;

use workflow_core::report::{ChildReport, RunReport};
use workflow_core::{AnyRun, Engine, ExecutionId, RunId, RunInfo, RunStatus};

use super::find;
use crate::agent::{Agent, Answer, Outcome, Stopped};
use crate::budget::Spent;
use crate::entry::{Entry, ToolDone};
use crate::flow::{Accepted, State, Stopping};

/// The runs of a call's tasks.
pub(crate) struct Unfinished<'a> {
    agent: &'a Agent,
    info: &'a RunInfo,
    engine: &'a Engine,
    /// The execution that runs the tasks.
    execution: ExecutionId,
    /// Handles that keep runs findable after their end.
    held: Vec<AnyRun>,
}

impl<'a> Unfinished<'a> {
    pub(crate) fn new(
        agent: &'a Agent,
        info: &'a RunInfo,
        engine: &'a Engine,
        execution: ExecutionId,
    ) -> Self {
        Self { agent, info, engine, execution, held: Vec::new() }
    }

    /// Holds the runs that are about to be cancelled.
    pub(super) async fn hold(&mut self) {
        let open = self.children().await.into_iter().filter(|child| !child.status.is_ended());
        self.held = open.filter_map(|child| self.engine.find(&child.child.run)).collect();
    }

    /// The usage of all tasks, which have ended or are being cancelled. A reply that had not ended when its run was cancelled
    /// is unknown.
    pub(super) async fn spent(self) -> Spent {
        let mut reports = Vec::new();
        for child in self.children().await {
            match child.report {
                Some(report) => reports.push(report),
                None => reports.extend(self.ended(&child.child.run).await),
            }
        }
        self.sum(&reports)
    }

    /// The usage of all tasks so far. Waits for nothing.
    pub(crate) async fn spent_so_far(self) -> Spent {
        let mut reports = Vec::new();
        for child in self.children().await {
            let run = if child.report.is_some() { None } else { self.engine.find(&child.child.run) };
            reports.extend(child.report);
            if let Some(run) = run {
                reports.extend(run.report_so_far().await.ok());
            }
        }
        self.sum(&reports)
    }

    fn sum(&self, reports: &[Arc<RunReport>]) -> Spent {
        let mut spent = Spent::default();
        for report in reports {
            match report.status {
                RunStatus::Completed => add_outcome(&mut spent, report),
                _ => self.add_log(&mut spent, report),
            }
        }
        spent
    }

    async fn ended(&self, run: &RunId) -> Option<Arc<RunReport>> {
        let held = self.held.iter().find(|held| held.id() == run);
        let run = match held {
            Some(held) => held.clone(),
            None => self.engine.attach_any(run.clone()).await.ok()?,
        };
        run.report().await.ok()
    }

    async fn children(&self) -> Vec<ChildReport> {
        let Some(parent) = self.engine.find(self.info.run()) else { return Vec::new() };
        let Ok(report) = parent.report_so_far().await else { return Vec::new() };
        let children = report.children.iter().filter(|child| child.child.execution == self.execution);
        children.cloned().collect()
    }

    /// Adds the replies of a run, the results of its calls, and the runs behind calls that have no result.
    fn add_log(&self, spent: &mut Spent, report: &RunReport) {
        let Some(agent) = find(self.agent, self.info.workflow(), &report.workflow) else { return };
        let entries = report.log.iter().filter_map(|logged| logged.value.downcast::<Entry>());
        let entries: Vec<_> = entries.filter(|entry| !matches!(**entry, Entry::Results { .. })).collect();
        let own: Vec<&Entry> = entries.iter().map(|entry| &**entry).collect();
        *spent += State::of(&own, agent).spent;
        let mut done: Vec<ExecutionId> = Vec::new();
        for logged in &report.log {
            if let Some(accepted) = logged.value.downcast::<Accepted>() {
                spent.add_at(accepted.usage, accepted.cost);
            } else if let Some(stopping) = logged.value.downcast::<Stopping>() {
                spent.add_at(stopping.usage, stopping.cost);
            }
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
            *spent += outcome.spent();
        }
    }
}
