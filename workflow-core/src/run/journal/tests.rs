use std::sync::Mutex;
use std::task::Waker;
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;

use super::*;
use crate::engine::fixtures::greeter;
use crate::event::{AnyEvent, EventCheck};
use crate::id::{ScopeId, Seq};
use crate::prelude::*;
use crate::scheduler::Cause;
use crate::store::{MemoryStore, RecordedEvent, Retention, RunQuery, StoreFuture, StoredRun, Write};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(crate = crate)]
struct Text(String);

/// Refuses writes with a text that begins with `bad`, and notes every write.
#[derive(Default)]
struct Picky {
    kept: MemoryStore,
    /// The expected position, the number of records, and whether the store took the write.
    writes: Mutex<Vec<(u64, usize, bool)>>,
    /// The error for every write, if set.
    answers: Mutex<Option<StoreError>>,
}

impl Picky {
    fn judge(&self, batch: &Write) -> Result<(), StoreError> {
        if let Some(answer) = self.answers.lock().unwrap().clone() {
            return Err(answer);
        }
        let bad = batch.records.iter().filter_map(text).any(|text| text.starts_with("bad"));
        if bad { Err(StoreError::unserialisable(std::fmt::Error)) } else { Ok(()) }
    }

    fn take_writes(&self) -> Vec<(u64, usize, bool)> {
        std::mem::take(&mut self.writes.lock().unwrap())
    }
}

fn text(record: &Record) -> Option<String> {
    let Record::EventLogged { event, .. } = record else { return None };
    event.value()?.downcast_ref().map(|Text(text)| text.clone())
}

impl EventStore for Picky {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        let judged = self.judge(&batch);
        self.writes.lock().unwrap().push((expected.0, batch.records.len(), judged.is_ok()));
        match judged {
            Ok(()) => self.kept.append(run, expected, batch),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.kept.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.kept.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.kept.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.kept.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.kept.lease(engine, duration)
    }
}

const AT: SystemTime = SystemTime::UNIX_EPOCH;

fn record(text: &str) -> Record {
    let mut event = AnyEvent::new(Text(text.to_owned()));
    EventCheck { most_bytes: None, serialises: true }.check(&mut event, 1).unwrap();
    let (event, cause) = (RecordedEvent::new(event), Cause::Outside);
    Record::EventLogged { seq: Seq(1), scope: ScopeId::ROOT, cause, event, origin: None, at: AT }
}

/// A batch of this many records.
fn batch(records: usize) -> Vec<Record> {
    vec![Record::RunKept { at: AT }; records]
}

/// A journal whose run has begun.
fn journal(store: &Arc<Picky>) -> Journal {
    let store: Arc<dyn EventStore> = Arc::clone(store) as _;
    let mut journal = Journal::begin(store, Record::RunKept { at: AT }, RunSummary::running("W", AT));
    journal.queue(batch(1));
    assert!(matches!(write(&mut journal), Some(Answer::Written)));
    assert!(journal.is_open_and_written() && journal.written() == Position(2));
    journal
}

/// The result of a future that is ready at once.
fn now<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().expect("the store answers at once")
}

fn run() -> RunId {
    "r".into()
}

/// Makes one write and returns its answer.
fn write(journal: &mut Journal) -> Option<Answer> {
    journal.write(&run());
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(answer) = journal.poll_written(&mut cx) else { panic!("the store answers at once") };
    answer
}

/// Writes until nothing is left. Returns how many records each write had.
fn writes(journal: &mut Journal, store: &Picky) -> Vec<usize> {
    store.take_writes();
    while !journal.is_written() {
        assert!(matches!(write(journal), Some(Answer::Written)));
    }
    store.take_writes().into_iter().map(|(_, records, _)| records).collect()
}

#[test]
fn a_run_begins_with_its_start_event_in_one_batch() {
    let store = Arc::new(Picky::default());
    let mut journal =
        Journal::begin(Arc::clone(&store) as _, Record::RunKept { at: AT }, RunSummary::running("W", AT));
    journal.queue([record("bad")]);
    journal.queue([record("good")]);
    assert!(matches!(write(&mut journal), Some(Answer::Repeats)));
    assert!(matches!(write(&mut journal), Some(Answer::Refused { records: 2, .. })));
    assert_eq!(store.take_writes(), [(0, 3, false), (0, 2, false)]);
}

#[test]
fn a_write_has_at_most_a_thousand_records_unless_one_batch_has_more() {
    let store = Arc::new(Picky::default());
    let mut journal = journal(&store);
    for records in [400, 600, 1, 999, 1, 1_500, 1, 1] {
        journal.queue(batch(records));
    }
    assert_eq!(writes(&mut journal, &store), [1_000, 1_000, 1, 1_500, 2]);
}

#[test]
fn a_write_has_at_most_sixteen_mebibytes_unless_one_batch_has_more() {
    let store = Arc::new(Picky::default());
    let mut journal = journal(&store);
    let megabytes = |count: usize| record(&"x".repeat(count * 1_000_000));
    for count in [6, 6, 6, 20, 1, 15, 1] {
        journal.queue([megabytes(count)]);
    }
    // A batch is never split.
    journal.queue([megabytes(8), megabytes(8), megabytes(8)]);
    assert_eq!(writes(&mut journal, &store), [2, 1, 1, 2, 1, 3]);
}

#[test]
fn a_write_that_is_refused_for_its_content_is_repeated_batch_by_batch() {
    let store = Arc::new(Picky::default());
    let mut journal = journal(&store);
    journal.queue([record("one"), record("one")]);
    journal.queue([record("two")]);
    journal.queue([record("three"), record("bad"), record("three")]);
    journal.queue([record("four")]);
    store.take_writes();
    assert!(matches!(write(&mut journal), Some(Answer::Repeats)));
    assert!(journal.failure().is_none() && journal.written() == Position(2));
    for written in [4, 5] {
        assert!(matches!(write(&mut journal), Some(Answer::Written)));
        assert_eq!(journal.written(), Position(written));
    }
    let Some(Answer::Refused { records: 3, why }) = write(&mut journal) else { panic!("it is refused") };
    assert!(matches!(why, StoreError::Unserialisable { .. }), "{why}");
    assert_eq!(store.take_writes(), [(2, 7, false), (2, 2, true), (4, 1, true), (5, 3, false)]);
    assert!(journal.failure().is_none() && journal.end() == Position(9));
}

#[test]
fn batches_behind_a_refused_write_are_written_together_again() {
    let store = Arc::new(Picky::default());
    let mut journal = journal(&store);
    // The store takes each of them, but not both together.
    *store.answers.lock().unwrap() = Some(StoreError::unserialisable(std::fmt::Error));
    journal.queue([record("one")]);
    journal.queue([record("two")]);
    assert!(matches!(write(&mut journal), Some(Answer::Repeats)));
    *store.answers.lock().unwrap() = None;
    for _ in 0..3 {
        journal.queue([record("later")]);
    }
    assert_eq!(writes(&mut journal, &store), [1, 1, 3]);
}

#[test]
fn a_store_that_failed_is_not_asked_again() {
    let conflict = || StoreError::Conflict { expected: Position(2), found: Position(3) };
    for error in [conflict(), StoreError::unavailable(std::fmt::Error), StoreError::ShutDown] {
        let store = Arc::new(Picky::default());
        let mut journal = journal(&store);
        store.take_writes();
        *store.answers.lock().unwrap() = Some(error.clone());
        journal.queue([record("one")]);
        journal.queue([record("two")]);
        assert!(matches!(write(&mut journal), Some(Answer::Failed)));
        assert_eq!(journal.failure(), Some(&error));
        assert!(write(&mut journal).is_none());
        assert_eq!(store.take_writes(), [(2, 2, false)]);
    }
}

#[test]
fn a_rewound_journal_ends_where_the_store_has_it_and_continues_there() {
    let store = Arc::new(Picky::default());
    let mut journal = journal(&store);
    journal.queue([record("good")]);
    assert!(matches!(write(&mut journal), Some(Answer::Written)));
    journal.queue([record("bad")]);
    let end = RunEnd {
        status: RunStatus::Completed,
        at: AT,
        quality: Quality::Clean,
        stop: None,
        incomplete: Vec::new(),
    };
    journal.queue_end([Record::RunKept { at: AT }], end);
    assert!(matches!(write(&mut journal), Some(Answer::Repeats)));
    let Some(Answer::Refused { why, .. }) = write(&mut journal) else { panic!("it is refused") };
    journal.read_back(&run(), why);
    store.take_writes();
    assert!(write(&mut journal).is_none() && store.take_writes().is_empty(), "it is being read");
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(back)) = journal.poll_read_back(&run(), &mut cx, |record| record) else {
        panic!("the store answers at once")
    };
    assert_eq!((back.records.len(), back.records.iter().find_map(text).as_deref()), (3, Some("good")));
    let unwritten = journal.rewind();
    assert_eq!((unwritten.len(), unwritten.iter().find_map(text).as_deref()), (2, Some("bad")));
    assert!(journal.is_open_and_written() && journal.end() == Position(3));
    journal.queue([record("later")]);
    assert_eq!(writes(&mut journal, &store), [1]);
    assert_eq!(journal.written(), Position(4));
}

#[test]
fn a_journal_that_was_removed_cannot_be_read_back() {
    let store = Arc::new(Picky::default());
    let mut journal = journal(&store);
    journal.queue([record("bad")]);
    let Some(Answer::Refused { why, .. }) = write(&mut journal) else { panic!("it is refused") };
    let mut cx = Context::from_waker(Waker::noop());
    assert!(now(store.remove(&run())).unwrap());
    journal.read_back(&run(), why);
    let Poll::Ready(Err(error)) = journal.poll_read_back(&run(), &mut cx, |record| record) else {
        panic!("there is nothing to read")
    };
    assert_eq!(error, StoreError::Conflict { expected: Position(2), found: Position(0) });
}

#[test]
fn the_next_batch_of_a_woken_run_sets_its_status_to_running() {
    let store = Arc::new(Picky::default());
    let mut journal = journal(&store);
    let status = || now(store.kept.runs(&RunQuery::new())).unwrap()[0].run.status;
    journal.queue_wait(Record::RunKept { at: AT }, WaitingFor::default(), greeter().table.recorded());
    assert!(matches!(write(&mut journal), Some(Answer::Written)));
    assert_eq!(status(), RunStatus::Waiting);
    journal.note_running_again();
    journal.queue([record("bad")]);
    assert!(matches!(write(&mut journal), Some(Answer::Refused { .. })));
    assert_eq!(status(), RunStatus::Waiting);
    journal.rewind();
    journal.note_running_again();
    journal.queue([record("good")]);
    assert!(matches!(write(&mut journal), Some(Answer::Written)));
    assert_eq!(status(), RunStatus::Running);
}

/// Panics in every call.
struct Panics;

impl EventStore for Panics {
    fn append(&self, _: &RunId, _: Position, _: Write) -> StoreFuture<()> {
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

#[test]
fn a_store_that_panics_is_one_that_is_not_available() {
    let begin = || {
        let first = Record::RunKept { at: AT };
        Journal::begin(Arc::new(Panics), first, RunSummary::running("W", AT))
    };
    let mut written = begin();
    assert!(matches!(write(&mut written), Some(Answer::Failed)));
    assert!(matches!(written.failure(), Some(StoreError::Unavailable { .. })));
    assert_eq!(written.written(), Position(0));

    let mut read = begin();
    read.read_back(&run(), StoreError::ShutDown);
    let polled = read.poll_read_back(&run(), &mut Context::from_waker(Waker::noop()), |record| record);
    assert!(matches!(polled, Poll::Ready(Err(StoreError::Unavailable { .. }))));
}

#[test]
fn a_journal_is_read_back_page_by_page_up_to_where_it_was_written() {
    let store = Arc::new(Picky::default());
    let mut journal = journal(&store);
    journal.queue(batch(2 * PAGE));
    assert!(matches!(write(&mut journal), Some(Answer::Written)));
    journal.read_back(&run(), StoreError::ShutDown);
    let mut read = 0;
    let polled = journal.poll_read_back(&run(), &mut Context::from_waker(Waker::noop()), |record| {
        read += 1;
        record
    });
    let Poll::Ready(Ok(ReadBack { records, refused })) = polled else { panic!("it is there") };
    assert_eq!((records.len(), read, refused), (2 * PAGE + 2, 2 * PAGE + 2, StoreError::ShutDown));
    assert!(!journal.is_reading());
}

#[test]
fn a_journal_fails_at_once_unless_a_write_is_under_way_and_then_writes_and_reads_nothing() {
    let store = Arc::new(Picky::default());
    let mut journal = journal(&store);
    journal.queue(batch(1));
    journal.write(&run());
    assert!(!journal.fail_if_idle(&StoreError::ShutDown), "the store has not answered");
    assert!(matches!(write(&mut journal), Some(Answer::Written)));
    journal.queue(batch(1));
    journal.read_back(&run(), StoreError::ShutDown);
    assert!(journal.fail_if_idle(&StoreError::ShutDown) && !journal.fail_if_idle(&StoreError::ShutDown));
    assert!(!journal.is_reading() && journal.queued_records() == 0);
    journal.queue(batch(1));
    assert!(write(&mut journal).is_none());
}
