//! Files and folders without read or write permission: errors, unchanged files, and other stores that continue.

use std::error::Error as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use workflow_core::store::{EventStore, Position};
use workflow_redb::{OpenError, RedbStore, StoreFile, WorkError};

use crate::fixtures::{Place, ids, put};
use crate::limited;

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The error contains the file and the system's reason.
fn names(error: &OpenError, file: &Path) {
    assert_eq!(error.path(), file);
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    assert!(error.source().is_some(), "{error:?}");
}

#[tokio::test]
async fn what_may_not_be_opened_is_told_and_other_stores_go_on() {
    let test = "system::permissions::what_may_not_be_opened_is_told_and_other_stores_go_on";
    let Some(folder) = limited::folder() else {
        return limited::run(limited::to_permissions(), test, Place::new().folder.path());
    };
    let (file, other) = (folder.join("runs.redb"), RedbStore::open(folder.join("other.redb")).unwrap());
    put(&RedbStore::open(&file).unwrap(), "a", 0..3).await.unwrap();
    let before = fs::read(&file).unwrap();

    allow(&file, 0o444);
    let error = RedbStore::open(&file).unwrap_err();
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error:?}");
    names(&error, &file);
    // Reading is allowed.
    assert!(StoreFile::open(&file).unwrap().check().unwrap().is_sound());

    allow(&file, 0o000);
    for error in [RedbStore::open(&file).unwrap_err(), StoreFile::open(&file).unwrap_err()] {
        assert!(matches!(error, OpenError::Denied { .. }), "{error:?}");
        names(&error, &file);
    }
    put(&other, "b", 0..2).await.unwrap();

    allow(&file, 0o644);
    assert!(fs::read(&file).unwrap() == before, "what is refused is not changed");
    assert_eq!(ids(&RedbStore::open(&file).unwrap()).await, ["a"]);
}

#[tokio::test]
async fn a_folder_that_may_not_be_written_or_entered_is_told() {
    let test = "system::permissions::a_folder_that_may_not_be_written_or_entered_is_told";
    let Some(folder) = limited::folder() else {
        return limited::run(limited::to_permissions(), test, Place::new().folder.path());
    };
    let inner = folder.join("inner");
    fs::create_dir(&inner).unwrap();
    let (file, new) = (inner.join("runs.redb"), inner.join("new.redb"));
    let store = RedbStore::open(&file).unwrap();
    put(&store, "a", 0..3).await.unwrap();

    allow(&inner, 0o555);
    let error = RedbStore::open(&new).unwrap_err();
    assert!(matches!(error, OpenError::Denied { .. }), "{error:?}");
    names(&error, &new);
    let error = store.snapshot(&new).await.unwrap_err();
    let WorkError::Snapshot { source, .. } = &error else { panic!("{error:?}") };
    names(source, &new);
    // Open stores and existing files can still be written.
    put(&store, "a", 3..4).await.unwrap();
    drop(store);
    let store = RedbStore::open(&file).unwrap();
    put(&store, "a", 4..5).await.unwrap();

    allow(&inner, 0o000);
    put(&store, "a", 5..6).await.unwrap();
    assert_eq!(store.read(&"a".into(), Position(0), 10).await.unwrap().len(), 6);
    drop(store);
    let error = RedbStore::open(&file).unwrap_err();
    assert!(matches!(error, OpenError::Denied { .. }), "{error:?}");
    names(&error, &file);

    allow(&inner, 0o755);
    assert_eq!(ids(&RedbStore::open(&file).unwrap()).await, ["a"]);
    assert!(!new.exists());
}
