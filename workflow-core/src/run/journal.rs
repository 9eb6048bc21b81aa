//! The journal of one run on its way to the store (S38). Batches queue here; a write takes as many as its bounds allow,
//! and one write is under way at a time. A write that the store refuses for its content is repeated batch by batch. This
//! part knows records and positions, and nothing of what they mean.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::RunStatus;
use super::in_flight::panic_of;
use crate::id::{EngineId, RunId};
use crate::store::{Batch, EventStore, Position, Record, RunSummary, StoreError, StoreFuture, WaitingFor};
use crate::table::{DependencyTable, RecordedTable};

/// How many batches wait for the store before the run takes no more news.
const MOST_QUEUED: usize = 256;

/// How many records may wait to be written before the run takes no more news.
const MOST_RECORDS: usize = 4 * MOST_QUEUED;

/// The most records of one write, unless a single batch has more.
const WRITE_RECORDS: usize = 1_000;

/// The most bytes of one write, unless a single batch has more.
const WRITE_BYTES: usize = 16 << 20;

/// How many records are read back at a time.
const PAGE: usize = 1_000;

/// The writing side of one run's journal.
pub(crate) struct Journal {
    store: Arc<dyn EventStore>,
    /// The run as the last write left it that the store has.
    run: RunSummary,
    /// The table that the run resumes by, if the journal was written by another.
    table: Option<RecordedTable>,
    /// The records that the store does not have, in order. Those of the write that is under way come first.
    records: VecDeque<Record>,
    /// The batches of `records`, oldest first.
    queued: VecDeque<QueuedBatch>,
    /// Where the journal ends with everything that is queued.
    end: Position,
    /// Where it ends with what the store has.
    written: Position,
    writing: Option<Write>,
    /// How many of the first batches are written one by one: the store has refused a write of them.
    apart: usize,
    /// The journal as far as it was read back, while it is.
    reading: Option<Box<Reading>>,
    /// Why nothing is written any more.
    failure: Option<StoreError>,
    /// Whether the end of the run is queued or written.
    ended: bool,
    /// Whether the run resumes from what an earlier process has written.
    resumes: bool,
    next: NextBatch,
}

/// How the next batch is queued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum NextBatch {
    #[default]
    Plain,
    /// With the record with which the run begins, which alone is queued.
    JoinsFirst,
    /// As the one that says that the run goes on.
    GoesOn,
}

/// Records that enter the journal at once.
struct QueuedBatch {
    records: usize,
    /// About how many bytes they have where the store keeps bytes.
    bytes: usize,
    /// How the run stands with them, if that has changed.
    run: Option<RunSummary>,
}

/// A write that the store has not answered.
struct Write {
    answer: StoreFuture<()>,
    batches: usize,
    records: usize,
    /// The run as the write leaves it.
    run: RunSummary,
}

/// A journal that is being read back.
struct Reading {
    records: Vec<Record>,
    page: StoreFuture<Vec<Record>>,
    /// Why it is read.
    refused: StoreError,
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

/// A journal as the store has it.
pub(super) struct ReadBack {
    pub(super) records: Vec<Record>,
    /// Why the store refused the batch behind these records.
    pub(super) refused: StoreError,
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
        journal.next = NextBatch::JoinsFirst;
        journal
    }

    fn at(store: Arc<dyn EventStore>, end: Position, run: RunSummary) -> Self {
        Self {
            store,
            run,
            table: None,
            records: VecDeque::new(),
            queued: VecDeque::new(),
            end,
            written: end,
            writing: None,
            apart: 0,
            reading: None,
            failure: None,
            ended: false,
            resumes: end > Position(0),
            next: NextBatch::Plain,
        }
    }

    /// The same journal, whose writes say that this engine writes it.
    pub(super) fn owned_by(mut self, owner: Option<&EngineId>) -> Self {
        self.run = self.run.owned_by(owner.cloned());
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
        self.records.len()
    }

    /// Whether the store has everything and has refused nothing.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_written() && self.failure.is_none() && !self.ended
    }

    /// Whether the store has everything.
    pub(super) fn is_written(&self) -> bool {
        self.written == self.end
    }

    /// Whether the store has fallen so far behind that nothing more is to be queued.
    pub(super) fn is_full(&self) -> bool {
        let (batches, records) = self.writing.as_ref().map_or((0, 0), |it| (it.batches, it.records));
        self.queued.len() - batches >= MOST_QUEUED || self.records.len() - records >= MOST_RECORDS
    }

    /// Where it ends with everything that is queued.
    pub(super) fn end(&self) -> Position {
        self.end
    }

    /// Where it ends with what the store has.
    pub(super) fn written(&self) -> Position {
        self.written
    }

    /// Why nothing is written any more.
    pub(super) fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// Whether the end of the run is queued or written.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Queues one batch. Nothing follows the end.
    pub(super) fn queue(&mut self, records: impl IntoIterator<Item = Record>) {
        self.queue_as(records, None);
    }

    fn queue_as(&mut self, records: impl IntoIterator<Item = Record>, run: Option<RunSummary>) {
        if self.ended || self.failure.is_some() {
            return;
        }
        let before = self.records.len();
        let mut bytes = 0;
        self.records.extend(records.into_iter().inspect(|record| bytes += record.stored_bytes()));
        let records = self.records.len() - before;
        self.end = self.end.after(records);
        let next = std::mem::take(&mut self.next);
        let run = run.or_else(|| (next == NextBatch::GoesOn).then(|| self.run.clone().going_on()));
        let batch = QueuedBatch { records, bytes, run };
        // A journal without a start event could not be resumed.
        match self.queued.back_mut().filter(|_| next == NextBatch::JoinsFirst) {
            Some(first) => *first = first.with(batch),
            None => self.queued.push_back(batch),
        }
    }

    /// Queues the batch with which the run ends.
    pub(super) fn queue_end(&mut self, records: impl IntoIterator<Item = Record>, status: RunStatus) {
        self.queue_as(records, Some(self.run.clone().ended(status)));
        self.ended = true;
    }

    /// Queues the record that the run waits.
    pub(super) fn queue_wait(&mut self, record: Record, waits_for: WaitingFor) {
        self.queue_as([record], Some(self.run.clone().waiting(waits_for)));
    }

    /// The run goes on: the next batch says so.
    pub(super) fn note_going_on(&mut self) {
        self.next = NextBatch::GoesOn;
    }

    /// Begins to write what is queued, unless a write is under way.
    pub(super) fn write(&mut self, run: &RunId) {
        if self.writing.is_some()
            || self.failure.is_some()
            || self.reading.is_some()
            || self.queued.is_empty()
        {
            return;
        }
        let (batches, records) = self.next_write();
        let taken = self.queued.iter().take(batches);
        let summary = taken.rev().find_map(|batch| batch.run.as_ref()).unwrap_or(&self.run).clone();
        let batch =
            Batch { records: self.records.iter().take(records).cloned().collect(), run: summary.clone() };
        let answer = caught(|| self.store.append(run, self.written, batch));
        let answer = answer.unwrap_or_else(|error| StoreFuture::ready(Err(error)));
        self.writing = Some(Write { answer, batches, records, run: summary });
    }

    /// Of how many batches the next write is, and of how many records.
    fn next_write(&self) -> (usize, usize) {
        let most = if self.apart > 0 { 1 } else { usize::MAX };
        let (mut batches, mut records, mut bytes) = (0, 0, 0_usize);
        for batch in self.queued.iter().take(most) {
            let fits =
                records + batch.records <= WRITE_RECORDS && bytes.saturating_add(batch.bytes) <= WRITE_BYTES;
            if batches > 0 && !fits {
                break;
            }
            batches += 1;
            records += batch.records;
            bytes = bytes.saturating_add(batch.bytes);
        }
        (batches, records)
    }

    /// Lets nothing more be written, unless a write is under way; says whether it is so.
    pub(super) fn fail(&mut self, why: &StoreError) -> bool {
        if self.writing.is_none() && self.failure.is_none() {
            self.refuse(why.clone());
            return true;
        }
        false
    }

    /// Nothing more is written, for this reason.
    pub(super) fn refuse(&mut self, why: StoreError) {
        self.failure = Some(why);
        self.reading = None;
        self.records.clear();
        self.queued.clear();
    }

    /// Ready once the store has answered a write, if one is under way.
    pub(super) fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let Some(Write { answer, .. }) = &mut self.writing else { return Poll::Ready(None) };
        let polled = caught(|| Pin::new(answer).poll(cx));
        let answer = ready!(polled.unwrap_or_else(|error| Poll::Ready(Err(error))));
        let Some(Write { batches, records, run, .. }) = self.writing.take() else { return Poll::Ready(None) };
        Poll::Ready(Some(match answer {
            Ok(()) => {
                self.queued.drain(..batches);
                self.records.drain(..records);
                self.apart = self.apart.saturating_sub(batches);
                self.written = self.written.after(records);
                self.run = run;
                Answer::Written
            }
            Err(StoreError::Unserialisable { .. }) if batches > 1 => {
                self.apart = batches;
                Answer::Repeats
            }
            Err(why @ StoreError::Unserialisable { .. }) => Answer::Refused { records, why },
            Err(error) => {
                self.refuse(error);
                Answer::Failed
            }
        }))
    }

    /// Begins to read the journal back, because the store refused the batch behind it for this reason. Nothing is written
    /// until it is read.
    pub(super) fn read_back(&mut self, run: &RunId, refused: StoreError) {
        let page = self.page(run, Position(0));
        self.reading = Some(Box::new(Reading { records: Vec::new(), page, refused }));
    }

    /// Whether the journal is being read back.
    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    fn page(&self, run: &RunId, from: Position) -> StoreFuture<Vec<Record>> {
        let page = caught(|| self.store.read(run, from, PAGE));
        page.unwrap_or_else(|error| StoreFuture::ready(Err(error)))
    }

    /// Ready once the journal is read up to where this run has written it. `read` gets each record as it comes.
    pub(super) fn poll_read_back(
        &mut self,
        run: &RunId,
        cx: &mut Context<'_>,
        mut read: impl FnMut(Record) -> Record,
    ) -> Poll<Result<ReadBack, StoreError>> {
        let has = usize::try_from(self.written.0).unwrap_or(usize::MAX);
        loop {
            let Some(reading) = &mut self.reading else { return Poll::Pending };
            let polled = caught(|| Pin::new(&mut reading.page).poll(cx));
            let page = ready!(polled.unwrap_or_else(|error| Poll::Ready(Err(error))))?;
            let is_over = page.is_empty();
            reading.records.extend(page.into_iter().map(&mut read));
            let found = Position::default().after(reading.records.len());
            if reading.records.len() < has && !is_over {
                let page = self.page(run, found);
                if let Some(reading) = &mut self.reading {
                    reading.page = page;
                }
                continue;
            }
            let Some(reading) = self.reading.take() else { return Poll::Pending };
            let Reading { mut records, refused, .. } = *reading;
            // Somebody has removed the run.
            if records.len() < has {
                return Poll::Ready(Err(StoreError::Conflict { expected: self.written, found }));
            }
            records.truncate(has);
            return Poll::Ready(Ok(ReadBack { records, refused }));
        }
    }

    /// Removes the records that the store does not have, and returns them.
    pub(super) fn rewind(&mut self) -> Vec<Record> {
        self.queued.clear();
        (self.end, self.ended, self.next) = (self.written, false, NextBatch::Plain);
        self.records.drain(..).collect()
    }
}

impl QueuedBatch {
    /// Both as one.
    fn with(&self, later: Self) -> Self {
        let run = later.run.or_else(|| self.run.clone());
        Self { records: self.records + later.records, bytes: self.bytes.saturating_add(later.bytes), run }
    }
}

/// Calls the store. What it panics with is an error like any other: the run has to end all the same.
fn caught<T>(call: impl FnOnce() -> T) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| StoreError::unavailable(panic_of(panic)))
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("end", &self.end)
            .field("written", &self.written)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
