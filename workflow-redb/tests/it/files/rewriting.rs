//! Files that need a rewrite after a failed sync, on the system's own file system: files beside them, kept properties,
//! and obstacles. Tests on an in-memory disk cover data loss.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use workflow_redb::{OpenError, RedbStore, StoreFile};

use crate::fixtures::{Place, ids, put};
use crate::limited;

/// A store with a run, closed, whose sync has failed in another process.
async fn unsynced() -> Place {
    let place = Place::new();
    put(&place.open(), "a", 0..3).await.unwrap();
    fs::write(mark(&place.file), "").unwrap();
    place
}

fn mark(file: &Path) -> PathBuf {
    file.with_extension("redb.unsynced")
}

fn copy(file: &Path) -> PathBuf {
    file.with_extension("redb.rewrite")
}

fn number(file: &Path) -> u64 {
    fs::metadata(file).unwrap().ino()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_marked_file_is_rewritten_when_it_is_opened_and_keeps_its_mode_and_what_is_in_it() {
    for mode in [0o600, 0o640] {
        let place = unsynced().await;
        fs::set_permissions(&place.file, Permissions::from_mode(mode)).unwrap();
        // The half-written file of an earlier rewrite.
        fs::write(copy(&place.file), "half").unwrap();
        let before = number(&place.file);
        let store = place.open();
        assert_ne!(number(&place.file), before);
        assert_eq!(fs::metadata(&place.file).unwrap().mode() & 0o777, mode);
        assert_eq!(names(place.folder.path()), ["runs.redb"]);
        assert_eq!(ids(&store).await, ["a"]);
        put(&store, "a", 3..4).await.unwrap();
        assert!(matches!(RedbStore::open(&place.file), Err(OpenError::InUse { .. })));
        drop(store);
        assert!(StoreFile::open(&place.file).unwrap().check().unwrap().is_sound());
    }
}

#[tokio::test]
async fn a_link_still_leads_to_a_file_that_was_rewritten() {
    let place = unsynced().await;
    let elsewhere = Place::new();
    symlink(&place.file, &elsewhere.file).unwrap();
    let before = number(&place.file);
    let store = elsewhere.open();
    assert_ne!(number(&place.file), before);
    assert!(fs::symlink_metadata(&elsewhere.file).unwrap().is_symlink());
    assert_eq!(names(place.folder.path()), ["runs.redb"]);
    assert_eq!(names(elsewhere.folder.path()), ["runs.redb"]);
    put(&store, "a", 3..4).await.unwrap();
    drop(store);
    assert_eq!(ids(&place.open()).await, ["a"]);
}

#[tokio::test]
async fn a_read_only_open_of_a_marked_file_does_not_change_it() {
    let place = unsynced().await;
    let before = place.bytes();
    let file = StoreFile::open(&place.file).unwrap();
    // A read-only open excludes a writer.
    assert!(matches!(RedbStore::open(&place.file), Err(OpenError::InUse { .. })));
    drop(file);
    assert!(place.bytes() == before);
    assert!(mark(&place.file).exists());
}

#[tokio::test]
async fn a_file_with_two_names_is_not_rewritten() {
    let place = unsynced().await;
    let other = place.folder.path().join("other.redb");
    fs::hard_link(&place.file, &other).unwrap();
    let error = RedbStore::open(&place.file).unwrap_err();
    let OpenError::NotRewritten { source, .. } = &error else { panic!("{error:?}") };
    let told = std::error::Error::source(&**source).unwrap().to_string();
    assert_eq!(told, "the file has 2 names (hard links): remove those that are not the store's");
    fs::remove_file(other).unwrap();
    assert_eq!(ids(&place.open()).await, ["a"]);
}

#[tokio::test]
async fn what_is_no_store_is_not_replaced() {
    let place = Place::new();
    fs::write(&place.file, "to do: everything").unwrap();
    fs::write(mark(&place.file), "").unwrap();
    let error = RedbStore::open(&place.file).unwrap_err();
    let OpenError::NotRewritten { source, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(&**source, OpenError::NotRedb { .. }), "{source:?}");
    assert_eq!(place.bytes(), b"to do: everything");
    assert_eq!(names(place.folder.path()), ["runs.redb", "runs.redb.unsynced"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_folder_that_may_not_be_written_is_told_and_the_file_is_rewritten_once_it_may() {
    let test =
        "files::rewriting::a_folder_that_may_not_be_written_is_told_and_the_file_is_rewritten_once_it_may";
    let Some(folder) = limited::folder() else {
        let place = unsynced().await;
        return limited::run(limited::to_permissions(), test, place.folder.path());
    };
    let file = folder.join("runs.redb");
    fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    let error = RedbStore::open(&file).unwrap_err();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(error.path(), file);
    let OpenError::NotRewritten { source, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(&**source, OpenError::Denied { path, .. } if *path == copy(&file)), "{source:?}");
    assert!(mark(&file).exists());
    assert_eq!(ids(&RedbStore::open(&file).unwrap()).await, ["a"]);
    assert!(!mark(&file).exists());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_disk_without_room_for_a_second_file_is_told_and_leaves_nothing_behind() {
    let test = "files::rewriting::a_disk_without_room_for_a_second_file_is_told_and_leaves_nothing_behind";
    let Some(folder) = limited::folder() else {
        let place = unsynced().await;
        put(&RedbStore::open(&place.file).unwrap(), "b", 0..5_000).await.unwrap();
        fs::write(mark(&place.file), "").unwrap();
        let blocks = u32::try_from(fs::metadata(&place.file).unwrap().len() / 512 / 2).unwrap();
        return limited::run(limited::to_blocks(blocks), test, place.folder.path());
    };
    let file = folder.join("runs.redb");
    let before = fs::read(&file).unwrap();
    let error = RedbStore::open(&file).unwrap_err();
    let OpenError::NotRewritten { source, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(&**source, OpenError::Full { path, .. } if *path == copy(&file)), "{source:?}");
    assert_eq!(names(&folder), ["runs.redb", "runs.redb.unsynced"]);
    assert!(fs::read(&file).unwrap() == before);
}
