//! The store passes the conformance suites of both its traits.

use std::cell::OnceCell;
use std::time::Duration;

use tempfile::TempDir;
use workflow_redb::{Durability, RedbStore};

use crate::fixtures::Place;

thread_local! {
    /// A folder for each test, which has a thread of its own.
    static PLACE: Place = Place::new();

    /// A store for each test, with its folder.
    static SHARED: OnceCell<(RedbStore, TempDir)> = const { OnceCell::new() };
}

fn open() -> RedbStore {
    PLACE.with(Place::open)
}

fn open_buffered() -> RedbStore {
    let builder = RedbStore::builder().durability(Durability::Buffered(Duration::from_millis(1)));
    PLACE.with(|place| builder.open(&place.file).unwrap())
}

fn handle() -> RedbStore {
    let open = || {
        let Place { folder, file } = Place::new();
        (RedbStore::open(file).unwrap(), folder)
    };
    SHARED.with(|shared| shared.get_or_init(open).0.clone())
}

mod answered_on_disk {
    use super::open;

    workflow_testkit::event_store_conformance!(open);
    workflow_testkit::context_store_conformance!(open);
}

mod answered_before {
    use super::open_buffered;

    workflow_testkit::event_store_conformance!(open_buffered);
    workflow_testkit::context_store_conformance!(open_buffered);
}

mod by_two_handles {
    use super::handle;

    workflow_testkit::event_store_conformance!(handle, reopen = handle);
}
