//! The ways into the log (S4, S23): each fact that brings events commits them as one batch, which takes
//! effect at once. The caller stores the batch afterwards and postpones the actions that follow until the
//! store has it (S38).
//!
//! ```text
//!   receive         an event from outside    ─┐
//!   receive_reply   the reply to a request    │   one event     LoggedBatch::One, perhaps with
//!   fire            a due timer               ├─▶               the execution of a direct commit
//!   fail            a caught failure          │
//!   succeed         emissions of an execution ┴─▶ any other     LoggedBatch::Many, LoggedBatch::Nothing
//! ```
//!
//! Invariant: the pending count that the source had in its scope passes to the batch, so that no branch is
//! settled between the two.
//!
//! Example: `review` commits the request `Ask` at 4, and nothing else runs. A client replies. `receive_reply`
//! closes the request and numbers the reply 5, with the request's count. If one step takes the reply alone,
//! its execution starts in the same call. Otherwise 5 is queued for evaluation.
//!
//! Every function but `receive_now` first asks `accept`. A fact that comes after the end of the run changes the
//! executions at most: a late execution ends, and its batch is refused (S28).

#![expect(clippy::inline_always, reason = "this is the hot path: inlined parts pass values in registers")]

use super::batch::NumberedBatch;
use super::{Answer, CandidateId, Cause, Emission, Entry, ExecutionStart, Inputs, Scheduler, TimerEntry};
use crate::id::{ExecutionId, ScopeId, Seq, TimerId};
use crate::table::{EventIndex, StepIndex};

/// A batch in the log, as its source committed it.
#[derive(Debug)]
pub(crate) enum LoggedBatch {
    /// The batch has no events.
    Nothing,
    /// The batch is one event, as nearly every batch is. `Some` execution is a direct commit: it follows
    /// alone, and no queue has it.
    One(Entry, Option<DirectStart>),
    /// Any other batch. Boxed, since batches are moved around.
    Many(Box<BatchEntries>),
}

/// The execution of a direct commit: it belongs to the scope of the event, and is bound to this event alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectStart {
    /// Runs already: the scheduler has counted it, and has no further action for it.
    pub(crate) execution: ExecutionId,
    /// The only step that takes the event.
    pub(super) step: StepIndex,
}

/// The content of a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchEntries {
    /// The events, in order.
    pub(crate) events: Vec<Entry>,
    /// The timers that the batch sets, in order.
    pub(crate) timers: Vec<TimerEntry>,
}

impl LoggedBatch {
    /// The events, in order.
    #[inline]
    pub(crate) fn events(&self) -> &[Entry] {
        match self {
            Self::Nothing => &[],
            Self::One(entry, _) => std::slice::from_ref(entry),
            Self::Many(entries) => &entries.events,
        }
    }

    /// The timers that the batch sets, in order.
    #[inline]
    pub(crate) fn timers(&self) -> &[TimerEntry] {
        match self {
            Self::Nothing | Self::One(..) => &[],
            Self::Many(entries) => &entries.timers,
        }
    }

    /// The execution of a direct commit, if there is one.
    #[inline]
    pub(crate) fn next(&self) -> Option<ExecutionStart> {
        let Self::One(Entry { seq, scope, .. }, Some(next)) = *self else { return None };
        let DirectStart { execution, step } = next;
        Some(ExecutionStart { execution, step, scope, trigger: seq, inputs: Inputs::TRIGGER })
    }
}

/// The result of ending an execution.
#[derive(Debug)]
pub(crate) enum CommitOutcome {
    /// The batch is in the log.
    Logged(LoggedBatch),
    /// The run has ended and accepts nothing any more (S28).
    Refused,
    /// The execution is unknown, over or dropped, or the log is full.
    Nothing,
}

impl Scheduler {
    /// Commits an event from outside; `None` if the run has ended or its log is full.
    pub(crate) fn receive(&mut self, event: EventIndex) -> Option<LoggedBatch> {
        self.accept().then(|| self.receive_now(event))?
    }

    /// Commits an event from outside in any state of the run, also while work is left.
    /// Only [`receive`](Self::receive), and tests that plant a fault, may call this function: an event that
    /// enters too early changes what the steps of earlier events see.
    pub(crate) fn receive_now(&mut self, event: EventIndex) -> Option<LoggedBatch> {
        // An event from outside has no source whose count could pass, so the batch gets a count of its own.
        self.board.scopes.add_pending(ScopeId::ROOT);
        self.evaluation.enter(ScopeId::ROOT, event, &mut self.board)
    }

    /// Commits a reply; `None` if the request is not open. The request's count in its scope passes to the
    /// batch.
    pub(crate) fn receive_reply(&mut self, request: Seq) -> Option<LoggedBatch> {
        let open = self.accept().then(|| self.board.awaited.close(request))??;
        self.board.scopes.end_wait(open.scope);
        self.evaluation.enter(open.scope, open.reply, &mut self.board)
    }

    /// Commits the event of a due timer; `None` if the timer is not pending. The count of the timer, or of
    /// the request that it closes, passes to the batch.
    pub(crate) fn fire(&mut self, timer: TimerId) -> Option<(Cause, LoggedBatch)> {
        let fired = self.accept().then(|| self.board.awaited.fire(timer))??;
        let TimerEntry { execution, scope, event, request, .. } = fired;
        self.board.scopes.end_wait(scope);
        // A timer of its own names itself; an expiry names its request, since a reply to that request is
        // refused from here on.
        let cause = request.map_or(Cause::Timer { timer, execution }, Cause::Expired);
        Some((cause, self.evaluation.enter(scope, event, &mut self.board)?))
    }

    /// Takes the answer of a precondition (S18). Ignores an answer whose candidate is dropped.
    pub(crate) fn answered(&mut self, candidate: CandidateId, answer: Answer) {
        if self.accept() {
            self.evaluation.answer(candidate, answer, &mut self.board);
        } else {
            self.answer_clean_up(candidate, answer);
        }
    }

    /// Ends the wait of the run, and returns whether the run accepts a fact. The caller has completed what
    /// follows from the batches before.
    #[inline(always)]
    pub(super) fn accept(&mut self) -> bool {
        let accepts = self.board.progress.accept();
        debug_assert!(!accepts || self.evaluation.is_done(&self.board) && self.board.scopes.are_settled());
        accepts
    }

    /// S23: commits the emissions of an execution as one batch.
    #[inline(always)]
    pub(crate) fn succeed(&mut self, id: ExecutionId, emissions: &[Emission]) -> CommitOutcome {
        let accepts = self.accept();
        let Self { board, evaluation, groups } = self;
        // Ends the execution even if the batch is refused, so that no execution runs after the end of the
        // run.
        let Some((_, scope)) = board.executions.end(id) else { return CommitOutcome::Nothing };
        if !accepts {
            // S31: clean-up emits nothing. Any other result comes too late.
            let ends = self.end_clean_up_of(id) && emissions.is_empty();
            return if ends { CommitOutcome::Logged(LoggedBatch::Nothing) } else { CommitOutcome::Refused };
        }
        // The execution's count in its scope passes to the batch.
        let entered = match emissions {
            // Nearly every batch is one event, which needs neither a list of parts nor a box.
            [Emission::Event(event)] => evaluation.enter(scope, *event, board),
            [] => {
                board.scopes.remove_pending(scope);
                Some(LoggedBatch::Nothing)
            }
            _ => {
                let batch = NumberedBatch::number((id, scope), emissions, board);
                batch.map(|batch| batch.enter(groups, evaluation, board))
            }
        };
        // After the batch: if it ended the run, no waiting execution starts.
        self.board.start_waiting();
        entered.map_or(CommitOutcome::Nothing, CommitOutcome::Logged)
    }

    /// Handles a failed execution (S29). A caught failure commits an event in the scope in which it happened,
    /// and that scope has not failed. Returns `None` if no step catches it. A failure after the stop event
    /// does not change how the run ends (S28).
    pub(crate) fn fail(&mut self, id: ExecutionId) -> Option<LoggedBatch> {
        let accepts = self.accept();
        let Self { board, evaluation, groups } = self;
        let (step, scope) = board.executions.end(id)?;
        if !accepts {
            self.end_clean_up_of(id);
            return None;
        }
        let row = board.table.step(step);
        let (failed, continues) = (row.failed, row.policy.continue_on_error);
        // A caught failure and a tolerated one are both handled failures (S34).
        if failed.is_some() || continues {
            board.progress.degraded = true;
        }
        let entered = if let Some(failed) = failed {
            evaluation.enter(scope, failed, board)
        } else {
            // The failure comes before the count is removed. Otherwise the branch would settle first, without
            // the failure in its summary.
            if !continues {
                groups.fail(scope, vec![id], evaluation, board);
            }
            board.scopes.remove_pending(scope);
            None
        };
        board.start_waiting();
        entered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seq: u64) -> Entry {
        Entry { seq: Seq(seq), scope: ScopeId(2), event: EventIndex::at(0) }
    }

    #[test]
    fn the_execution_that_follows_from_one_event_is_of_its_scope_and_triggered_by_it() {
        let follower = DirectStart { execution: ExecutionId(5), step: StepIndex::at(1) };
        let entered = LoggedBatch::One(entry(3), Some(follower));
        assert_eq!((entered.events(), entered.timers()), (&[entry(3)][..], &[][..]));
        let next = entered.next().map(|start| (start.execution, start.step, start.scope, start.trigger));
        assert_eq!(next, Some((ExecutionId(5), StepIndex::at(1), ScopeId(2), Seq(3))));
    }

    #[test]
    fn nothing_follows_without_a_queue_from_any_other_batch() {
        let many = BatchEntries { events: vec![entry(1), entry(2)], timers: Vec::new() };
        for (entered, events) in [
            (LoggedBatch::Nothing, 0),
            (LoggedBatch::One(entry(1), None), 1),
            (LoggedBatch::Many(many.into()), 2),
        ] {
            assert_eq!(entered.events().len(), events);
            assert!(entered.next().is_none() && entered.timers().is_empty());
        }
    }
}
