//! Pausing a run (S61): nothing begins until it is unpaused.
//!
//! Events are evaluated as ever. The executions and questions that follow are created and deferred: executions in the
//! queues of their steps, as those that wait for a `concurrency` (S21), and questions by a mark. So their drop with a branch,
//! say, needs no rule of its own. Nor does the run wait or stall
//! meanwhile, since what follows from its state is decided once it is unpaused.
//!
//! ```text
//!  Paused     actions [Ask q1, Start x2]   ─▶ q1 marked, x2 in the queue of its step
//!  event      ready: q2, x3                ─▶ q2 marked, x3 behind x2
//!  Unpaused                                ─▶ Ask q1, Ask q2, Start x2, Start x3
//! ```

use super::actions::QueuedAction;
use super::{Candidate, CandidateId, Decision, Scheduler};
use crate::id::ExecutionId;

impl Scheduler {
    /// Whether the run is paused.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.board.progress.paused
    }

    /// Whether the evaluation led to a question that is asked once the run is unpaused. O(open questions) in a paused run.
    pub(crate) fn is_deferred(&self, evaluated: &Decision) -> bool {
        let Decision { trigger, step, scope, .. } = *evaluated;
        let is_it = |candidate: &Candidate| {
            candidate.deferred
                && (candidate.step, candidate.scope, candidate.trigger) == (step, scope, trigger)
        };
        self.is_paused() && self.evaluation.candidates.iter().any(|(_, candidate)| is_it(candidate))
    }

    /// Pauses the run, and returns whether it is paused now: it has not ended. Defers the executions and questions
    /// whose actions were not taken, and these executions, which have not begun.
    ///
    /// The caller has completed what follows from the facts before.
    pub(crate) fn pause(&mut self, unbegun: &[ExecutionId]) -> bool {
        if !self.accept() {
            return false;
        }
        let Self { board, evaluation, .. } = self;
        board.progress.paused = true;
        for queued in board.actions.take_unbegun() {
            match queued {
                QueuedAction::Start(start) => board.executions.withdraw(start.execution),
                QueuedAction::Ask(candidate) => evaluation.candidates.defer(candidate),
                _ => {}
            }
        }
        for execution in unbegun {
            board.executions.withdraw(*execution);
        }
        true
    }

    /// Defers open questions of a paused run that are not asked, whose actions were taken before. They are asked again at
    /// the end of the pause. Returns them.
    pub(crate) fn defer_questions(&mut self, is_asked: impl Fn(CandidateId) -> bool) -> Vec<CandidateId> {
        let candidates = &mut self.evaluation.candidates;
        let open = candidates.iter().filter(|(id, candidate)| !candidate.deferred && !is_asked(*id));
        let open: Vec<CandidateId> = open.map(|(id, _)| id).collect();
        for candidate in &open {
            candidates.defer(*candidate);
        }
        open
    }

    /// Lets a run that waits say so once more.
    ///
    /// The caller has completed what follows from the facts before.
    pub(crate) fn wait_again(&mut self) {
        self.accept();
    }

    /// Ends the pause: asks the deferred questions, and then starts the deferred executions, each in order. Does nothing
    /// if the run is not paused.
    ///
    /// The caller has completed what follows from the facts before.
    pub(crate) fn unpause(&mut self) {
        if !self.is_paused() {
            return;
        }
        let Self { board, evaluation, .. } = self;
        board.progress.paused = false;
        for candidate in evaluation.candidates.take_deferred() {
            board.actions.push(QueuedAction::Ask(candidate));
        }
        board.start_waiting();
    }
}
