//! The compact form of a scheduler whose run waits, from which the scheduler is restored exactly. Parts that
//! are empty in such a run are absent, and the others have no spare capacity.
//!
//! A run can be suspended in one state only: it waits, without branches, timers, running executions or open
//! questions.
//!
//! ```text
//!  Scheduler ─ can_suspend? ─▶ SuspendedScheduler        table and empty parts are not stored
//!      ▲                              │ restore(table)
//!      └──────────────────────────────┘                  the same snapshot as before
//! ```
//!
//! Invariant: a restored scheduler decides as the suspended one would have, and numbers continue where they
//! ended. So every counter is stored, also where the things that it counted are gone.
//!
//! Example: a run asks a client and waits, with one open request. Its scheduler is suspended. The reply arrives
//! a day later: the scheduler is restored, takes the reply, and continues.

use std::sync::Arc;

use super::awaited::{Awaited, SuspendedRequests};
use super::board::Board;
use super::evaluate::Evaluation;
use super::executions::{Executions, SuspendedExecutions};
use super::group::Groups;
use super::progress::Progress;
use super::row_states::{StepState, TopicState};
use super::scope::Scopes;
use super::{Decision, Scheduler, SchedulerLimits};
use crate::id::Seq;
use crate::table::{DependencyTable, Mask};

/// A suspended scheduler: one that waits without branches and timers.
#[derive(Debug)]
pub(crate) struct SuspendedScheduler {
    /// The limits of the live run.
    limits: SchedulerLimits,
    /// The only scope. Its `pending` counts the open requests.
    root: SuspendedRoot,
    /// All executions, for the report and for their numbers.
    executions: SuspendedExecutions,
    /// The open requests, and the number of the last timer.
    requests: SuspendedRequests,
    /// All decisions, for explanations.
    decisions: Box<[Decision]>,
    /// The number of the next candidate. Numbers are never used twice in a run.
    next_candidate: u64,
    /// The end of the log.
    last_seq: Seq,
    /// The number of fan-outs so far, from which the next one is numbered.
    groups: u32,
    /// Whether a failure was handled (S34).
    degraded: bool,
}

/// The root, which is the only scope of a suspended run.
#[derive(Debug)]
pub(super) struct SuspendedRoot {
    /// The conditions that the events satisfy.
    pub(super) satisfied: Mask,
    /// The events by topic.
    pub(super) topics: Box<[TopicState]>,
    /// The executed combinations and numbers of executions.
    pub(super) steps: Box<[StepState]>,
    /// One count per open request.
    pub(super) pending: u32,
    /// The number of the next scope.
    pub(super) next: u32,
}

impl Scheduler {
    /// Whether the scheduler can be suspended. O(1).
    pub(crate) fn can_suspend(&self) -> bool {
        // Each part judges its own state. A branch that was ever open rules suspension out, since the history
        // and the numbering of branches stay in memory.
        let Self { board, evaluation, groups } = self;
        board.progress.waits
            && !board.progress.has_ended()
            && board.is_quiet()
            && board.executions.can_suspend()
            && board.awaited.timers().len() == 0
            && board.scopes.can_suspend()
            && evaluation.can_suspend()
            && groups.are_none()
    }

    /// Gives back memory that is needed only while work is queued.
    pub(crate) fn shrink(&mut self) {
        self.board.shrink();
        self.evaluation.shrink();
    }
}

impl SuspendedScheduler {
    /// Takes the state out of a scheduler that [can be suspended](Scheduler::can_suspend); the caller drops
    /// the rest of it. O(state).
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
            degraded: board.progress.degraded,
        }
    }

    /// Restores the scheduler as it was.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::fixtures::{self, event};
    use crate::scheduler::{Action, Fact};

    fn snapshot(scheduler: &Scheduler) -> String {
        let mut text = String::new();
        scheduler.write_snapshot(&mut text);
        text
    }

    #[test]
    fn a_scheduler_that_waits_is_restored_as_it_was_and_one_that_does_not_is_not_suspended() {
        let board = fixtures::board(SchedulerLimits::default());
        let (note, begin) = (event(&board, "Note"), event(&board, "Begin"));
        let mut scheduler = Scheduler::new(Arc::clone(&board.table));
        scheduler.apply(Fact::EventReceived { event: note });
        assert!(!scheduler.can_suspend(), "its actions were not handed out");
        while scheduler.next_action().is_some_and(|action| action != Action::Wait) {}
        assert!(scheduler.can_suspend());
        let before = snapshot(&scheduler);
        let mut restored = SuspendedScheduler::of(&mut scheduler).restore(Arc::clone(&board.table));
        assert_eq!(snapshot(&restored), before);
        restored.apply(Fact::EventReceived { event: begin });
        assert!(!restored.can_suspend(), "an execution runs");
    }
}
