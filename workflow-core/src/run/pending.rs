//! Pending batches: they are in a run's state, and its store does not have them. Each knows its sender, who is notified once
//! the store has it, and can be applied again if the store refuses a batch before it.

use tokio::sync::oneshot;

use super::commit::{Committer, Done};
use super::handle::Command;
use super::journal::Journal;
use super::state::Batch;
use crate::display::Display;
use crate::id::{ExecutionId, Seq};
use crate::store::{Position, Record};

/// A batch, an entry or a question behind the records that the store has.
pub(super) struct PendingBatch {
    /// Where the journal ends with it.
    pub(super) end: Position,
    pub(super) what: PendingWhat,
}

pub(super) enum PendingWhat {
    /// A batch, with or without events in the log.
    Batch {
        batch: Batch,
        /// Its events in the log; none for a batch without events, such as the answer of a precondition.
        logged: Option<Logged>,
        /// Notifies its sender.
        done: Option<Done>,
        /// The display of its execution, if that has shown something.
        shown: Option<Box<Display>>,
    },
    /// An entry that followed by itself.
    Derived(Logged),
    /// A question about the state with all that stands before.
    Asked(Asked),
}

/// So many events from this position are in the log, left by this execution if by any.
pub(super) struct Logged {
    pub(super) by: Option<ExecutionId>,
    pub(super) first: Seq,
    pub(super) count: u64,
}

impl Logged {
    pub(super) fn seqs(&self) -> impl Iterator<Item = Seq> + use<> {
        (self.first.0..).take(usize::try_from(self.count).unwrap_or(0)).map(Seq)
    }
}

impl PendingWhat {
    pub(super) fn logged(&self) -> Option<&Logged> {
        match self {
            Self::Batch { logged, .. } => logged.as_ref(),
            Self::Derived(logged) => Some(logged),
            Self::Asked(_) => None,
        }
    }
}

/// A question that has its answer: gives it if it holds, and else returns the question, to be asked again.
pub(super) type Asked = Box<dyn FnOnce(bool) -> Option<Command> + Send>;

impl Committer {
    /// Answers a question about the state once the store has all of it. `again` asks it once more.
    pub(super) fn answer_when_written<T: Send + 'static>(
        &mut self,
        done: oneshot::Sender<T>,
        answer: T,
        again: fn(oneshot::Sender<T>) -> Command,
    ) {
        if self.journal.as_deref().is_none_or(Journal::is_written) {
            // The caller may be gone.
            let _ = done.send(answer);
            return;
        }
        let asked: Asked = Box::new(move |holds| {
            if holds {
                let _ = done.send(answer);
                return None;
            }
            Some(again(done))
        });
        self.pending.push_back(PendingBatch { end: self.state.position(), what: PendingWhat::Asked(asked) });
    }

    /// Notes a batch without events, unless nothing is pending before it.
    pub(super) fn note_pending(&mut self, batch: Option<Batch>) {
        if let Some(batch) = batch
            && !self.journal.as_deref().is_none_or(Journal::is_written)
        {
            let what = PendingWhat::Batch { batch, logged: None, done: None, shown: None };
            self.pending.push_back(PendingBatch { end: self.state.position(), what });
        }
    }

    /// Keeps the display of the execution whose batch is the last pending one.
    pub(super) fn note_shown(&mut self, execution: ExecutionId, display: Box<Display>) {
        if let Some(PendingBatch { what: PendingWhat::Batch { batch, shown, .. }, .. }) =
            self.pending.back_mut()
            && batch.succeeded_execution() == Some(execution)
        {
            *shown = Some(display);
        }
    }
}

impl Batch {
    /// The same batch, whose events carry the JSON of these records again.
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
