//! What a run did, as reports and explanations see it: made from scheduler, log and trace when somebody
//! asks, so that a run nobody asks about pays nothing for it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use super::log::Log;
use super::report::{ChildReport, LoggedEvent, Quality, RunReport, StepReport};
use super::timers::{PendingTimer, Timers};
use super::trace::Trace;
use super::waiting::HeldBack;
use super::{RunShared, RunStatus};
use crate::explain::Explanation;
use crate::id::{ExecutionId, RunId};
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

    pub(crate) fn report(&self, run: &RunShared) -> Arc<RunReport> {
        Arc::clone(self.report.get_or_init(|| Arc::new(self.past.view(run).report())))
    }

    pub(crate) fn explanation(&self, run: &RunShared) -> Arc<Explanation> {
        Arc::clone(self.explanation.get_or_init(|| Arc::new(self.past.view(run).explain())))
    }
}

impl Past {
    fn view<'a>(&'a self, run: &'a RunShared) -> View<'a> {
        let Self { status, scheduler, log, trace, began_at } = self;
        let (status, began_at) = (*status, *began_at);
        View { run, status, scheduler, log, trace, timers: None, held: None, began_at }
    }
}

/// A look at a run, be it ended or not.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) run: &'a RunShared,
    pub(super) status: RunStatus,
    pub(super) scheduler: &'a Scheduler,
    pub(super) log: &'a Log,
    pub(super) trace: &'a Trace,
    /// None of a run that has ended: they were dropped.
    pub(super) timers: Option<&'a Timers>,
    /// None of a run that has ended: what had not begun will not.
    pub(super) held: Option<HeldBack<'a>>,
    pub(super) began_at: SystemTime,
}

impl View<'_> {
    pub(super) fn explain(&self) -> Explanation {
        Explanation::of(self.scheduler, &self.report())
    }

    pub(super) fn report(&self) -> RunReport {
        let table = self.scheduler.table();
        let children = self.run.children.get().map(|family| family.reports()).unwrap_or_default();
        RunReport {
            run: self.run.id.clone(),
            thread: self.run.thread().clone(),
            workflow: Arc::clone(&table.name),
            status: self.status,
            quality: self.quality(),
            steps: self.steps(),
            parent: self.run.parent().cloned(),
            waiting: self.held.map(|held| held.executions(self.scheduler, self.trace)).unwrap_or_default(),
            trace: self.trace.report(table, self.log.began(), &by_execution(&children)),
            log: self.logged_events(),
            timers: self.timers(),
            branches: self.trace.branches(self.log.branches(), table),
            violations: self.trace.violations(table),
            children,
            metadata: self.run.metadata().clone(),
        }
    }

    fn quality(&self) -> Quality {
        match self.status {
            RunStatus::Failed | RunStatus::Stalled | RunStatus::Cancelled | RunStatus::TimedOut => {
                Quality::Failed
            }
            _ if self.scheduler.is_degraded() => Quality::Degraded,
            _ if self.run.children.get().is_some_and(|family| family.has_failures()) => Quality::Degraded,
            _ => Quality::Clean,
        }
    }

    fn steps(&self) -> Vec<StepReport> {
        let begun = self.trace.begun(self.scheduler.table());
        let steps = self.scheduler.table().steps.iter().enumerate();
        let report = |(i, step): (usize, &crate::table::StepRow)| StepReport {
            step: Arc::clone(&step.name),
            executions: begun[i],
            surplus: self.scheduler.surplus_of(StepIndex::at(i)),
        };
        steps.map(report).collect()
    }

    /// The timers that are pending, in the order in which they fire.
    pub(super) fn timers(&self) -> Vec<PendingTimer> {
        let table = self.scheduler.table();
        let began = self.began_at + self.log.began();
        let pending = self.timers.into_iter().flat_map(|timers| timers.pending(self.scheduler));
        let pending = pending.filter_map(|(due, entry)| {
            let step = self.trace.step_of(entry.execution)?;
            Some(PendingTimer {
                timer: entry.timer,
                step: Arc::clone(&table.step(step).name),
                event: Arc::clone(&table.event(entry.event).name),
                scope: entry.scope,
                request: entry.request,
                due,
                after: due.duration_since(began).unwrap_or_default(),
            })
        });
        pending.collect()
    }

    fn logged_events(&self) -> Vec<LoggedEvent> {
        let table = self.scheduler.table();
        let records = self.log.records().map(|(seq, record)| LoggedEvent {
            seq,
            scope: record.scope,
            event: Arc::clone(&table.event(record.index).name),
            value: record.event.clone(),
            execution: match record.cause {
                Cause::Execution(execution) | Cause::Failure(execution) | Cause::Timer { execution, .. } => {
                    Some(execution)
                }
                _ => None,
            },
            timer: if let Cause::Timer { timer, .. } = record.cause { Some(timer) } else { None },
            expired: if let Cause::Expired(request) = record.cause { Some(request) } else { None },
            at: self.began_at + record.at,
            reply_to: if let Cause::Reply(request) = record.cause { Some(request) } else { None },
        });
        records.collect()
    }
}

/// The ids of the children of each execution.
fn by_execution(children: &[ChildReport]) -> HashMap<ExecutionId, Vec<RunId>> {
    let mut ids: HashMap<ExecutionId, Vec<RunId>> = HashMap::new();
    for ChildReport { child, .. } in children {
        ids.entry(child.execution).or_default().push(child.run.clone());
    }
    ids
}
