//! Why a step ran, and why it did not: made from the table, the log and the scheduler's decisions.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::table::DependencyTable;

/// Why each step of a run ran, or why it did not.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The workflow.
    pub workflow: Arc<str>,
    /// The steps that did not run.
    pub idle: Vec<IdleStep>,
}

/// Why a run stalled: for each step that did not run, what it waited for.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StallReport {
    /// The workflow.
    pub workflow: Arc<str>,
    /// The steps that did not run.
    pub idle: Vec<IdleStep>,
}

/// A step that did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IdleStep {
    /// The step.
    pub step: Arc<str>,
    /// The inputs that are missing, each by the event types that would do.
    pub missing: Vec<Vec<Arc<str>>>,
    /// The precondition that said no.
    pub refused_by: Option<Arc<str>>,
}

impl Explanation {
    pub(crate) fn stall(&self) -> StallReport {
        StallReport { workflow: Arc::clone(&self.workflow), idle: self.idle.clone() }
    }
}

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the run stalled: nothing runs and nothing can arrive")?;
        for step in &self.idle {
            write!(f, "\n- step `{}` did not run", step.step)?;
            for missing in &step.missing {
                let names: Vec<String> = missing.iter().map(|event| format!("`{event}`")).collect();
                write!(f, "; it waits for {}", names.join(" or "))?;
            }
            if let Some(precondition) = &step.refused_by {
                write!(f, "; its precondition `{precondition}` said no")?;
            }
        }
        Ok(())
    }
}

impl crate::run::Run {
    pub(crate) fn explain(&self) -> Explanation {
        Explanation { workflow: Arc::clone(&self.table().name), idle: self.idle_steps() }
    }

    fn table(&self) -> &DependencyTable {
        self.explained().1.table()
    }

    fn idle_steps(&self) -> Vec<IdleStep> {
        let (events, scheduler) = self.explained();
        let table = scheduler.table();
        let steps = table.steps.iter().enumerate();
        let idle = steps.filter(|(i, _)| scheduler.executions_of(crate::table::StepIndex::at(*i)) == 0);
        idle.map(|(i, row)| {
            let missing = row.inputs.iter().filter(|input| input.condition.is_some_and(|condition| {
                let seen = events.iter().filter(|event| input.events.contains(event)).count();
                seen < condition.least as usize
            }));
            let names = |input: &crate::table::InputRow| {
                input.events.iter().map(|event| Arc::clone(&table.event(*event).name)).collect()
            };
            let refused = scheduler.decisions().iter().any(|decision| {
                decision.step.get() == i && decision.verdict == crate::scheduler::Verdict::Refused
            });
            let precondition = row.precondition.as_ref().filter(|_| refused);
            IdleStep {
                step: Arc::clone(&row.name),
                missing: missing.map(names).collect(),
                refused_by: precondition.map(|row| Arc::clone(&row.name)),
            }
        })
        .collect()
    }
}
