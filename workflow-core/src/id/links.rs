//! Links between a run and its child runs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ExecutionId, RunId};

/// A child run, as its parent knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildRun {
    /// The child.
    pub run: RunId,
    /// Its workflow.
    pub workflow: Arc<str>,
    /// The step that started it.
    pub step: Arc<str>,
    /// The execution of that step.
    pub execution: ExecutionId,
    /// The attempt of that execution.
    pub attempt: u32,
    /// Whether the execution waits for it: it was [run](Children::run), not [started](Children::start).
    pub awaited: bool,
}

/// The parent of a child run, as the child knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ParentRun {
    /// The parent.
    pub run: RunId,
    /// The step of it that started the child.
    pub step: Arc<str>,
    /// The execution of that step.
    pub execution: ExecutionId,
    /// The attempt of that execution.
    pub attempt: u32,
}

impl ParentRun {
    /// Why a child of it is cancelled.
    pub(crate) fn why_unwanted(&self, awaited: bool) -> Arc<str> {
        let Self { run, step, execution, .. } = self;
        if awaited {
            format!("{execution} of step `{step}` in run `{run}` no longer waits for it").into()
        } else {
            format!("its parent `{run}` was cancelled").into()
        }
    }

    /// Who the child is, as its parent names it.
    pub(crate) fn child(&self, run: RunId, workflow: Arc<str>, awaited: bool) -> ChildRun {
        let Self { step, execution, attempt, .. } = self.clone();
        ChildRun { run, workflow, step, execution, attempt, awaited }
    }
}
