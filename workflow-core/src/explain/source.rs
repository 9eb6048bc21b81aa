//! The facts that explanations are made of, indexed for looking up.

use std::collections::HashMap;
use std::sync::Arc;

use super::Cited;
use crate::id::{ExecutionId, ScopeId, Seq};
use crate::run::{ExecutionOutcome, ExecutionTrace, RunReport};
use crate::scheduler::{Scheduler, Verdict};
use crate::table::{DependencyTable, EventIndex, StepIndex, StepRow};

/// A run's table, log, trace and decisions.
pub(super) struct Source<'a> {
    pub(super) scheduler: &'a Scheduler,
    pub(super) report: &'a RunReport,
    executions: HashMap<ExecutionId, &'a ExecutionTrace>,
    /// The positions of each event type in each scope, ascending.
    positions: HashMap<(ScopeId, EventIndex), Vec<Seq>>,
    parents: HashMap<ScopeId, ScopeId>,
}

impl<'a> Source<'a> {
    pub(super) fn of(scheduler: &'a Scheduler, report: &'a RunReport) -> Self {
        let names: HashMap<&str, EventIndex> = scheduler
            .table()
            .events
            .iter()
            .enumerate()
            .map(|(i, event)| (&*event.name, EventIndex::at(i)))
            .collect();
        let mut positions: HashMap<_, Vec<Seq>> = HashMap::new();
        for logged in &report.log {
            if let Some(event) = names.get(&*logged.event) {
                positions.entry((logged.scope, *event)).or_default().push(logged.seq);
            }
        }
        Self {
            scheduler,
            report,
            executions: report.trace.iter().map(|trace| (trace.execution, trace)).collect(),
            positions,
            parents: report.branches.iter().map(|branch| (branch.scope, branch.parent)).collect(),
        }
    }

    pub(super) fn table(&self) -> &'a DependencyTable {
        self.scheduler.table()
    }

    pub(super) fn execution(&self, id: ExecutionId) -> Option<&'a ExecutionTrace> {
        self.executions.get(&id).copied()
    }

    pub(super) fn executions_of(&self, step: &StepRow) -> impl Iterator<Item = &'a ExecutionTrace> {
        let name = Arc::clone(&step.name);
        self.report.trace.iter().filter(move |trace| trace.step == name)
    }

    pub(super) fn has_verdict(&self, step: StepIndex, verdict: Verdict) -> bool {
        let mut decisions = self.scheduler.decisions().iter();
        decisions.any(|decision| decision.step == step && decision.verdict == verdict)
    }

    pub(super) fn cite(&self, seq: Seq) -> Cited {
        let logged = usize::try_from(seq.0).ok().and_then(|at| self.report.log.get(at.checked_sub(1)?));
        let producer = logged.and_then(|logged| self.execution(logged.execution?));
        Cited {
            seq,
            event: logged.map_or_else(|| "?".into(), |logged| Arc::clone(&logged.event)),
            producer: producer.map(|trace| Arc::clone(&trace.step)),
        }
    }

    /// How many events of these types a scope saw at a position.
    pub(super) fn visible(&self, scope: ScopeId, events: &[EventIndex], until: Seq) -> u32 {
        let mut count = 0;
        let mut next = Some(scope);
        while let Some(scope) = next {
            let here = events.iter().filter_map(|event| self.positions.get(&(scope, *event)));
            count += here.map(|seqs| seqs.partition_point(|seq| *seq <= until)).sum::<usize>();
            next = self.parents.get(&scope).copied();
        }
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// How many events of a type the step emitted: in scope or above, and in branches elsewhere.
    pub(super) fn emitted(&self, step: &StepRow, event: EventIndex, scope: ScopeId) -> (u64, u64) {
        let name = &self.table().event(event).name;
        let logged = self.report.log.iter().filter(|logged| logged.event == *name);
        let by_step = logged.filter(|logged| {
            let execution = logged.execution.and_then(|id| self.execution(id));
            execution.is_some_and(|trace| trace.step == step.name)
        });
        by_step.fold((0, 0), |(seen, elsewhere), logged| {
            if self.sees(scope, logged.scope) { (seen + 1, elsewhere) } else { (seen, elsewhere + 1) }
        })
    }

    fn sees(&self, scope: ScopeId, other: ScopeId) -> bool {
        let mut chain = std::iter::successors(Some(scope), |scope| self.parents.get(scope).copied());
        chain.any(|scope| scope == other)
    }

    /// What the step failed with, the last time.
    pub(super) fn last_failure(&self, step: &StepRow) -> Option<String> {
        let failures = self.executions_of(step).filter_map(|trace| match &trace.outcome {
            ExecutionOutcome::Failed { error, .. } => Some(error.clone()),
            _ => None,
        });
        failures.last()
    }

    pub(super) fn is_running(&self, step: &StepRow) -> bool {
        self.executions_of(step).any(|trace| trace.outcome == ExecutionOutcome::Running)
    }
}
