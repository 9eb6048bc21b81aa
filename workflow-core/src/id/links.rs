//! Links between a run and its child runs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ExecutionId, RunId};

/// A child run, as its parent lists it.
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
    /// Whether the execution waits for the child: [run](crate::Children::run), and not [started](crate::Children::start).
    pub awaited: bool,
}

/// The parent of a child run, as the child's journal names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ParentRun {
    /// The run.
    pub run: RunId,
    /// The parent's step that started the child.
    pub step: Arc<str>,
    /// The execution of that step.
    pub execution: ExecutionId,
    /// The attempt of that execution.
    pub attempt: u32,
}

impl ParentRun {
    /// The reason for cancelling a child of this parent.
    pub(crate) fn cancel_reason(&self, awaited: bool) -> Arc<str> {
        let Self { run, step, execution, .. } = self;
        if awaited {
            format!("{execution} of step `{step}` in run `{run}` no longer waits for it").into()
        } else {
            format!("its parent `{run}` was cancelled").into()
        }
    }

    /// The child's entry in its parent's list.
    pub(crate) fn child(&self, run: RunId, workflow: Arc<str>, awaited: bool) -> ChildRun {
        let Self { step, execution, attempt, .. } = self.clone();
        ChildRun { run, workflow, step, execution, attempt, awaited }
    }
}
