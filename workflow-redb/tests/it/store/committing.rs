//! Shared commits, failing disks, and the writes when the store is dropped.

use std::io::ErrorKind;
use std::time::Duration;

use futures::executor::block_on;
use futures::future::{join_all, poll_immediate};
use workflow_core::store::{EventStore, Position, StoreError, StoreFuture};
use workflow_redb::{Durability, RedbStore, StoreFile, WorkError};

use crate::disk::Disk;
use crate::fixtures::{Place, batch, ids, put};

fn on(disk: &Disk) -> RedbStore {
    RedbStore::builder().open_backend("a disk", disk.clone()).unwrap()
}

fn append(store: &RedbStore, run: &str, at: u64) -> StoreFuture<()> {
    store.append(&run.into(), Position(at), batch(at..at + 2))
}

/// Makes calls during a commit, so that all of them wait for its end. Returns their results, and the number of syncs
/// for them.
fn together(
    disk: &Disk,
    store: &RedbStore,
    calls: Vec<StoreFuture<()>>,
) -> (Vec<Result<(), StoreError>>, usize) {
    disk.hold();
    let mut first = append(store, "the first", 0);
    assert!(block_on(poll_immediate(&mut first)).is_none());
    disk.until_held();
    let mut answers = join_all(calls);
    assert!(block_on(poll_immediate(&mut answers)).is_none());
    disk.let_go();
    block_on(first).unwrap();
    let before = disk.syncs();
    (block_on(answers), disk.syncs() - before)
}

#[test]
fn appends_that_wait_together_are_committed_together() {
    let alone = {
        let disk = Disk::default();
        let store = on(&disk);
        block_on(append(&store, "a", 0)).unwrap();
        let before = disk.syncs();
        block_on(append(&store, "a", 2)).unwrap();
        disk.syncs() - before
    };
    let disk = Disk::default();
    let store = on(&disk);
    let runs: Vec<String> = (0..100).map(|number| format!("run-{number:02}")).collect();
    let calls = runs.iter().map(|run| append(&store, run, 0)).collect();
    let (answers, syncs) = together(&disk, &store, calls);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    // Growing the file is synced as well.
    assert!(syncs <= alone + 2, "100 appends took {syncs} syncs, and one takes {alone}");
    assert_eq!(block_on(ids(&store)).len(), 101);
}

#[test]
fn a_conflict_refuses_its_own_append_and_no_other_of_the_group() {
    let disk = Disk::default();
    let store = on(&disk);
    let calls =
        vec![append(&store, "a", 0), append(&store, "b", 7), append(&store, "a", 0), append(&store, "a", 2)];
    let (answers, _) = together(&disk, &store, calls);
    let texts: Vec<String> = answers.iter().map(|answer| format!("{answer:?}")).collect();
    assert_eq!(
        texts,
        [
            "Ok(())",
            "Err(Conflict { expected: Position(7), found: Position(0) })",
            "Err(Conflict { expected: Position(0), found: Position(2) })",
            "Ok(())",
        ],
    );
    assert_eq!(block_on(ids(&store)), ["a", "the first"]);
}

#[test]
fn a_caller_that_waits_for_room_in_the_queue_is_served() {
    let disk = Disk::default();
    let store = RedbStore::builder().queue(1).open_backend("a disk", disk.clone()).unwrap();
    let calls = ["a", "b", "c", "d"].map(|run| append(&store, run, 0)).into();
    let (answers, _) = together(&disk, &store, calls);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(block_on(ids(&store)).len(), 5);
}

#[test]
fn a_full_disk_is_reported_with_the_name_of_the_file() {
    let disk = Disk::default();
    let store = on(&disk);
    block_on(append(&store, "a", 0)).unwrap();
    disk.fail(ErrorKind::StorageFull);
    let error = block_on(append(&store, "a", 2)).unwrap_err();
    let StoreError::Unavailable { source } = &error else { panic!("{error:?}") };
    assert_eq!(
        source.to_string(),
        "there is no room for `a disk` to grow: make some, or remove ended runs and compact it"
    );
    let work = source.downcast_ref::<WorkError>();
    assert!(matches!(work, Some(WorkError::Full { .. })), "{work:?}");
}

#[test]
fn every_call_on_a_disk_that_failed_is_answered() {
    let disk = Disk::default();
    let store = on(&disk);
    block_on(append(&store, "a", 0)).unwrap();
    disk.fail(ErrorKind::Other);
    for _ in 0..3 {
        let error = block_on(append(&store, "a", 2)).unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
    assert!(block_on(store.sync()).is_ok(), "nothing that was answered is not on disk");
    assert!(block_on(store.compact()).is_err());
    drop(store);
    disk.fail(None);
    // Confirmed batches are there, after any later failure.
    assert_eq!(block_on(ids(&on(&disk))), ["a"]);
}

#[test]
fn what_waits_when_the_last_handle_is_dropped_is_written() {
    let place = Place::new();
    let store = place.open();
    let mut calls: Vec<_> = (0..50).map(|number| append(&store, &format!("run-{number}"), 0)).collect();
    for call in &mut calls {
        drop(block_on(poll_immediate(call)));
    }
    drop(store);
    // The calls hold the store too: the last of them closes it.
    drop(calls);
    assert_eq!(block_on(ids(&place.open())).len(), 50);
}

#[test]
fn a_buffered_store_answers_before_it_syncs_and_syncs_when_asked_and_when_dropped() {
    let disk = Disk::default();
    let builder = RedbStore::builder().durability(Durability::Buffered(Duration::MAX));
    let store = builder.open_backend("a disk", disk.clone()).unwrap();
    let before = disk.syncs();
    for at in [0, 2, 4] {
        block_on(append(&store, "a", at)).unwrap();
    }
    assert_eq!(disk.syncs(), before);
    block_on(store.sync()).unwrap();
    let synced = disk.syncs();
    assert!(synced > before);
    block_on(append(&store, "a", 6)).unwrap();
    drop(store);
    assert!(disk.syncs() > synced);
    let journal = block_on(on(&disk).read(&"a".into(), Position(0), 100)).unwrap();
    assert_eq!(journal.len(), 8);
}

#[tokio::test]
async fn a_buffered_store_syncs_by_itself() {
    let disk = Disk::default();
    let builder = RedbStore::builder().durability(Durability::Buffered(Duration::from_millis(1)));
    let store = builder.open_backend("a disk", disk.clone()).unwrap();
    let before = disk.syncs();
    put(&store, "a", 0..2).await.unwrap();
    let synced = async {
        while disk.syncs() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(5), synced).await.expect("it never syncs");
}

#[test]
fn a_batch_that_is_too_large_is_refused_and_changes_nothing() {
    let place = Place::new();
    let store = place.open();
    let run = "r".repeat(1 << 20);
    let error = block_on(store.append(&run.into(), Position(0), batch(0..1_100))).unwrap_err();
    assert!(matches!(error, StoreError::Unserialisable { .. }), "{error:?}");
    assert!(error.to_string().contains("bytes at once"), "{error:?}");
    let StoreError::Unserialisable { source } = &error else { panic!("{error:?}") };
    let Some(WorkError::TooLarge { bytes, limit, .. }) = source.downcast_ref() else { panic!("{error:?}") };
    assert!(bytes > limit && *limit == 1 << 30, "{error:?}");
    assert!(block_on(ids(&store)).is_empty());
}

#[test]
fn calls_outside_of_a_runtime_are_answered() {
    let place = Place::new();
    let store = place.open();
    block_on(append(&store, "a", 0)).unwrap();
    assert_eq!(block_on(store.read(&"a".into(), Position(0), 10)).unwrap().len(), 2);
    drop(store);
    assert_eq!(StoreFile::open(&place.file).unwrap().read(&"a".into(), Position(1), 10).unwrap().len(), 1);
}
