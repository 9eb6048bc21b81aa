//! The journal of one run on its way to the store (S38). Batches [queue](queue) here; a write takes as many as its bounds
//! allow, and one write is [under way](writer) at a time. A write that the store refuses for its content is repeated batch
//! by batch. This part knows records and positions, and nothing of what they mean.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use self::queue::WriteQueue;
use self::writer::Writer;
use super::RunStatus;
use crate::id::{EngineId, RunId};
use crate::store::{EventStore, Position, Record, RunSummary, StoreError, WaitingFor};
use crate::table::{DependencyTable, RecordedTable};

mod queue;
mod writer;

pub(super) use self::writer::ReadBack;

/// One run's journal.
pub(crate) struct Journal {
    queue: WriteQueue,
    writer: Writer,
    /// The table that the run resumes by, if the journal was written by another.
    table: Option<RecordedTable>,
    /// Whether the run resumes from what an earlier process has written.
    resumes: bool,
}

/// The store's answer to a write.
#[derive(Debug)]
pub(super) enum Answer {
    /// The store has it.
    Written,
    /// The store refused the content of several batches. They are written one by one from here on.
    Repeats,
    /// The store refused the content of a single batch of so many records. The caller either rewinds the journal or lets it
    /// fail.
    Refused { records: usize, why: StoreError },
    /// The store is unavailable, or somebody else writes the journal: nothing more is written.
    Failed,
}

impl Journal {
    /// The journal of a run that goes on by this table, behind what it has.
    pub(crate) fn resume(
        store: Arc<dyn EventStore>,
        records: &[Record],
        table: &DependencyTable,
    ) -> Option<Self> {
        let Some(Record::RunStarted { workflow, at, .. }) = records.first() else { return None };
        let run = RunSummary::running(Arc::clone(workflow), *at);
        let (end, now) = (Position::default().after(records.len()), table.recorded());
        let before = records.iter().rev().find_map(Record::table);
        let is_new = before.is_none_or(|before| before.fingerprint() != now.fingerprint());
        let table = is_new.then(|| now.clone());
        Some(Self { table, ..Self::at(store, end, run) })
    }

    /// The journal of a run that begins with this record.
    pub(crate) fn begin(store: Arc<dyn EventStore>, first: Record, run: RunSummary) -> Self {
        let mut journal = Self::at(store, Position(0), run);
        journal.queue([first]);
        journal.queue.join_first();
        journal
    }

    fn at(store: Arc<dyn EventStore>, end: Position, run: RunSummary) -> Self {
        let (queue, writer) = (WriteQueue::behind(end), Writer::behind(store, end, run));
        Self { queue, writer, table: None, resumes: end > Position(0) }
    }

    /// The same journal, whose writes say that this engine writes it.
    pub(super) fn owned_by(mut self, owner: Option<&EngineId>) -> Self {
        self.writer = self.writer.owned_by(owner);
        self
    }

    /// The table that the run resumes by, if the journal was written by another. It is journaled once.
    pub(super) fn take_table(&mut self) -> Option<RecordedTable> {
        self.table.take()
    }

    /// Whether the run resumes from what an earlier process has written.
    pub(super) fn resumes(&self) -> bool {
        self.resumes
    }

    /// How many records are queued.
    pub(super) fn queued_records(&self) -> usize {
        self.queue.records()
    }

    /// Whether the store has everything and has refused nothing.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_written() && self.failure().is_none() && !self.has_ended()
    }

    /// Whether the store has everything.
    pub(super) fn is_written(&self) -> bool {
        self.written() == self.end()
    }

    /// Whether the store has fallen so far behind that nothing more is to be queued.
    pub(super) fn is_full(&self) -> bool {
        self.queue.is_full(self.writer.in_flight().unwrap_or_default())
    }

    /// Where it ends with everything that is queued.
    pub(super) fn end(&self) -> Position {
        self.queue.end()
    }

    /// Where it ends with what the store has.
    pub(super) fn written(&self) -> Position {
        self.writer.written()
    }

    /// Why nothing is written any more.
    pub(super) fn failure(&self) -> Option<&StoreError> {
        self.writer.failure()
    }

    /// Whether the end of the run is queued or written.
    pub(super) fn has_ended(&self) -> bool {
        self.queue.has_ended()
    }

    /// Queues one batch. Nothing follows the end.
    pub(super) fn queue(&mut self, records: impl IntoIterator<Item = Record>) {
        self.queue_as(records, None);
    }

    fn queue_as(&mut self, records: impl IntoIterator<Item = Record>, run: Option<RunSummary>) {
        if self.failure().is_none() {
            self.queue.push(records, run, self.writer.run());
        }
    }

    /// Queues the batch with which the run ends.
    pub(super) fn queue_end(&mut self, records: impl IntoIterator<Item = Record>, status: RunStatus) {
        self.queue_as(records, Some(self.writer.run().clone().ended(status)));
        self.queue.close();
    }

    /// Queues the record that the run waits.
    pub(super) fn queue_wait(&mut self, record: Record, waits_for: WaitingFor) {
        self.queue_as([record], Some(self.writer.run().clone().waiting(waits_for)));
    }

    /// The run goes on: the next batch says so.
    pub(super) fn note_going_on(&mut self) {
        self.queue.note_going_on();
    }

    /// Begins to write what is queued, unless a write is under way.
    pub(super) fn write(&mut self, run: &RunId) {
        if self.writer.is_free()
            && let Some((taken, batch)) = self.queue.next_write(self.writer.run())
        {
            self.writer.write(run, taken, batch);
        }
    }

    /// Lets nothing more be written, unless a write is under way; says whether it is so.
    pub(super) fn fail(&mut self, why: &StoreError) -> bool {
        let fails = self.writer.in_flight().is_none() && self.failure().is_none();
        if fails {
            self.refuse(why.clone());
        }
        fails
    }

    /// Nothing more is written, for this reason.
    pub(super) fn refuse(&mut self, why: StoreError) {
        self.writer.refuse(why);
        self.queue.clear();
    }

    /// Ready once the store has answered a write, if one is under way.
    pub(super) fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let Some((taken, answer)) = ready!(self.writer.poll(cx)) else { return Poll::Ready(None) };
        Poll::Ready(Some(match answer {
            Ok(()) => {
                self.queue.wrote(taken);
                Answer::Written
            }
            Err(StoreError::Unserialisable { .. }) if taken.batches > 1 => {
                self.queue.write_apart(taken.batches);
                Answer::Repeats
            }
            Err(why @ StoreError::Unserialisable { .. }) => Answer::Refused { records: taken.records, why },
            Err(error) => {
                self.refuse(error);
                Answer::Failed
            }
        }))
    }

    /// Begins to read the journal back, because the store refused the batch behind it for this reason. Nothing is written
    /// until it is read.
    pub(super) fn read_back(&mut self, run: &RunId, refused: StoreError) {
        self.writer.read_back(run, refused);
    }

    /// Whether the journal is being read back.
    pub(super) fn is_reading(&self) -> bool {
        self.writer.is_reading()
    }

    /// Ready once the journal is read up to where this run has written it. `read` gets each record as it comes.
    pub(super) fn poll_read_back(
        &mut self,
        run: &RunId,
        cx: &mut Context<'_>,
        read: impl FnMut(Record) -> Record,
    ) -> Poll<Result<ReadBack, StoreError>> {
        self.writer.poll_read_back(run, cx, read)
    }

    /// Removes the records that the store does not have, and returns them.
    pub(super) fn rewind(&mut self) -> Vec<Record> {
        self.queue.rewind(self.written())
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("end", &self.end())
            .field("written", &self.written())
            .field("failure", &self.failure())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
