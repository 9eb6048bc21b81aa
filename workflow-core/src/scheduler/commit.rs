//! What came into a run, and what it leaves in the log (S4, S23): facts are taken in, and their events take effect at once,
//! whoever keeps them afterwards.

#![expect(
    clippy::inline_always,
    reason = "every step goes through here: as one function its parts pass no values through memory"
)]

use super::batch::Batch;
use super::{Answer, CandidateId, Cause, Emission, Entry, ExecutionStart, Inputs, Scheduler, TimerEntry};
use crate::id::{ExecutionId, ScopeId, Seq, TimerId};
use crate::table::{EventIndex, StepIndex};

/// A batch that is in the log.
#[derive(Debug)]
pub(crate) enum Entered {
    /// It leaves nothing.
    Nothing,
    /// It is one event, as nearly every batch is. With the execution that follows from it, where that is all that
    /// follows: no queue has it.
    One(Entry, Option<Follower>),
    /// Any other. Boxed: batches are handed on.
    Many(Box<Entries>),
}

/// An execution that follows from one event: it is of the event's scope, and bound to it alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follower {
    pub(crate) execution: ExecutionId,
    pub(super) step: StepIndex,
}

/// What a batch consists of.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Its events, in order.
    pub(crate) events: Vec<Entry>,
    /// The timers that it sets, in order.
    pub(crate) timers: Vec<TimerEntry>,
}

impl Entered {
    /// Its events, in order.
    #[inline]
    pub(crate) fn events(&self) -> &[Entry] {
        match self {
            Self::Nothing => &[],
            Self::One(entry, _) => std::slice::from_ref(entry),
            Self::Many(entries) => &entries.events,
        }
    }

    /// The timers that it sets, in order.
    #[inline]
    pub(crate) fn timers(&self) -> &[TimerEntry] {
        match self {
            Self::Nothing | Self::One(..) => &[],
            Self::Many(entries) => &entries.timers,
        }
    }

    /// The execution that follows from it, where that is all that follows.
    #[inline]
    pub(crate) fn next(&self) -> Option<ExecutionStart> {
        let Self::One(Entry { seq, scope, .. }, Some(next)) = *self else { return None };
        let Follower { execution, step } = next;
        Some(ExecutionStart { execution, step, scope, trigger: seq, inputs: Inputs::TRIGGER })
    }
}

/// What became of an execution's end.
#[derive(Debug)]
pub(crate) enum Committed {
    /// Its batch is in the log.
    Entered(Entered),
    /// The run has ended, and takes nothing more (S28).
    Refused,
    /// The execution is unknown, over or dropped, or the log is full.
    Nothing,
}

impl Scheduler {
    /// An event from outside; none if the run has ended, or has no room for it.
    pub(crate) fn receive(&mut self, event: EventIndex) -> Option<Entered> {
        self.accept().then(|| self.receive_now(event))?
    }

    /// The same whatever is left to do and however the run stands.
    pub(crate) fn receive_now(&mut self, event: EventIndex) -> Option<Entered> {
        self.board.scopes.hold(ScopeId::ROOT);
        self.evaluation.enter(ScopeId::ROOT, event, &mut self.board)
    }

    /// A reply; none if the request is not open. The request's hold on the scope becomes the batch's.
    pub(crate) fn receive_reply(&mut self, request: Seq) -> Option<Entered> {
        let open = self.accept().then(|| self.board.awaited.close(request))??;
        self.evaluation.enter(open.scope, open.reply, &mut self.board)
    }

    /// A timer fires; none if it is not pending. The hold of the timer, or of the request that it closes, becomes the
    /// batch's.
    pub(crate) fn fire(&mut self, timer: TimerId) -> Option<(Cause, Entered)> {
        let fired = self.accept().then(|| self.board.awaited.fire(timer))??;
        let TimerEntry { execution, scope, event, request, .. } = fired;
        let cause = request.map_or(Cause::Timer { timer, execution }, Cause::Expired);
        Some((cause, self.evaluation.enter(scope, event, &mut self.board)?))
    }

    /// A precondition answered; nothing happens if nobody wants the answer (S18).
    pub(crate) fn answered(&mut self, candidate: CandidateId, answer: Answer) {
        if self.accept() {
            self.evaluation.answer(candidate, answer, &mut self.board);
        }
    }

    /// Whether the run takes something in. What follows from the batches before is complete: whoever tells of one sees
    /// to it.
    #[inline(always)]
    pub(super) fn accept(&mut self) -> bool {
        let accepts = self.board.progress.accept();
        debug_assert!(!accepts || self.evaluation.is_done(&self.board) && self.board.scopes.are_settled());
        accepts
    }

    /// S23: an execution's emissions enter the log as one batch.
    #[inline(always)]
    pub(crate) fn succeed(&mut self, id: ExecutionId, emissions: &[Emission]) -> Committed {
        let accepts = self.accept();
        let Self { board, evaluation, groups } = self;
        let Some((_, scope)) = board.executions.end(id) else { return Committed::Nothing };
        if !accepts {
            return Committed::Refused;
        }
        // The execution's hold on its scope becomes the batch's.
        let entered = match emissions {
            [Emission::Event(event)] => evaluation.enter(scope, *event, board),
            [] => {
                board.scopes.release(scope);
                Some(Entered::Nothing)
            }
            _ => {
                let batch = Batch::number((id, scope), emissions, board);
                batch.map(|batch| batch.enter(groups, evaluation, board))
            }
        };
        self.board.start_waiting();
        entered.map_or(Committed::Nothing, Committed::Entered)
    }

    /// S29. A failure that is caught is an event of the scope it happened in, which has not failed; `None` if it is not
    /// caught. One that comes after the stop event does not change how the run ends (S28).
    pub(crate) fn fail(&mut self, id: ExecutionId) -> Option<Entered> {
        let accepts = self.accept();
        let Self { board, evaluation, groups } = self;
        let (step, scope) = board.executions.end(id)?;
        if !accepts {
            return None;
        }
        let row = board.table.step(step);
        let (failed, goes_on) = (row.failed, row.policy.continue_on_error);
        if failed.is_some() || goes_on {
            board.progress.degraded = true;
        }
        let entered = if let Some(failed) = failed {
            evaluation.enter(scope, failed, board)
        } else {
            if !goes_on {
                groups.fail(scope, vec![id], evaluation, board);
            }
            board.scopes.release(scope);
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
        let follower = Follower { execution: ExecutionId(5), step: StepIndex::at(1) };
        let entered = Entered::One(entry(3), Some(follower));
        assert_eq!((entered.events(), entered.timers()), (&[entry(3)][..], &[][..]));
        let next = entered.next().map(|start| (start.execution, start.step, start.scope, start.trigger));
        assert_eq!(next, Some((ExecutionId(5), StepIndex::at(1), ScopeId(2), Seq(3))));
    }

    #[test]
    fn nothing_follows_without_a_queue_from_any_other_batch() {
        let many = Entries { events: vec![entry(1), entry(2)], timers: Vec::new() };
        for (entered, events) in
            [(Entered::Nothing, 0), (Entered::One(entry(1), None), 1), (Entered::Many(many.into()), 2)]
        {
            assert_eq!(entered.events().len(), events);
            assert!(entered.next().is_none() && entered.timers().is_empty());
        }
    }
}
