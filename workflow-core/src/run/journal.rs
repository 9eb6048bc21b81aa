//! The journal of one run on its way to the store (S38). Batches queue here; a write takes as many as its bounds allow,
//! and one write is under way at a time. This part knows records and positions, and nothing of what they mean.

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

/// The writing side of one run's journal.
pub(crate) struct Journal {
    store: Arc<dyn EventStore>,
    run: RunSummary,
    /// The table that the run resumes by, if the journal was written by another.
    table: Option<RecordedTable>,
    /// What the store has not been given, in order.
    records: VecDeque<Record>,
    /// The batches of `records`, oldest first.
    queued: VecDeque<QueuedBatch>,
    /// Where the journal ends with everything that is queued.
    end: Position,
    /// Where it ends with what the store was given.
    given: Position,
    /// Where it ends with what the store has.
    written: Position,
    writing: Option<StoreFuture<()>>,
    /// Why nothing is written any more.
    failure: Option<StoreError>,
    /// Whether the end of the run is queued or written.
    ended: bool,
    /// Whether the run resumes from what an earlier process has written.
    resumes: bool,
}

/// Records that enter the journal at once.
struct QueuedBatch {
    records: usize,
    /// How the run stands with them, if that has changed.
    run: Option<RunSummary>,
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
            given: end,
            written: end,
            writing: None,
            failure: None,
            ended: false,
            resumes: end > Position(0),
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
        self.queued.len() >= MOST_QUEUED || self.records.len() >= MOST_RECORDS
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
        self.records.extend(records);
        let records = self.records.len() - before;
        self.end = self.end.after(records);
        self.queued.push_back(QueuedBatch { records, run });
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
        self.run = self.run.clone().going_on();
    }

    /// Begins to write what is queued, unless a write is under way.
    pub(super) fn write(&mut self, run: &RunId) {
        if self.writing.is_some() || self.failure.is_some() || self.queued.is_empty() {
            return;
        }
        let records = self.take_write();
        let (expected, end) = (self.given, self.given.after(records.len()));
        let batch = Batch { records, run: self.run.clone() };
        let answer = caught(|| self.store.append(run, expected, batch));
        self.writing = Some(answer.unwrap_or_else(|error| StoreFuture::ready(Err(error))));
        self.given = end;
    }

    /// The records of the next write: of as many batches as it may have.
    fn take_write(&mut self) -> Vec<Record> {
        let mut count = 0;
        while let Some(batch) = self.queued.front() {
            if count > 0 && count + batch.records > WRITE_RECORDS {
                break;
            }
            let batch = self.queued.pop_front();
            count += batch.as_ref().map_or(0, |batch| batch.records);
            if let Some(run) = batch.and_then(|batch| batch.run) {
                self.run = run;
            }
        }
        self.records.drain(..count).collect()
    }

    /// Lets nothing more be written, unless a write is under way; says whether it is so.
    pub(super) fn fail(&mut self, why: &StoreError) -> bool {
        if self.writing.is_none() && self.failure.is_none() {
            self.refuse(why.clone());
            return true;
        }
        false
    }

    fn refuse(&mut self, why: StoreError) {
        self.failure = Some(why);
        self.records.clear();
        self.queued.clear();
    }

    /// Ready once the store has answered a write, if one is under way: whether it took it.
    pub(super) fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Option<bool>> {
        let Some(writing) = &mut self.writing else { return Poll::Ready(None) };
        let polled = caught(|| Pin::new(writing).poll(cx));
        let answer = ready!(polled.unwrap_or_else(|error| Poll::Ready(Err(error))));
        self.writing = None;
        let is_written = answer.is_ok();
        match answer {
            Ok(()) => self.written = self.given,
            Err(error) => self.refuse(error),
        }
        Poll::Ready(Some(is_written))
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
