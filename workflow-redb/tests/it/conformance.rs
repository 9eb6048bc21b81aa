//! The store keeps the contracts of both of its traits.

use tempfile::TempDir;
use workflow_redb::RedbStore;

thread_local! {
    /// A folder for each test, which has a thread of its own.
    static FOLDER: TempDir = tempfile::tempdir().unwrap();
}

fn open() -> RedbStore {
    FOLDER.with(|folder| RedbStore::open(folder.path().join("runs.redb")).unwrap())
}

mod when_answered_on_disk {
    use super::open;

    workflow_testkit::event_store_conformance!(open);
    workflow_testkit::context_store_conformance!(open);
}
