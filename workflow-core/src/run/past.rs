//! What a run did, as reports and explanations see it: made from scheduler, log and trace when somebody
//! asks, so that a run nobody asks about pays nothing for it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use super::RunStatus;
use super::log::Log;
use super::report::{LoggedEvent, Quality, RunReport, StepReport};
use super::trace::Trace;
use crate::explain::Explanation;
use crate::id::{RunId, ThreadId};
use crate::scheduler::{Cause, Scheduler};
use crate::table::StepIndex;

/// What is kept of an ended run.
#[derive(Debug)]
pub(crate) struct Kept {
    past: Past,
    report: OnceLock<Arc<RunReport>>,
    explanation: OnceLock<Arc<Explanation>>,
}

/// The state of a run at its end.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) id: RunId,
    pub(super) thread: ThreadId,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) status: RunStatus,
    pub(super) scheduler: Scheduler,
    pub(super) log: Log,
    pub(super) trace: Trace,
    pub(super) began_at: SystemTime,
}

impl Kept {
    pub(super) fn new(past: Past) -> Self {
        Self { past, report: OnceLock::new(), explanation: OnceLock::new() }
    }

    pub(crate) fn report(&self) -> Arc<RunReport> {
        Arc::clone(self.report.get_or_init(|| Arc::new(self.past.view().report())))
    }

    pub(crate) fn explanation(&self) -> Arc<Explanation> {
        Arc::clone(self.explanation.get_or_init(|| Arc::new(self.past.view().explain())))
    }
}

impl Past {
    fn view(&self) -> View<'_> {
        let Self { id, thread, metadata, status, scheduler, log, trace, began_at } = self;
        View { id, thread, metadata, status: *status, scheduler, log, trace, began_at: *began_at }
    }
}

/// A look at a run, be it ended or not.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) id: &'a RunId,
    pub(super) thread: &'a ThreadId,
    pub(super) metadata: &'a BTreeMap<String, String>,
    pub(super) status: RunStatus,
    pub(super) scheduler: &'a Scheduler,
    pub(super) log: &'a Log,
    pub(super) trace: &'a Trace,
    pub(super) began_at: SystemTime,
}

impl View<'_> {
    pub(super) fn explain(&self) -> Explanation {
        Explanation::of(self.scheduler, &self.report())
    }

    pub(super) fn report(&self) -> RunReport {
        let table = self.scheduler.table();
        RunReport {
            run: self.id.clone(),
            thread: self.thread.clone(),
            workflow: Arc::clone(&table.name),
            status: self.status,
            quality: self.quality(),
            steps: self.steps(),
            trace: self.trace.report(table, self.log.began()),
            log: self.logged_events(),
            branches: self.trace.branches(self.log.branches(), table),
            violations: self.trace.violations(table),
            metadata: self.metadata.clone(),
        }
    }

    fn quality(&self) -> Quality {
        match self.status {
            RunStatus::Failed | RunStatus::Stalled | RunStatus::Cancelled => Quality::Failed,
            _ if self.scheduler.is_degraded() => Quality::Degraded,
            _ => Quality::Clean,
        }
    }

    fn steps(&self) -> Vec<StepReport> {
        let steps = self.scheduler.table().steps.iter().enumerate();
        let report = |(i, step): (usize, &crate::table::StepRow)| StepReport {
            step: Arc::clone(&step.name),
            executions: self.scheduler.executions_of(StepIndex::at(i)),
            surplus: self.scheduler.surplus_of(StepIndex::at(i)),
        };
        steps.map(report).collect()
    }

    fn logged_events(&self) -> Vec<LoggedEvent> {
        let table = self.scheduler.table();
        let records = self.log.records().map(|(seq, record)| LoggedEvent {
            seq,
            scope: record.scope,
            event: Arc::clone(&table.event(record.index).name),
            value: record.event.clone(),
            execution: match record.cause {
                Cause::Execution(id) | Cause::Failure(id) => Some(id),
                Cause::Outside | Cause::Reply(_) => None,
            },
            at: self.began_at + record.at,
            reply_to: if let Cause::Reply(request) = record.cause { Some(request) } else { None },
        });
        records.collect()
    }
}
