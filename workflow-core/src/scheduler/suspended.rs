//! The state of a scheduler that waits, in little memory: empty parts are left out, and the others keep no room for more.

use std::collections::VecDeque;
use std::sync::Arc;

use super::awaited::{Awaited, SuspendedRequests};
use super::evaluate::Evaluation;
use super::executions::{Executions, SuspendedExecutions};
use super::group::Groups;
use super::scope::Scopes;
use super::seen::{StepState, TopicState};
use super::sweep::Sweeps;
use super::{Decision, Scheduler, SchedulerLimits};
use crate::table::{DependencyTable, Mask};

/// A scheduler that waits, and has no branches and no timers.
#[derive(Debug)]
pub(crate) struct SuspendedScheduler {
    limits: SchedulerLimits,
    root: SuspendedRoot,
    executions: SuspendedExecutions,
    requests: SuspendedRequests,
    decisions: Box<[Decision]>,
    next_candidate: u64,
    last_seq: u64,
    groups: u32,
    degraded: bool,
}

/// The only scope of a run.
#[derive(Debug)]
pub(super) struct SuspendedRoot {
    pub(super) satisfied: Mask,
    pub(super) topics: Box<[TopicState]>,
    pub(super) steps: Box<[StepState]>,
    pub(super) pending: u32,
    /// The number of the next scope.
    pub(super) next: u32,
}

impl Scheduler {
    /// Whether it can be suspended. O(1).
    pub(crate) fn can_suspend(&self) -> bool {
        self.waits
            && self.end.is_none()
            && self.actions.is_empty()
            && self.evaluation.is_done()
            && !self.evaluation.is_asking()
            && self.executions.can_suspend()
            && self.groups.are_none()
            && self.awaited.timers().len() == 0
            && self.scopes.can_suspend()
            && self.sweeps.history().is_none()
    }

    /// Suspends what it has come to, if it [can be](Self::can_suspend); the rest of it is of no use. O(what it has).
    pub(crate) fn suspend(&mut self) -> SuspendedScheduler {
        debug_assert!(self.can_suspend(), "nothing is lost");
        let next_candidate = self.evaluation.next_candidate();
        SuspendedScheduler {
            limits: self.limits,
            root: self.scopes.suspend(),
            executions: self.executions.suspend(),
            requests: self.awaited.suspend(),
            decisions: std::mem::take(&mut self.evaluation.decisions).into_boxed_slice(),
            next_candidate,
            last_seq: self.last_seq,
            groups: self.groups.count(),
            degraded: self.degraded,
        }
    }

    /// Gives back the memory that it needs only while there is something to do.
    pub(crate) fn shrink(&mut self) {
        self.actions.shrink_to_fit();
        self.evaluation.shrink();
        self.sweeps.shrink();
    }
}

impl SuspendedScheduler {
    /// The scheduler as it was.
    pub(crate) fn restore(self, table: Arc<DependencyTable>) -> Scheduler {
        Scheduler {
            table,
            limits: self.limits,
            scopes: Scopes::restore(self.root),
            sweeps: Sweeps::default(),
            groups: Groups::counted(self.groups),
            evaluation: Evaluation::of(self.decisions, self.next_candidate),
            executions: Executions::restore(self.executions),
            awaited: Awaited::restore(self.requests),
            actions: VecDeque::new(),
            last_seq: self.last_seq,
            waits: true,
            degraded: self.degraded,
            end: None,
        }
    }
}
