//! Records: a read returns what was written, whether the store keeps Rust values or bytes.

use serde_json::Value;
use workflow_core::RunStatus;
use workflow_core::store::{EventStore, Position, Record, StoreError, Write};

use super::journal::Journal;
use super::samples::{every_kind, formless, forms, holding, note, number, text};
use super::subject::Subject;

pub fn every_kind_of_record_is_read_back_as_it_was<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        keeps(&Journal::new(&store), every_kind(), "a record of every kind is read back as it was").await;
    });
}

pub fn events_are_read_back_in_every_form_of_json<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let demand = "an event is read back as it was, whatever its JSON";
        keeps(&journal, forms().into_iter().map(holding).collect(), demand).await;
        let read = journal.all(100).await;
        let held: Vec<Value> = read.iter().map(event).collect();
        assert_eq!(held, forms(), "{demand}");
    });
}

/// What the event of a record holds.
fn event(record: &Record) -> Value {
    let Record::EventLogged { event, .. } = record else { panic!("no event: {}", text(record)) };
    event.to_json().unwrap_or_else(|error| panic!("an event is read back with its JSON, but: {error}"))
}

async fn keeps(journal: &Journal, records: Vec<Record>, demand: &str) {
    let written: Vec<String> = records.iter().map(text).collect();
    journal.put_records(0, records, RunStatus::Running).await;
    let read: Vec<String> = journal.all(100).await.iter().map(text).collect();
    for (position, (written, read)) in written.iter().zip(&read).enumerate() {
        assert_eq!(read, written, "{demand}: at position {position}");
    }
    assert_eq!(read.len(), written.len(), "{demand}: how many there are");
}

pub fn an_event_without_a_form_as_json_is_kept_as_it_is_or_changes_nothing<S: EventStore>(
    subject: Subject<S>,
) {
    subject.check(|store| async move {
        // As the first record and later, each time between records that have JSON.
        for begin in [0, 2] {
            let journal = Journal::new(&store);
            if begin > 0 {
                journal.put(0..begin).await;
            }
            let records = vec![note(begin), formless(), note(begin + 2)];
            let batch = Write { records, run: journal.summary(begin + 3) };
            let returned = store.append(&journal.run, Position(begin), batch).await;
            assert_refused_or_kept(&journal, begin, returned).await;
        }
    });
}

async fn assert_refused_or_kept(journal: &Journal, begin: u64, returned: Result<(), StoreError>) {
    match returned {
        // A store in memory keeps the value itself.
        Ok(()) => {
            let kept = journal.read(begin + 1, 1).await;
            let is_kept =
                matches!(&kept[..], [Record::EventLogged { event, .. }] if event.to_json().is_err());
            assert!(is_kept, "`append` that returns `Ok` has stored the batch, but in its place is {kept:?}");
        }
        Err(StoreError::Unserialisable { .. }) => {
            let says_so = journal.store.serialises();
            assert!(says_so, "a store that cannot keep an event without a form as JSON `serialises`");
            let demand = "`Unserialisable` means that nothing was changed";
            journal.assert_ends_at(begin, demand).await;
            journal.put(begin..begin + 1).await;
            journal.assert_ends_at(begin + 1, demand).await;
        }
        Err(error) => {
            panic!("`append` reports an event without a form as JSON as `Unserialisable`, not: {error}")
        }
    }
}

pub fn a_batch_of_1000_records_is_kept_whole<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        journal.put(0..1).await;
        journal.put(1..1_001).await;
        let read: Vec<u64> = journal.all(usize::MAX).await.iter().map(number).collect();
        assert!(read.iter().copied().eq(0..1_001), "a batch of 1,000 records is kept whole: {read:?}");
        journal.put(1_001..1_002).await;
        journal.assert_ends_at(1_002, "a batch of 1,000 records is kept whole").await;
    });
}

pub fn an_event_of_1_mib_is_kept_whole<S: EventStore>(subject: Subject<S>) {
    subject.check(|store| async move {
        let journal = Journal::new(&store);
        let long = "0123456789abcdef".repeat(1 << 16);
        let records = vec![note(0), holding(long.clone().into()), note(2)];
        journal.put_records(0, records, RunStatus::Running).await;
        let read = journal.all(100).await;
        assert_eq!(read.len(), 3, "a batch with an event of 1 MiB is kept whole");
        let is_kept = event(&read[1]).as_str() == Some(&long);
        assert!(is_kept, "an event of 1 MiB is kept whole");
        assert_eq!((number(&read[0]), number(&read[2])), (0, 2), "and so is what stands beside it");
    });
}
