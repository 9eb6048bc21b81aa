//! The journal of one run on its way to the store (S38).
//!
//! Batches [queue] here as records. One write, which is one call of `append`, is under way at a time
//! and takes as many batches as its bounds allow. This module knows records and positions, and nothing of
//! their meaning.
//!
//! ```text
//! position  0 ───────────── written ─────────── ─ ─ ─ ── end
//!           the store has      │ under way │ queued       │
//!
//! append(expected = written)
//!   Ok                              written moves on                 Written
//!   refused content, many batches   written one by one from here on  Repeats
//!   refused content, one batch      the caller rewinds or gives up   Refused
//!   any other error                 nothing more is written          Failed
//! ```
//!
//! # Invariants
//! - A batch is never split over two writes, and nothing is queued behind the end of the run.
//! - `written` changes only by an answer of the store. A position that another process has taken is a
//!   conflict: fencing.
//! - After a failure nothing is queued, written or read.
//!
//! A rewind reads the journal back from position 0 to `written`, page by page, and removes the queue.
//!
//! # Example
//! A run starts. `begin` queues `RunStarted`, and the first batch joins it: records 0 and 1. `write` calls
//! `append` at 0. Meanwhile two batches are queued, up to 5. The answer sets `written` to 2, and the next write
//! takes both batches.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use serde_json::Value;

use self::queue::{WriteExtent, WriteQueue};
use super::in_flight::panic_of;
use super::queued::is_queued;
use crate::id::{EngineId, RunId, RunStatus};
use crate::report::Quality;
use crate::store::{EventStore, Position, Record, RunSummary, StoreError, StoreFuture, WaitingFor};
use crate::table::{DependencyTable, RecordedTable};

mod queue;

/// The most records that one page has when the journal is read back.
const PAGE: usize = 1_000;

/// The writing side of one run's journal.
pub(crate) struct Journal {
    /// Called in `write`, `read_back` and `poll_read_back` only.
    store: Arc<dyn EventStore>,
    /// The records that the store does not have, with those of the write under way.
    queue: WriteQueue,
    /// The run's summary in the last write that the store has.
    run: RunSummary,
    /// The end of the journal in the store.
    written: Position,
    /// The write under way. Its records stay in `queue` until the store has them, so that they can be repeated.
    writing: Option<Write>,
    /// The journal as far as it is read back; `None` unless a rewind reads it.
    reading: Option<Box<Reading>>,
    /// The error after which nothing is written. Set once, for good.
    failure: Option<StoreError>,
    /// The table to journal with `RunResumed`, if it differs from the table of the last process. Taken once.
    table: Option<RecordedTable>,
    /// The layers of configuration to journal with `RunResumed`, of a queued run. Taken once. Boxed, since few runs have some.
    #[expect(clippy::box_collection, reason = "every run has the room of this field")]
    layers: Option<Box<BTreeMap<String, Value>>>,
    /// Whose records the journal had when this process began with it.
    found: Found,
}

/// The records that a journal had when this process began with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// None: the run begins here.
    Nothing,
    /// Those of a queued run, which no process has driven.
    Queued,
    /// Those of a process that drove the run.
    Driven,
}

/// A write that the store has not answered.
struct Write {
    /// The call of the store.
    answer: StoreFuture<()>,
    /// The part of the queue that the write takes.
    taken: WriteExtent,
    /// The run's summary once the store has the write.
    run: RunSummary,
}

/// How a run ends, for its summary.
pub(super) struct RunEnd {
    pub(super) status: RunStatus,
    pub(super) at: SystemTime,
    pub(super) quality: Quality,
    /// How many records of the batch are before that of the stop event, if the batch has it.
    pub(super) stop: Option<usize>,
    /// The unfinished clean-up steps.
    pub(super) incomplete: Vec<Arc<str>>,
}

/// A journal that is being read back.
struct Reading {
    /// The records of the pages so far, in order.
    records: Vec<Record>,
    /// The next page.
    page: StoreFuture<Vec<Record>>,
    /// The store's error for which the journal is read back.
    refused: StoreError,
}

/// A journal as the store has it, up to the end of the last write.
pub(super) struct ReadBack {
    /// All records up to `written`.
    pub(super) records: Vec<Record>,
    /// The store's error for the batch behind these records.
    pub(super) refused: StoreError,
}

/// The store's answer to a write.
#[derive(Debug)]
pub(super) enum Answer {
    /// The store has the write.
    Written,
    /// The store refused the content of several batches. They are written one by one from here on.
    Repeats,
    /// The store refused the content of a single batch of so many records. The caller rewinds the journal or
    /// lets it fail.
    Refused { records: usize, why: StoreError },
    /// The store is unavailable, or another process writes the journal. Nothing more is written.
    Failed,
}

impl Journal {
    /// The journal of a run that resumes with this table behind these records. `None` if they do not begin
    /// with `RunStarted`.
    pub(crate) fn resume(
        store: Arc<dyn EventStore>,
        records: &[Record],
        table: &DependencyTable,
    ) -> Option<Self> {
        let run = super::deadline::begun_by(records)?;
        let is_of_end = |record: &&Record| {
            matches!(
                record,
                Record::CleanUpStarted { .. } | Record::CleanUpRedriven { .. } | Record::RunEnded { .. }
            )
        };
        let last = records.iter().rev().find(is_of_end);
        let run = match last {
            Some(Record::CleanUpStarted { .. }) => run.cleaning_up(),
            // Listings find the run until its clean-up is over, also if no program can resume it.
            Some(Record::CleanUpRedriven { steps, .. }) => {
                RunSummary { incomplete_clean_up: Arc::new(steps.clone()), ..run.cleaning_up() }
            }
            _ => run,
        };
        // The last table in the journal is the one of the last process, which may differ from that of the
        // first.
        let (end, now) = (Position::default().after(records.len()), table.recorded());
        let before = records.iter().rev().find_map(Record::table);
        let is_new = before.is_none_or(|before| before.fingerprint() != now.fingerprint());
        let table = is_new.then(|| now.clone());
        let found = if is_queued(records) { Found::Queued } else { Found::Driven };
        Some(Self { table, found, ..Self::at(store, end, run) })
    }

    /// The journal of a new run, whose first batch begins with this record.
    pub(crate) fn begin(store: Arc<dyn EventStore>, first: Record, run: RunSummary) -> Self {
        let mut journal = Self::at(store, Position(0), run);
        journal.queue([first]);
        journal.queue.join_first();
        journal
    }

    /// A journal that ends there in the store, with an empty queue.
    fn at(store: Arc<dyn EventStore>, end: Position, run: RunSummary) -> Self {
        Self {
            store,
            queue: WriteQueue::behind(end),
            run,
            written: end,
            writing: None,
            reading: None,
            failure: None,
            table: None,
            layers: None,
            found: Found::Nothing,
        }
    }

    /// The same journal, whose writes name this engine as the run's owner.
    pub(super) fn owned_by(mut self, owner: Option<&EngineId>) -> Self {
        self.run = self.run.owned_by(owner.cloned());
        self
    }

    /// The table to journal with `RunResumed`, if it has changed. Returns it once.
    pub(super) fn take_table(&mut self) -> Option<RecordedTable> {
        self.table.take()
    }

    /// The same journal, whose `RunResumed` has these layers of configuration.
    pub(crate) fn with_layers(self, layers: BTreeMap<String, Value>) -> Self {
        Self { layers: (!layers.is_empty()).then(|| Box::new(layers)), ..self }
    }

    /// The layers of configuration to journal with `RunResumed`. Returns them once.
    pub(super) fn take_layers(&mut self) -> BTreeMap<String, Value> {
        self.layers.take().map(|layers| *layers).unwrap_or_default()
    }

    /// Whether the journal had records when this process began with it.
    pub(super) fn resumes(&self) -> bool {
        self.found != Found::Nothing
    }

    /// Whether no process had driven the run when this process began with its journal.
    pub(super) fn is_queued(&self) -> bool {
        self.found == Found::Queued
    }

    /// How many records the store does not have.
    pub(super) fn queued_records(&self) -> usize {
        self.queue.records()
    }

    /// Whether the store has everything, the journal works, and the run has not ended.
    pub(super) fn is_open_and_written(&self) -> bool {
        self.is_written() && self.failure().is_none() && !self.has_ended()
    }

    /// Whether the store has everything.
    pub(super) fn is_written(&self) -> bool {
        self.written() == self.end()
    }

    /// Whether the store is so far behind that the run must take in nothing more.
    pub(super) fn is_full(&self) -> bool {
        self.queue.is_full(self.writing.as_ref().map(|write| write.taken).unwrap_or_default())
    }

    /// The end of the journal with everything queued.
    pub(super) fn end(&self) -> Position {
        self.queue.end()
    }

    /// The end of the journal in the store.
    pub(super) fn written(&self) -> Position {
        self.written
    }

    /// The error after which nothing is written.
    pub(super) fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// Whether the end of the run is queued or written.
    pub(super) fn has_ended(&self) -> bool {
        self.queue.has_ended()
    }

    /// Queues one batch. Does nothing behind the end of the run or after a failure.
    pub(super) fn queue(&mut self, records: impl IntoIterator<Item = Record>) {
        self.queue_as(records, None);
    }

    /// Queues one batch with the run's new summary, if the batch changes it.
    fn queue_as(&mut self, records: impl IntoIterator<Item = Record>, run: Option<RunSummary>) {
        if self.failure.is_none() {
            self.queue.push(records, run, &self.run);
        }
    }

    /// Queues the batch with which the run ends, with the summary of that end.
    pub(super) fn queue_end(&mut self, records: impl IntoIterator<Item = Record>, end: RunEnd) {
        let RunEnd { status, at, quality, stop, incomplete } = end;
        let mut run = self.run.clone().ended(status);
        if !incomplete.is_empty() || !run.incomplete_clean_up.is_empty() {
            run.incomplete_clean_up = Arc::new(incomplete);
        }
        let stop = stop.map(|before| self.end().after(before)).or(run.stop);
        self.queue_as(records, Some(RunSummary { ended: Some(at), quality: Some(quality), stop, ..run }));
        self.queue.close();
    }

    /// Notes the position of the stop event, where a journal ends behind it and lacks the end of its run.
    pub(super) fn note_stop(&mut self, stop: Position) {
        self.run.stop = Some(stop);
    }

    /// Queues the batch with which the run's clean-up begins.
    pub(super) fn queue_clean_up(&mut self, records: impl IntoIterator<Item = Record>) {
        self.queue_as(records, Some(self.run.clone().cleaning_up()));
    }

    /// Queues the record that the run waits, with a summary for listings.
    pub(super) fn queue_wait(&mut self, record: Record, waits_for: WaitingFor, table: &RecordedTable) {
        let run = self.waiting(waits_for, table);
        self.queue_as([record], Some(run));
    }

    /// Queues the record that nothing runs in the paused run, with a summary for listings.
    pub(super) fn queue_rest(&mut self, record: Record) {
        self.queue_as([record], Some(self.run.clone().paused()));
    }

    /// Lets writes that change nothing list the run as one that waits for this.
    pub(super) fn list_waiting(&mut self, waits_for: WaitingFor, table: &RecordedTable) {
        self.run = self.waiting(waits_for, table);
    }

    /// Lets writes that change nothing list the run as a paused one.
    pub(super) fn list_paused(&mut self) {
        self.run = self.run.clone().paused();
    }

    /// The summary of the run, waiting. By the fingerprint of its table, the next process knows that it can take the run up.
    fn waiting(&self, waits_for: WaitingFor, table: &RecordedTable) -> RunSummary {
        let run = self.run.clone().waiting(waits_for);
        RunSummary { table: Some(table.shared_fingerprint()), ..run }
    }

    /// Lets the next batch carry a summary that says that the run runs again.
    pub(super) fn note_running_again(&mut self) {
        self.queue.note_running_again();
    }

    /// Starts a write of the queue, unless a write or a read is under way.
    pub(super) fn write(&mut self, run: &RunId) {
        if self.writing.is_some() || self.failure.is_some() || self.reading.is_some() {
            return;
        }
        let Some((taken, batch)) = self.queue.next_write(&self.run) else { return };
        let summary = batch.run.clone();
        // The expected position fences: the store refuses the write if another process has written since
        // (S40).
        let answer = caught(|| self.store.append(run, self.written, batch));
        let answer = answer.unwrap_or_else(|error| StoreFuture::ready(Err(error)));
        self.writing = Some(Write { answer, taken, run: summary });
    }

    /// Fails the journal, unless a write is under way or it has failed before. Returns whether it did.
    pub(super) fn fail_if_idle(&mut self, why: &StoreError) -> bool {
        let fails = self.writing.is_none() && self.failure.is_none();
        if fails {
            self.set_failure(why.clone());
        }
        fails
    }

    /// Fails the journal: removes the queue, and writes and reads nothing more.
    pub(super) fn set_failure(&mut self, why: StoreError) {
        self.failure = Some(why);
        self.reading = None;
        self.queue.clear();
    }

    /// Ready with the store's answer to the write under way; with `None` if there is no write.
    pub(super) fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let Some(Write { answer, .. }) = &mut self.writing else { return Poll::Ready(None) };
        let polled = caught(|| Pin::new(answer).poll(cx));
        // A panic counts as an outage, after which nothing is written.
        let answer = ready!(polled.unwrap_or_else(|error| Poll::Ready(Err(error))));
        let Some(Write { taken, run, .. }) = self.writing.take() else { return Poll::Ready(None) };
        Poll::Ready(Some(match answer {
            Ok(()) => {
                self.queue.wrote(taken);
                (self.written, self.run) = (self.written.after(taken.records), run);
                if matches!(self.run.status, RunStatus::Waiting | RunStatus::Paused) {
                    self.queue.free();
                }
                Answer::Written
            }
            // Which batch is at fault is unknown. A store takes a write whole or not at all, so all of them
            // can be repeated.
            Err(StoreError::Unserialisable { .. }) if taken.batches > 1 => {
                self.queue.write_singly(taken.batches);
                Answer::Repeats
            }
            Err(why @ StoreError::Unserialisable { .. }) => Answer::Refused { records: taken.records, why },
            Err(error) => {
                self.set_failure(error);
                Answer::Failed
            }
        }))
    }

    /// Starts to read the journal back, after the store refused the batch behind it with this error. Nothing
    /// is written until the journal is read.
    pub(super) fn read_back(&mut self, run: &RunId, refused: StoreError) {
        let page = self.page(run, Position(0));
        self.reading = Some(Box::new(Reading { records: Vec::new(), page, refused }));
    }

    /// Whether the journal is being read back.
    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Asks the store for a page of the journal.
    fn page(&self, run: &RunId, from: Position) -> StoreFuture<Vec<Record>> {
        let page = caught(|| self.store.read(run, from, PAGE));
        page.unwrap_or_else(|error| StoreFuture::ready(Err(error)))
    }

    /// Ready once the journal is read up to `written`. `read` maps each record. The caller has asked
    /// [`is_reading`](Self::is_reading); without a read the future would never be ready.
    ///
    /// # Errors
    /// The store's error, or a conflict if the journal is shorter than what this run has written.
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
            // Another process has removed the run.
            if records.len() < has {
                return Poll::Ready(Err(StoreError::Conflict { expected: self.written, found }));
            }
            // The store has more if another process wrote meanwhile. The next write gets the conflict.
            records.truncate(has);
            return Poll::Ready(Ok(ReadBack { records, refused }));
        }
    }

    /// Removes and returns the records that the store does not have. The journal then ends at `written`.
    pub(super) fn rewind(&mut self) -> Vec<Record> {
        self.queue.rewind(self.written)
    }
}

/// Calls the store. A panic in it is an error like any other, so that the run can still end.
fn caught<T>(call: impl FnOnce() -> T) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| StoreError::unavailable(panic_of(panic)))
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
