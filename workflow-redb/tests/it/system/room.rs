//! Files that may not grow and real full disks: the errors, the unaffected operations, and the recovery once there is
//! room.

use std::fs;
use std::path::Path;
use std::process::Command;

use workflow_core::RunStatus;
use workflow_core::store::{EventStore, Position, Retention, StoreError};
use workflow_redb::{OpenError, RedbStore, StoreFile, WorkError};

use crate::fixtures::{Place, batch, ids, put, put_ended};
use crate::limited;

/// The maximum file size: 4 MiB.
const BLOCKS: u32 = 8_192;

/// The maximum number of records that fit into the file.
const MOST: u64 = 1_000_000;

/// An existing file on the full disk, to be removed for room; set by `ci/full-disk`.
const FILLER: &str = "WORKFLOW_REDB_FILLER";

#[tokio::test]
async fn a_full_disk_is_told_and_the_store_goes_on_when_there_is_room() {
    let test = "system::room::a_full_disk_is_told_and_the_store_goes_on_when_there_is_room";
    let Some(folder) = limited::folder() else {
        return limited::run(limited::to_blocks(BLOCKS), test, Place::new().folder.path());
    };
    fills_up(&folder).await;
}

async fn fills_up(folder: &Path) {
    let (file, elsewhere) = (folder.join("runs.redb"), Place::new());
    let (store, other) = (RedbStore::open(&file).unwrap(), elsewhere.open());
    put(&store, "small", 0..2).await.unwrap();
    put(&other, "b", 0..2).await.unwrap();

    let kept = until_it_is_full(&store, &file).await;
    assert!(kept > 0);
    // Confirmed records are there, others are not, and reads work although writes fail.
    assert_eq!(store.read(&"a".into(), Position(kept - 1), 2).await.unwrap().len(), 1);
    assert_eq!(ids(&store).await, ["a", "small"]);
    put(&other, "b", 2..3).await.unwrap();
    assert_eq!(other.read(&"b".into(), Position(0), 10).await.unwrap().len(), 3);

    make_room();
    put(&store, "a", kept..kept + 2_000).await.unwrap();
    put(&store, "small", 2..3).await.unwrap();
    assert!(store.check().await.unwrap().is_sound());
    drop(store);
    let mut file = StoreFile::open(&file).unwrap();
    assert!(file.check().unwrap().is_sound());
    assert_eq!(file.run(&"a".into()).unwrap().unwrap().end, Position(kept + 2_000));
}

#[tokio::test]
async fn on_a_full_disk_ended_runs_can_be_removed_and_the_file_made_smaller() {
    let test = "system::room::on_a_full_disk_ended_runs_can_be_removed_and_the_file_made_smaller";
    let Some(folder) = limited::folder() else {
        return limited::run(limited::to_blocks(BLOCKS), test, Place::new().folder.path());
    };
    for reopens in [false, true] {
        let file = folder.join(format!("{reopens}.redb"));
        let mut store = RedbStore::open(&file).unwrap();
        for run in 0..300 {
            put_ended(&store, &format!("ended-{run:03}"), RunStatus::Completed).await;
        }
        let kept = until_it_is_full(&store, &file).await;
        if reopens {
            drop(store);
            store = RedbStore::open(&file).unwrap();
        }
        let full = fs::metadata(&file).unwrap().len();
        assert_eq!(store.retain(&Retention::none()).await.unwrap(), 300, "reopened: {reopens}");
        assert_eq!(ids(&store).await, ["a"]);
        while store.compact().await.unwrap() {}
        let compact = fs::metadata(&file).unwrap().len();
        assert!(compact < full, "reopened: {reopens}, {full} bytes, then {compact}");
        put(&store, "a", kept..kept + 10).await.unwrap();
        assert!(store.check().await.unwrap().is_sound());
        drop(store);
        fs::remove_file(&file).unwrap();
    }
}

/// Appends until there is no room, and returns the number of confirmed records of `a`.
async fn until_it_is_full(store: &RedbStore, file: &Path) -> u64 {
    let mut kept = 0;
    while kept < MOST {
        let Err(error) = store.append(&"a".into(), Position(kept), batch(kept..kept + 500)).await else {
            kept += 500;
            continue;
        };
        let StoreError::Unavailable { source } = &error else { panic!("{error:?}") };
        let work = source.downcast_ref::<WorkError>().unwrap();
        assert!(matches!(work, WorkError::Full { .. }), "{work:?}");
        assert_eq!(
            work.to_string(),
            format!(
                "there is no room for `{}` to grow: make some, or remove ended runs and compact it",
                file.display()
            )
        );
        assert!(std::error::Error::source(work).is_some(), "the cause is named: {work:?}");
        return kept;
    }
    panic!("there is room for {MOST} records");
}

fn make_room() {
    if let Some(filler) = std::env::var_os(FILLER) {
        return fs::remove_file(filler).unwrap();
    }
    let process = std::process::id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &process, "--fsize=unlimited:"]).status();
    assert!(raised.as_ref().is_ok_and(std::process::ExitStatus::success), "prlimit: {raised:?}");
}

#[test]
fn a_file_for_which_there_is_no_room_is_not_created() {
    let test = "system::room::a_file_for_which_there_is_no_room_is_not_created";
    let Some(folder) = limited::folder() else {
        return limited::run(limited::to_blocks(16), test, Place::new().folder.path());
    };
    let file = folder.join("runs.redb");
    let error = RedbStore::open(&file).unwrap_err();
    assert!(matches!(&error, OpenError::Full { path, .. } if *path == file), "{error:?}");
    assert_eq!(error.to_string(), format!("there is no room for `{}`", file.display()));
    let left: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_snapshot_for_which_there_is_no_room_is_not_there_and_the_store_goes_on() {
    let test = "system::room::a_snapshot_for_which_there_is_no_room_is_not_there_and_the_store_goes_on";
    let Some(folder) = limited::folder() else {
        let place = Place::new();
        let store = place.open();
        put(&store, "a", 0..5_000).await.unwrap();
        drop(store);
        let length = fs::metadata(&place.file).unwrap().len();
        return limited::run(
            limited::to_blocks(u32::try_from(length / 512 / 4).unwrap()),
            test,
            place.folder.path(),
        );
    };
    let store = RedbStore::open(folder.join("runs.redb")).unwrap();
    let to = folder.join("backup.redb");
    let error = store.snapshot(&to).await.unwrap_err();
    let WorkError::Snapshot { source, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(&**source, OpenError::Full { path, .. } if *path == to), "{error:?}");
    assert_eq!(store.read(&"a".into(), Position(4_999), 2).await.unwrap().len(), 1);
    let left: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
