//! Flipped bits in records: each is an error at the next reading of its run, and every other run is read.

use std::collections::BTreeMap;

use futures::future::join_all;
use workflow_core::store::{Position, StoreError};
use workflow_core::{RunId, RunStatus};
use workflow_redb::StoreFile;

use crate::fixtures::{Place, put, put_ended, text};

const FLIPS: u64 = 1_000;

/// A store whose records are in both tables, in a file that was closed.
async fn filled() -> Place {
    let place = Place::new();
    let store = place.open();
    let names: Vec<String> = (0..24).map(|number| format!("run-{number}")).collect();
    for round in 0..3 {
        let puts = join_all(names.iter().map(|run| put(&store, run, 5 * round..5 * round + 5))).await;
        assert!(puts.iter().all(Result::is_ok));
    }
    for run in ["ended-1", "ended-2"] {
        put_ended(&store, run, RunStatus::Completed).await;
    }
    place
}

/// All records of all runs, as text.
fn contents(file: &StoreFile) -> BTreeMap<RunId, String> {
    let runs = file.runs(&workflow_core::store::RunQuery::new()).unwrap();
    let read = |run: &RunId| text(&file.read(run, Position(0), 1_000).unwrap());
    runs.into_iter().map(|stored| (stored.id.clone(), read(&stored.id))).collect()
}

/// The places in a file of the records that a reader of the run gets: the bytes of the checksum, and JSON.
fn places(bytes: &[u8], needle: &[u8]) -> Vec<usize> {
    let first = needle[0];
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == first).map(|(at, _)| at);
    starts.filter(|at| bytes[*at..].starts_with(needle)).collect()
}

/// The stored form of each record, by its run: a marker, a checksum and JSON.
fn stored(place: &Place) -> Vec<(RunId, Vec<u8>)> {
    use redb::{Database, ReadableDatabase as _, TableDefinition};
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_read().unwrap();
    let open = |name| transaction.open_table(TableDefinition::<&[u8], &[u8]>::new(name)).unwrap();
    let run_of = |key: &[u8]| {
        let length = usize::try_from(u32::from_be_bytes(*key.first_chunk().unwrap())).unwrap();
        (RunId::from(std::str::from_utf8(&key[4..4 + length]).unwrap()), 4 + length + 8)
    };
    let mut stored = Vec::new();
    for entry in open("workflow.records").range::<&[u8]>(..).unwrap() {
        let (key, record) = entry.unwrap();
        stored.push((run_of(key.value()).0, record.value().to_vec()));
    }
    for entry in open("workflow.recent").range::<&[u8]>(..).unwrap() {
        let (_, write) = entry.unwrap();
        let (run, mut at) = run_of(write.value());
        let mut rest = write.value();
        while at < rest.len() {
            rest = &rest[at..];
            let size = usize::try_from(u32::from_be_bytes(*rest.first_chunk().unwrap())).unwrap();
            stored.push((run.clone(), rest[4..4 + size].to_vec()));
            at = 4 + size;
        }
    }
    stored
}

#[tokio::test]
async fn each_of_1000_flipped_bits_in_records_is_corrupt_at_the_next_reading_of_its_run() {
    let place = filled().await;
    let before = contents(&StoreFile::open(&place.file).unwrap());
    let (stored, bytes) = (stored(&place), place.bytes());
    assert!(stored.len() > 300 && stored.iter().all(|(_, record)| record[0] == 0x84));
    let flipped_file = Place::new();
    for seed in 0..FLIPS {
        let mut random = fastrand::Rng::with_seed(seed);
        let (run, record) = &stored[random.usize(..stored.len())];
        let (byte, bit) = (random.usize(..record.len()), random.u8(..8));
        let mut flipped = bytes.clone();
        // A page that was replaced may have the record too.
        for at in places(&bytes, record) {
            flipped[at + byte] ^= 1 << bit;
        }
        assert!(flipped != bytes);
        std::fs::write(&flipped_file.file, &flipped).unwrap();
        let file = StoreFile::open(&flipped_file.file).unwrap();
        let read = file.read(run, Position(0), 1_000);
        assert!(matches!(read, Err(StoreError::Corrupt { .. })), "byte {byte}, bit {bit} of {run}: {read:?}");
        let other = before.keys().find(|other| *other != run).unwrap();
        assert_eq!(text(&file.read(other, Position(0), 1_000).unwrap()), before[other]);
    }
}

/// The lengths and ids around records, the entries of runs, and redb's own bytes: a reader gets the very records, or an
/// error. A flip in the tree of pages may hide a run as a whole; the checksums of redb find that.
#[tokio::test]
async fn a_flipped_bit_anywhere_in_a_file_changes_no_record_that_is_read() {
    let place = filled().await;
    let before = contents(&StoreFile::open(&place.file).unwrap());
    let bytes = place.bytes();
    let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let (mut found, flipped_file) = (0, Place::new());
    for seed in 0..FLIPS {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut flipped = bytes.clone();
        flipped[used[random.usize(..used.len())]] ^= 1 << random.u8(..8);
        std::fs::write(&flipped_file.file, &flipped).unwrap();
        let Ok(file) = StoreFile::open(&flipped_file.file) else {
            found += 1;
            continue;
        };
        for (run, records) in &before {
            match file.read(run, Position(0), 1_000) {
                Ok(read) if text(&read) == *records => {}
                Ok(read) => assert!(read.is_empty(), "seed {seed}: {run} is read with other records"),
                Err(_) => found += 1,
            }
        }
    }
    assert!(found > FLIPS / 10, "{found} flips were found");
}
