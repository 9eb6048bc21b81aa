//! Pending batches: those in a run's state that its store does not have yet.
//!
//! ```text
//! written ──▶ │ Batch │ Derived │ Asked │ Batch │ ◀── position of the state
//!               each with the journal's end behind it
//! ```
//!
//! When the store has a batch, the committer answers its sender. When the store refuses an earlier batch, a
//! [rewind](super::rewind) applies a pending batch again. A question waits in the same queue, so that its
//! answer never shows more than the store has.
//!
//! Invariant: ends never decrease from front to back. So the front decides how much of the queue an answer of
//! the store completes. A record without a batch, such as `RunWaiting`, has no entry here.
//!
//! Example: `Begin` is at the end 2 and under way. A client asks for a report: the answer is made now, from
//! the state with `Begin`, and waits at 2. When the store has position 2, the sender of `Begin` gets `Ok`,
//! and then the client its report.

use tokio::sync::oneshot;

use super::any_run::Command;
use super::commit::{CommitReply, Committer, notify};
use super::journal::Journal;
use super::state::Batch;
use crate::display::Display;
use crate::id::{ExecutionId, Seq};
use crate::store::{Position, Record};

/// A batch, an entry or a question that waits for the store.
pub(super) struct PendingBatch {
    /// The end of the journal with it.
    pub(super) end: Position,
    /// The entry that waits.
    pub(super) what: PendingKind,
}

/// The kind of a pending entry.
pub(super) enum PendingKind {
    /// A batch, with or without events in the log.
    Batch {
        /// The batch, to be applied again by a rewind.
        batch: Batch,
        /// Its events in the log; `None` for a batch without events, such as the answer of a precondition.
        logged: Option<Logged>,
        /// Answers its sender.
        done: Option<CommitReply>,
        /// The display of its execution, if the execution has shown something.
        shown: Option<Box<Display>>,
    },
    /// An entry that followed by itself, such as a gather.
    Derived(Logged),
    /// A question about the state, answered once the store has everything before.
    Question(AnswerOnce),
}

/// A range of events in the log, and the execution that emitted them, if one did.
pub(super) struct Logged {
    /// The execution that succeeded with the events; `None` for events from outside and gathers.
    pub(super) by: Option<ExecutionId>,
    /// The first event; 0 without events.
    pub(super) first: Seq,
    /// How many events follow each other.
    pub(super) count: u64,
}

impl Logged {
    /// The sequence numbers of the events, in order.
    pub(super) fn seqs(&self) -> impl Iterator<Item = Seq> + use<> {
        (self.first.0..).take(usize::try_from(self.count).unwrap_or(0)).map(Seq)
    }
}

impl PendingKind {
    /// The events of the entry in the log; `None` if it has none.
    pub(super) fn logged(&self) -> Option<&Logged> {
        match self {
            Self::Batch { logged, .. } => logged.as_ref(),
            Self::Derived(logged) => Some(logged),
            Self::Question(_) => None,
        }
    }
}

/// An answered question. Called with `true`, it sends its answer. Called with `false` (after a rewind), it
/// returns the question, to be asked again.
pub(super) type AnswerOnce = Box<dyn FnOnce(bool) -> Option<Command> + Send>;

impl Committer {
    /// Answers a question about the state once the store has all of the state. `again` makes the command that
    /// asks it again.
    pub(super) fn answer_when_written<T: Send + 'static>(
        &mut self,
        done: oneshot::Sender<T>,
        answer: T,
        again: impl FnOnce(oneshot::Sender<T>) -> Command + Send + 'static,
    ) {
        if self.journal.as_deref().is_none_or(Journal::is_written) {
            // The caller may be gone.
            let _ = done.send(answer);
            return;
        }
        // The answer is made at once, since the state moves on. If a rewind takes the state back, the answer
        // may be wrong, so the question is asked again.
        let asked: AnswerOnce = Box::new(move |holds| {
            if holds {
                let _ = done.send(answer);
                return None;
            }
            Some(again(done))
        });
        self.pending
            .push_back(PendingBatch { end: self.state.position(), what: PendingKind::Question(asked) });
    }

    /// Adds a batch without events, unless the store has the whole journal: then the batch queued no record either, as
    /// a stop does, and nothing of it waits.
    pub(super) fn note_pending(&mut self, batch: Option<Batch>, done: Option<CommitReply>) {
        if let Some(batch) = batch
            && !self.journal.as_deref().is_none_or(Journal::is_written)
        {
            let what = PendingKind::Batch { batch, logged: None, done, shown: None };
            self.pending.push_back(PendingBatch { end: self.state.position(), what });
        } else {
            notify(done);
        }
    }

    /// Attaches the display of an execution to its batch, if that is the last pending one. If the store refuses the
    /// batch, the items that the execution showed are retracted.
    pub(super) fn note_shown(&mut self, execution: ExecutionId, display: Box<Display>) {
        if let Some(PendingBatch { what: PendingKind::Batch { batch, shown, .. }, .. }) =
            self.pending.back_mut()
            && batch.succeeded_execution() == Some(execution)
        {
            *shown = Some(display);
        }
    }
}

impl Batch {
    /// The same batch, with the JSON of these records back in its events, so that it can be journaled again. An event
    /// gives its JSON to one record, and the event of a timer to two: `TimerSet`, and the firing.
    pub(super) fn recordable(mut self, records: &[Record]) -> Self {
        let logged = records.iter().filter_map(|record| match record {
            Record::EventLogged { event, .. } => event.recordable(1),
            _ => None,
        });
        match &mut self {
            Self::Succeeded { returned, .. } => {
                let set = records.iter().filter_map(|record| match record {
                    Record::TimerSet { event, .. } => event.recordable(2),
                    _ => None,
                });
                returned.events_mut().iter_mut().zip(logged).for_each(|(event, again)| *event = again);
                returned.timers_mut().iter_mut().zip(set).for_each(|(timer, again)| timer.event = again);
            }
            Self::Received { event, .. } | Self::Replied { event, .. } | Self::Fired { event, .. } => {
                logged.take(1).for_each(|again| *event = again);
            }
            _ => {}
        }
        self
    }
}
