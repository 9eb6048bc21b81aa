//! Writes are first recent, and move later. A reader does not see where they are.

use std::collections::BTreeMap;
use std::ops::Range;

use redb::{Database, ReadableDatabase as _, ReadableTableMetadata as _};
use workflow_core::store::{EventStore, Position, Record, RunQuery, RunSummary, StoreError};

use crate::fixtures::{Place, batch, ids, put as put_alone, record, text};
use crate::format::{Definition, RECENT, RECORDS, RUNS};
use crate::journal::SerialisedWrite;
use crate::tables::Tables;
use crate::{RedbStore, StoreFile};

/// The most recent writes of a run; part of the format, like the next one.
const MOST_OF_A_RUN: u64 = 32;

/// The most recent writes in all.
const MOST: u64 = 16_384;

/// The number of entries in the tables of records and of recent writes.
fn lengths(place: &Place) -> (u64, u64) {
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_read().unwrap();
    let length = |table| transaction.open_table(table).unwrap().len().unwrap();
    (length(RECORDS), length(RECENT))
}

/// Appends these records as in a commit that many calls share.
async fn put(store: &RedbStore, run: &str, positions: Range<u64>) {
    let written = SerialisedWrite::new(&run.into(), Position(positions.start), &batch(positions)).unwrap();
    let work = move |tables: &mut Tables<'_>| {
        tables.shared = true;
        written.append(tables)
    };
    store.shared().queue.commit(0, work).await.unwrap().unwrap();
}

/// All records of a run, read in pages of this size.
async fn read(store: &RedbStore, run: &str, page: usize) -> Vec<Record> {
    let mut records = Vec::new();
    loop {
        let more = store.read(&run.into(), Position(0).after(records.len()), page).await.unwrap();
        if more.is_empty() {
            return records;
        }
        records.extend(more);
    }
}

/// All records of a run whose entry is damaged. Behind them is the error.
async fn read_damaged(store: &RedbStore, run: &str) -> Vec<Record> {
    let records = store.read(&run.into(), Position(0), 100).await.unwrap();
    let end = store.read(&run.into(), Position(0).after(records.len()), 100).await;
    assert!(matches!(end, Err(StoreError::Corrupt { .. })), "{end:?}");
    records
}

fn written(count: u64) -> String {
    text(&(0..count).map(record).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_run_is_read_alike_wherever_its_batches_are() {
    let place = Place::new();
    // None has moved, some have, and all but one have.
    for count in [1, 5, MOST_OF_A_RUN, MOST_OF_A_RUN + 1, MOST_OF_A_RUN + 2, 3 * MOST_OF_A_RUN] {
        let (store, run) = (place.open(), format!("of-{count}"));
        for position in 0..count {
            put(&store, &run, position..position + 1).await;
        }
        for page in [1, 7, 1_000] {
            assert_eq!(text(&read(&store, &run, page).await), written(count), "{count} in pages of {page}");
        }
        assert!(store.check().await.unwrap().is_sound());
    }
}

#[tokio::test]
async fn the_thirty_third_batch_of_a_run_moves_those_before_it() {
    let place = Place::new();
    for (batches, moved) in [(MOST_OF_A_RUN, 0), (MOST_OF_A_RUN + 1, MOST_OF_A_RUN + 1)] {
        let store = place.open();
        let end = store.read(&"a".into(), Position(0), 1_000).await.unwrap().len() as u64;
        for position in end..batches {
            put(&store, "a", position..position + 1).await;
        }
        drop(store);
        assert_eq!(lengths(&place).0, moved, "of {batches}");
    }
}

/// A commit of few calls has no recent writes.
#[tokio::test]
async fn a_batch_that_is_committed_alone_goes_with_those_before_it_to_where_it_stays() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..2).await;
    put_alone(&store, "a", 2..3).await.unwrap();
    put(&store, "a", 3..4).await;
    assert_eq!(text(&read(&store, "a", 10).await), written(4));
    drop(store);
    assert_eq!(lengths(&place), (3, 2));
}

#[tokio::test]
async fn a_large_batch_goes_with_those_before_it_to_where_it_stays() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..2).await;
    put(&store, "a", 2..300).await;
    put(&store, "a", 300..301).await;
    assert_eq!(text(&read(&store, "a", 64).await), written(301));
    drop(store);
    assert_eq!(lengths(&place), (300, 2));
}

/// Many runs with few writes each: none reaches 32, and they move because there are too many in all.
#[tokio::test]
async fn there_is_a_bound_for_all_runs_together() {
    let place = Place::new();
    let store = place.open();
    let runs = MOST / 2 + 500;
    for first in (0..runs).step_by(500) {
        let some = (first..runs.min(first + 500)).map(|run| {
            let store = &store;
            async move {
                put(store, &format!("{run:05}"), 0..1).await;
                put(store, &format!("{run:05}"), 1..2).await;
            }
        });
        futures::future::join_all(some).await;
    }
    for run in ["00000", "00499", "00500", "04000", "08691"] {
        assert_eq!(text(&read(&store, run, 10).await), written(2), "{run}");
    }
    let report = store.check().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.runs, report.records), (runs, 2 * runs));
    drop(store);
    let (records, recent) = lengths(&place);
    assert_eq!(recent, MOST);
    assert!(records >= 2 * runs - MOST, "{records} of {}", 2 * runs);
}

#[tokio::test]
async fn a_run_that_is_removed_and_begun_again_has_only_new_records() {
    let place = Place::new();
    let store = place.open();
    for position in 0..MOST_OF_A_RUN + 4 {
        put(&store, "a", position..position + 1).await;
    }
    assert!(store.remove(&"a".into()).await.unwrap());
    assert!(read(&store, "a", 100).await.is_empty());
    put(&store, "a", 0..3).await;
    assert_eq!(text(&read(&store, "a", 100).await), written(3));
    store.compact().await.unwrap();
    assert_eq!(text(&read(&store, "a", 100).await), written(3));
    assert!(store.check().await.unwrap().is_sound());
    drop(store);
    assert_eq!(lengths(&place), (3, 0));
}

#[tokio::test]
async fn a_copy_and_a_compacted_file_have_everything_where_it_stays() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..2).await;
    put(&store, "b", 0..3).await;
    let copy = Place::new();
    store.snapshot(&copy.file).await.unwrap();
    assert_eq!(lengths(&copy), (5, 0));
    store.compact().await.unwrap();
    for store in [store, copy.open()] {
        assert_eq!(ids(&store).await, ["a", "b"]);
        assert_eq!(text(&read(&store, "a", 10).await), written(2));
        assert!(store.check().await.unwrap().is_sound());
    }
    assert_eq!(lengths(&place), (5, 0));
}

/// Changes the file without the store's knowledge.
fn change(place: &Place, table: Definition, key: &[u8], value: Option<&[u8]>) {
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut opened = transaction.open_table(table).unwrap();
    match value {
        Some(value) => drop(opened.insert(key, value).unwrap()),
        None => assert!(opened.remove(key).unwrap().is_some(), "there is nothing to remove"),
    }
    drop(opened);
    transaction.commit().unwrap();
}

#[tokio::test]
async fn a_recent_batch_that_is_missing_is_a_gap() {
    let place = Place::new();
    let store = place.open();
    for position in 0..3 {
        put(&store, "a", position..position + 1).await;
    }
    drop(store);
    change(&place, RECENT, &1_u64.to_be_bytes(), None);
    let report = StoreFile::open(&place.file).unwrap().check().unwrap();
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["run `a`: position 1 is missing, the next is 2"]);
    let store = place.open();
    assert!(store.read(&"a".into(), Position(0), 10).await.is_err());
    assert_eq!(store.read(&"a".into(), Position(2), 10).await.unwrap().len(), 1);
}

/// The entry named the writes. Without it, a scan finds them.
#[tokio::test]
async fn a_run_with_a_damaged_entry_still_reads_its_recent_writes() {
    let place = Place::new();
    let store = place.open();
    for run in ["a", "b"] {
        put(&store, run, 0..2).await;
        put(&store, run, 2..3).await;
    }
    drop(store);
    change(&place, RUNS, b"a", Some(b"short"));
    for is_compacted in [false, true] {
        let store = place.open();
        if is_compacted {
            store.compact().await.unwrap();
        }
        assert_eq!(text(&read_damaged(&store, "a").await), written(3));
        let listed = store.runs(&RunQuery::new()).await.unwrap();
        let begun = RunSummary::begun_by(&record(0)).unwrap();
        assert_eq!((listed[0].end, &listed[0].run), (Position(3), &begun));
    }
}

/// Runs grow, end, are removed and begin again in a random order, with compactions in between. A map has the expected
/// contents.
#[tokio::test]
async fn random_operations_read_like_a_map() {
    let place = Place::new();
    let mut store = place.open();
    let mut model = BTreeMap::<String, u64>::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for step in 0..3_000 {
        let run = format!("run-{}", draw(7));
        let end = model.get(&run).copied().unwrap_or_default();
        match draw(40) {
            0 => assert_eq!(store.remove(&run.as_str().into()).await.unwrap(), model.remove(&run).is_some()),
            1 => drop(store.compact().await.unwrap()),
            2 => {
                drop(store);
                store = place.open();
            }
            drawn => {
                let count = if drawn == 3 { 100 } else { 1 + draw(4) };
                match drawn {
                    4..8 => put_alone(&store, &run, end..end + count).await.unwrap(),
                    _ => put(&store, &run, end..end + count).await,
                }
                model.insert(run.clone(), end + count);
            }
        }
        if step % 50 == 0 {
            for (run, count) in &model {
                assert_eq!(text(&read(&store, run, 37).await), written(*count), "{run} after {step}");
            }
            assert!(store.check().await.unwrap().is_sound());
        }
    }
    assert!(model.len() > 3);
}

fn problems(place: &Place) -> Vec<String> {
    let report = StoreFile::open(&place.file).unwrap().check().unwrap();
    report.problems.iter().map(ToString::to_string).collect()
}

/// A settled write may still be recent when its run is removed. It must not become part of the next run of the id.
#[tokio::test]
async fn a_run_whose_entry_is_damaged_has_nothing_of_one_that_was_removed() {
    let place = Place::new();
    let store = place.open();
    for position in 0..=MOST_OF_A_RUN {
        put(&store, "a", position..position + 1).await;
    }
    store.remove(&"a".into()).await.unwrap();
    put(&store, "a", 0..2).await;
    drop(store);
    assert_eq!(lengths(&place).1, MOST_OF_A_RUN + 2);
    change(&place, RUNS, b"a", Some(b"short"));
    let store = place.open();
    assert_eq!(text(&read_damaged(&store, "a").await), written(2));
    let copy = Place::new();
    store.snapshot(&copy.file).await.unwrap();
    store.compact().await.unwrap();
    for store in [store, copy.open()] {
        assert_eq!(text(&read_damaged(&store, "a").await), written(2));
        assert_eq!(store.runs(&RunQuery::new()).await.unwrap()[0].end, Position(2));
    }
    assert_eq!((lengths(&place), lengths(&copy)), ((2, 0), (2, 0)));
}

#[tokio::test]
async fn a_number_of_another_runs_batch_is_not_followed() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..1).await;
    put(&store, "b", 0..1).await;
    drop(store);
    // The entry of `a`, without its checksum, names the write of `b`: behind end, time and count.
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_read().unwrap();
    let entry = transaction.open_table(RUNS).unwrap().get(&b"a"[..]).unwrap().unwrap().value().to_vec();
    let mut entry = entry[5..].to_vec();
    drop((transaction, database));
    entry[18..26].copy_from_slice(&1_u64.to_be_bytes());
    change(&place, RUNS, b"a", Some(&entry));
    assert_eq!(problems(&place), ["run `a` ends at 0, and its summary says at 1"]);
    let store = place.open();
    let missing = store.read(&"a".into(), Position(0), 10).await;
    assert!(matches!(missing, Err(StoreError::Corrupt { position: Position(0), .. })), "{missing:?}");
    store.remove(&"a".into()).await.unwrap();
    assert_eq!(text(&read(&store, "b", 10).await), written(1));
    assert!(store.check().await.unwrap().is_sound());
}

#[tokio::test]
async fn a_check_finds_problems_of_recent_writes() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..1).await;
    put(&store, "b", 0..1).await;
    put(&store, "removed", 0..1).await;
    store.remove(&"removed".into()).await.unwrap();
    put(&store, "c", 0..1).await;
    drop(store);
    assert!(problems(&place).is_empty());
    change(&place, RUNS, b"a", None);
    change(&place, RECENT, &1_u64.to_be_bytes(), Some(b"\0\0\0\x01b"));
    change(&place, RECENT, b"short", Some(b""));
    assert_eq!(
        problems(&place),
        [
            "the recent batch 1 cannot be read",
            "table `workflow.recent` has a key that is none: short",
            "run `a` has records and no summary",
            "run `b` ends at 0, and its summary says at 1",
            "run `a` is wrongly in the index of runs that have not ended",
            "run `a` is wrongly in the index by start",
        ],
    );
    // Undamaged runs work as before.
    let store = place.open();
    put(&store, "c", 1..2).await;
    assert_eq!(text(&read(&store, "c", 10).await), written(2));
}

#[tokio::test]
async fn a_batch_without_records_changes_the_summary_alone() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..2).await;
    put(&store, "a", 2..2).await;
    assert_eq!(text(&read(&store, "a", 10).await), written(2));
    drop(store);
    assert_eq!(lengths(&place), (0, 1));
    change(&place, RUNS, b"a", Some(b"short"));
    assert_eq!(text(&read_damaged(&place.open(), "a").await), written(2));
}
