//! Tracks, through observations, the activity of a run outside of step calls.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::{ExecutionId, RunId};

/// Activity outside of step calls. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Outside {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Executions with a failed attempt that have not ended.
    retried: BTreeSet<ExecutionId>,
    /// Active child runs.
    children: BTreeSet<RunId>,
    had_children: bool,
    /// Executions with an attempt that failed since the last query.
    failed: HashSet<ExecutionId>,
}

impl Outside {
    /// Observes one run.
    pub(super) fn observer(&self, run: RunId) -> impl Observer + use<> {
        Watch { run, outside: self.clone() }
    }

    /// The executions that were attempted and have not ended.
    pub(super) fn retried(&self) -> BTreeSet<ExecutionId> {
        self.state().retried.clone()
    }

    /// The child runs that were started and have not ended.
    pub(super) fn children(&self) -> BTreeSet<RunId> {
        self.state().children.clone()
    }

    /// Whether child runs were started.
    pub(super) fn had_children(&self) -> bool {
        self.state().had_children
    }

    /// The executions with an attempt that failed since the last call.
    pub(super) fn take_failed(&self) -> HashSet<ExecutionId> {
        std::mem::take(&mut self.state().failed)
    }

    /// No code leaves the state half-changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Watch {
    run: RunId,
    outside: Outside,
}

impl Observer for Watch {
    fn observe(&self, Observation { run, what, .. }: &Observation) {
        if *run == self.run {
            self.outside.state().take_in(what);
        }
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

impl State {
    fn take_in(&mut self, what: &Observed) {
        match what {
            Observed::AttemptFailed { execution, .. } => {
                self.retried.insert(*execution);
                self.failed.insert(*execution);
            }
            Observed::ExecutionFailed { execution, .. } => {
                self.retried.remove(execution);
                self.failed.insert(*execution);
            }
            Observed::ExecutionSucceeded { execution, .. }
            | Observed::ExecutionDropped { execution, .. }
            | Observed::CommitRefused { execution, .. } => {
                self.retried.remove(execution);
            }
            Observed::ChildStarted { child } => {
                self.had_children = true;
                self.children.insert(child.run.clone());
            }
            Observed::ChildEnded { child, .. } => {
                self.children.remove(&child.run);
            }
            _ => {}
        }
    }
}
