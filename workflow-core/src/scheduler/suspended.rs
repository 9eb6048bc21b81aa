//! The state of a scheduler that waits, in little memory: empty parts are left out, and the others keep no room for more.

use std::sync::Arc;

use super::awaited::{Awaited, SuspendedRequests};
use super::board::Board;
use super::evaluate::Evaluation;
use super::executions::{Executions, SuspendedExecutions};
use super::group::Groups;
use super::progress::Progress;
use super::scope::Scopes;
use super::seen::{StepState, TopicState};
use super::{Decision, Scheduler, SchedulerLimits};
use crate::id::Seq;
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
    last_seq: Seq,
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
        let Self { board, evaluation, groups } = self;
        board.progress.waits()
            && !board.progress.has_ended()
            && board.is_quiet()
            && board.executions.can_suspend()
            && board.awaited.timers().len() == 0
            && board.scopes.can_suspend()
            && evaluation.can_suspend()
            && groups.are_none()
    }

    /// Gives back the memory that it needs only while there is something to do.
    pub(crate) fn shrink(&mut self) {
        self.board.shrink();
        self.evaluation.shrink();
    }
}

impl SuspendedScheduler {
    /// What a scheduler has come to that [can be suspended](Scheduler::can_suspend); the rest of it is of no use. O(what
    /// it has).
    pub(crate) fn of(scheduler: &mut Scheduler) -> Self {
        debug_assert!(scheduler.can_suspend(), "nothing is lost");
        let Scheduler { board, evaluation, groups } = scheduler;
        let (decisions, next_candidate) = evaluation.suspend();
        Self {
            limits: board.progress.limits,
            root: board.scopes.suspend(),
            executions: board.executions.suspend(),
            requests: board.awaited.suspend(),
            decisions,
            next_candidate,
            last_seq: board.progress.last_seq(),
            groups: groups.count(),
            degraded: board.progress.is_degraded(),
        }
    }

    /// The scheduler as it was.
    pub(crate) fn restore(self, table: Arc<DependencyTable>) -> Scheduler {
        let progress = Progress::waiting(self.limits, self.last_seq, self.degraded);
        let (scopes, executions) = (Scopes::restore(self.root), Executions::restore(self.executions));
        Scheduler {
            board: Board::of(table, progress, scopes, executions, Awaited::restore(self.requests)),
            evaluation: Evaluation::restore(self.decisions, self.next_candidate),
            groups: Groups::counted(self.groups),
        }
    }
}
