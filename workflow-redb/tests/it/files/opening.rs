//! Opening files: which succeed, which are refused, and that refused ones stay unchanged.

use std::error::Error as _;
use std::fs;
use std::path::Path;

use redb::{Database, TableDefinition};
use workflow_core::store::{Position, RunQuery};
use workflow_redb::{OpenError, RedbStore, StoreFile};

use crate::fixtures::{Place, ids, put, text};

const META: TableDefinition<&[u8], &[u8]> = TableDefinition::new("workflow.meta");

/// Asserts that both ways of opening are refused, with the path in the error and the file unchanged.
fn refused(path: &Path) -> OpenError {
    let before = fs::read(path).unwrap();
    let error = RedbStore::open(path).unwrap_err();
    let to_read = StoreFile::open(path).unwrap_err();
    assert_eq!(to_read.to_string(), error.to_string());
    assert_eq!(error.path(), path);
    assert!(error.to_string().contains(path.to_str().unwrap()), "the error names the file: {error}");
    assert!(fs::read(path).unwrap() == before, "what is refused is not changed: {error}");
    error
}

#[tokio::test]
async fn what_was_written_is_there_when_the_file_is_opened_again() {
    let place = Place::new();
    put(&place.open(), "a", 0..3).await.unwrap();
    let store = place.open();
    assert_eq!(ids(&store).await, ["a"]);
    put(&store, "a", 3..4).await.unwrap();
}

#[test]
fn a_file_is_open_once_in_a_process() {
    let place = Place::new();
    let store = place.open();
    let error = RedbStore::open(&place.file).unwrap_err();
    assert!(matches!(&error, OpenError::InUse { path } if *path == place.file), "{error}");
    assert!(matches!(StoreFile::open(&place.file), Err(OpenError::InUse { .. })));
    drop(store);
    drop(place.open());
}

#[test]
fn a_reader_of_a_file_excludes_writers_only() {
    let place = Place::new();
    drop(place.open());
    let first = StoreFile::open(&place.file).unwrap();
    let second = StoreFile::open(&place.file).unwrap();
    assert!(first.runs(&RunQuery::new()).unwrap().is_empty());
    assert!(matches!(RedbStore::open(&place.file), Err(OpenError::InUse { .. })));
    drop((first, second));
    drop(place.open());
}

#[test]
fn looking_at_a_file_does_not_change_it() {
    let place = Place::new();
    drop(place.open());
    let before = place.bytes();
    let mut file = StoreFile::open(&place.file).unwrap();
    assert!(file.check().unwrap().is_sound());
    drop(file);
    assert!(place.bytes() == before);
}

#[tokio::test]
async fn a_file_that_was_not_closed_is_read_without_being_mended() {
    let place = Place::new();
    let store = place.open();
    put(&store, "a", 0..3).await.unwrap();
    let copy = place.folder.path().join("copy.redb");
    // The state after a crash at this moment.
    fs::copy(&place.file, &copy).unwrap();
    let before = fs::read(&copy).unwrap();
    let mut file = StoreFile::open(&copy).unwrap();
    assert_eq!(file.runs(&RunQuery::new()).unwrap().len(), 1);
    assert!(file.check().unwrap().is_sound());
    drop(file);
    assert!(fs::read(&copy).unwrap() == before);
    assert_eq!(ids(&RedbStore::open(&copy).unwrap()).await, ["a"]);
}

#[test]
fn a_file_of_something_else_is_refused() {
    let place = Place::new();
    fs::write(&place.file, "to do: everything").unwrap();
    assert!(matches!(refused(&place.file), OpenError::NotRedb { .. }));
    fs::write(&place.file, vec![0; 1 << 20]).unwrap();
    assert!(matches!(refused(&place.file), OpenError::NotRedb { .. }));
}

#[test]
fn a_redb_file_of_something_else_is_refused() {
    let place = Place::new();
    let database = Database::create(&place.file).unwrap();
    let transaction = database.begin_write().unwrap();
    let table: TableDefinition<u64, u64> = TableDefinition::new("prices");
    transaction.open_table(table).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(matches!(refused(&place.file), OpenError::Foreign { .. }));
}

#[test]
fn a_file_of_a_later_version_is_refused() {
    let place = Place::new();
    drop(place.open());
    let database = Database::open(&place.file).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert(&b"format"[..], &[0, 0, 0, 9][..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refused(&place.file);
    assert!(matches!(error, OpenError::Newer { found: 9, supported: 3, .. }), "{error}");
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let place = Place::new();
    put(&place.open(), "a", 0..200).await.unwrap();
    let whole = place.bytes();
    for length in [whole.len() - 1, whole.len() / 2, 5_000, 320, 100] {
        fs::write(&place.file, &whole[..length]).unwrap();
        let error = refused(&place.file);
        assert!(matches!(error, OpenError::Damaged { .. }), "{length} bytes: {error:?}");
        assert!(error.source().is_some(), "{length} bytes: {error:?}");
    }
}

#[tokio::test]
async fn damage_is_found_by_verifying_the_file() {
    let place = Place::new();
    put(&place.open(), "a", 0..2_000).await.unwrap();
    let mut bytes = place.bytes();
    let text = b"event_logged";
    let found = bytes.windows(text.len()).enumerate().filter(|(_, window)| window == text);
    let places: Vec<usize> = found.map(|(place, _)| place).collect();
    for place in places {
        bytes[place] ^= 1;
    }
    fs::write(&place.file, &bytes).unwrap();
    let verified = RedbStore::builder().verify(true).open(&place.file);
    assert!(matches!(verified, Err(OpenError::Damaged { .. })), "{verified:?}");
    let report = StoreFile::open(&place.file).unwrap().check().unwrap();
    assert!(!report.is_sound());
    assert!(report.problems[0].to_string().starts_with("the file is damaged"), "{report:?}");
}

/// The content of a file, if it is sound: a damaged one reports an error, or still has its original content.
fn everything(path: &Path) -> Option<String> {
    let mut file = StoreFile::open(path).ok()?;
    if !file.check().ok()?.is_sound() {
        return None;
    }
    let records = file.read(&"a".into(), Position(0), 1_000).ok()?;
    Some(format!("{:?} {}", file.runs(&RunQuery::new()).ok()?, text(&records)))
}

#[tokio::test]
async fn damage_is_found_or_does_no_harm() {
    let place = Place::new();
    put(&place.open(), "a", 0..300).await.unwrap();
    let (whole, intact) = (place.bytes(), everything(&place.file));
    assert!(intact.is_some());
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let mut rng = fastrand::Rng::with_seed(1);
    let mut found = 0;
    for round in 0..300 {
        let mut bytes = whole.clone();
        // Every byte of the header, where changes do most, and then random bytes.
        let at = if round < 150 { used[round] } else { used[rng.usize(..used.len())] };
        bytes[at] ^= 1 << rng.u8(..8);
        fs::write(&place.file, &bytes).unwrap();
        let read = everything(&place.file);
        assert!(read.is_none() || read == intact, "byte {at} was changed, and something else is read");
        found += usize::from(read.is_none());
        assert!(place.bytes() == bytes, "byte {at} was changed, and looking at the file changed more");
    }
    assert!(found > 100, "of 300 changes {found} were found");
}

#[test]
fn what_is_missing_is_created_unless_that_is_not_wanted() {
    let place = Place::new();
    let error = RedbStore::builder().create(false).open(&place.file).unwrap_err();
    assert!(matches!(error, OpenError::NotFound { .. }), "{error}");
    assert!(matches!(StoreFile::open(&place.file), Err(OpenError::NotFound { .. })));
    assert!(!place.file.exists());
    drop(place.open());
    drop(RedbStore::builder().create(false).open(&place.file).unwrap());
    let left: Vec<_> = fs::read_dir(place.folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing but the file is left of creating it: {left:?}");
}

#[test]
fn an_empty_file_becomes_a_store() {
    let place = Place::new();
    fs::write(&place.file, "").unwrap();
    assert!(matches!(StoreFile::open(&place.file), Err(OpenError::NotRedb { .. })));
    drop(place.open());
    assert!(StoreFile::open(&place.file).unwrap().check().unwrap().is_sound());
}

#[test]
fn a_missing_folder_and_a_folder_in_place_of_the_file_are_reported() {
    let place = Place::new();
    let error = RedbStore::open(place.folder.path().join("missing/runs.redb")).unwrap_err();
    assert!(matches!(error, OpenError::NotFound { .. }), "{error:?}");
    let error = RedbStore::open(place.folder.path()).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
    assert_eq!(error.source().unwrap().to_string(), "it is no regular file");
}
