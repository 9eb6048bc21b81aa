//! The writing side of a run's journal: one write at a time, what the store has by it, and reading that back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::super::in_flight::panic_of;
use super::queue::Taken;
use crate::id::{EngineId, RunId};
use crate::store::{Batch, EventStore, Position, Record, RunSummary, StoreError, StoreFuture};

/// How many records are read back at a time.
const PAGE: usize = 1_000;

/// What writes the journal of one run.
pub(super) struct Writer {
    store: Arc<dyn EventStore>,
    /// The run as the last write left it that the store has.
    run: RunSummary,
    /// Where the journal ends with what the store has.
    written: Position,
    writing: Option<Write>,
    /// The journal as far as it was read back, while it is.
    reading: Option<Box<Reading>>,
    /// Why nothing is written any more.
    failure: Option<StoreError>,
}

/// A write that the store has not answered.
struct Write {
    answer: StoreFuture<()>,
    taken: Taken,
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

/// A journal as the store has it.
pub(in crate::run) struct ReadBack {
    pub(in crate::run) records: Vec<Record>,
    /// Why the store refused the batch behind these records.
    pub(in crate::run) refused: StoreError,
}

impl Writer {
    /// Of a journal that ends there in the store.
    pub(super) fn behind(store: Arc<dyn EventStore>, written: Position, run: RunSummary) -> Self {
        Self { store, run, written, writing: None, reading: None, failure: None }
    }

    /// The run as the last write left it that the store has.
    pub(super) fn run(&self) -> &RunSummary {
        &self.run
    }

    /// The same, whose writes say that this engine writes the journal.
    pub(super) fn owned_by(mut self, owner: Option<&EngineId>) -> Self {
        self.run = self.run.owned_by(owner.cloned());
        self
    }

    /// Where the journal ends with what the store has.
    pub(super) fn written(&self) -> Position {
        self.written
    }

    /// Why nothing is written any more.
    pub(super) fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// What the write has taken that is under way.
    pub(super) fn in_flight(&self) -> Option<Taken> {
        self.writing.as_ref().map(|write| write.taken)
    }

    /// Whether a write may begin.
    pub(super) fn is_free(&self) -> bool {
        self.writing.is_none() && self.failure.is_none() && self.reading.is_none()
    }

    /// Begins a write, as nothing keeps it from beginning.
    pub(super) fn write(&mut self, run: &RunId, taken: Taken, batch: Batch) {
        let summary = batch.run.clone();
        let answer = caught(|| self.store.append(run, self.written, batch));
        let answer = answer.unwrap_or_else(|error| StoreFuture::ready(Err(error)));
        self.writing = Some(Write { answer, taken, run: summary });
    }

    /// Ready once the store has answered the write that is under way, if one is: what that took.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Taken, Result<(), StoreError>)>> {
        let Some(Write { answer, .. }) = &mut self.writing else { return Poll::Ready(None) };
        let polled = caught(|| Pin::new(answer).poll(cx));
        let answer = ready!(polled.unwrap_or_else(|error| Poll::Ready(Err(error))));
        let Some(Write { taken, run, .. }) = self.writing.take() else { return Poll::Ready(None) };
        if answer.is_ok() {
            self.written = self.written.after(taken.records);
            self.run = run;
        }
        Poll::Ready(Some((taken, answer)))
    }

    /// Nothing more is written, for this reason.
    pub(super) fn refuse(&mut self, why: StoreError) {
        self.failure = Some(why);
        self.reading = None;
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
}

/// Calls the store. What it panics with is an error like any other: the run has to end all the same.
fn caught<T>(call: impl FnOnce() -> T) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| StoreError::unavailable(panic_of(panic)))
}

#[cfg(test)]
mod tests {
    use std::task::Waker;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::store::{MemoryStore, Retention, RunQuery, StoredRun};

    const AT: SystemTime = SystemTime::UNIX_EPOCH;

    /// Panics in every call.
    struct Panics;

    impl EventStore for Panics {
        fn append(&self, _: &RunId, _: Position, _: Batch) -> StoreFuture<()> {
            panic!("out of ink")
        }

        fn read(&self, _: &RunId, _: Position, _: usize) -> StoreFuture<Vec<Record>> {
            StoreFuture::new(async { panic!("out of paper") })
        }

        fn runs(&self, _: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
            panic!("out of ink")
        }

        fn remove(&self, _: &RunId) -> StoreFuture<bool> {
            panic!("out of ink")
        }

        fn retain(&self, _: &Retention) -> StoreFuture<u64> {
            panic!("out of ink")
        }

        fn lease(&self, _: &EngineId, _: Duration) -> StoreFuture<Vec<EngineId>> {
            panic!("out of ink")
        }
    }

    fn writer(store: impl EventStore) -> Writer {
        Writer::behind(Arc::new(store), Position(0), RunSummary::running("W", AT))
    }

    fn run() -> RunId {
        "r".into()
    }

    fn write(writer: &mut Writer, records: usize) {
        assert!(writer.is_free());
        let run_after = writer.run().clone().ended(crate::run::RunStatus::Failed);
        let batch = Batch { records: vec![Record::RunKept { at: AT }; records], run: run_after };
        writer.write(&run(), Taken { batches: 1, records }, batch);
    }

    fn answer(writer: &mut Writer) -> Option<(Taken, Result<(), StoreError>)> {
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(answer) = writer.poll(&mut cx) else { panic!("the store answers at once") };
        answer
    }

    #[test]
    fn it_writes_one_batch_of_records_at_a_time_behind_those_that_the_store_has() {
        let mut writer = writer(MemoryStore::default());
        assert_eq!(answer(&mut writer), None);
        for written in [2, 4] {
            write(&mut writer, 2);
            let taken = Taken { batches: 1, records: 2 };
            assert!(!writer.is_free() && writer.in_flight() == Some(taken));
            assert_eq!(answer(&mut writer), Some((taken, Ok(()))));
            assert_eq!((writer.written(), writer.in_flight()), (Position(written), None));
            assert_eq!(writer.run().status, crate::run::RunStatus::Failed, "as the write left it");
        }
    }

    #[test]
    fn a_store_that_panics_answers_with_an_error() {
        let mut writer = writer(Panics);
        write(&mut writer, 1);
        let Some((_, Err(error))) = answer(&mut writer) else { panic!("it failed") };
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
        assert_eq!((writer.written(), writer.run().status), (Position(0), crate::run::RunStatus::Running));

        writer.read_back(&run(), error);
        assert!(writer.is_reading() && !writer.is_free());
        let mut cx = Context::from_waker(Waker::noop());
        let polled = writer.poll_read_back(&run(), &mut cx, |record| record);
        assert!(matches!(polled, Poll::Ready(Err(StoreError::Unavailable { .. }))));
    }

    #[test]
    fn a_writer_that_is_refused_writes_and_reads_nothing_more() {
        let mut writer = writer(MemoryStore::default());
        writer.read_back(&run(), StoreError::ShutDown);
        writer.refuse(StoreError::ShutDown);
        assert!(!writer.is_free() && !writer.is_reading());
        assert_eq!(writer.failure(), Some(&StoreError::ShutDown));
    }

    #[test]
    fn a_journal_is_read_back_up_to_where_it_was_written() {
        let mut writer = writer(MemoryStore::default());
        write(&mut writer, PAGE + 1);
        assert!(matches!(answer(&mut writer), Some((_, Ok(())))));
        writer.read_back(&run(), StoreError::ShutDown);
        let (mut cx, mut read) = (Context::from_waker(Waker::noop()), 0);
        let polled = writer.poll_read_back(&run(), &mut cx, |record| {
            read += 1;
            record
        });
        let Poll::Ready(Ok(ReadBack { records, refused })) = polled else { panic!("it is there") };
        assert_eq!((records.len(), read, refused), (PAGE + 1, PAGE + 1, StoreError::ShutDown));
        assert!(writer.is_free());
    }
}
