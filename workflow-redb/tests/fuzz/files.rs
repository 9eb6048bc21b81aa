//! Files of redb with changed bytes, truncated and spliced: opened, listed, read, checked, written to and copied.

use std::error::Error;
use std::path::Path;
use std::sync::OnceLock;

use futures::executor::block_on;
use redb::StorageBackend as _;
use redb::backends::InMemoryBackend;
use workflow_core::RunStatus;
use workflow_core::errors::ContextError;
use workflow_core::store::{
    ContextScope, ContextStore, ContextValue, EventStore, Inbox, InboxMessage, Position, Retention,
    RunMessage, RunQuery, StoreError,
};
use workflow_redb::{RedbStore, StoreFile, WorkError};

use crate::fixtures::{Place, batch, moment, put, put_ended};
use crate::watchdog::Watchdog;
use crate::{Edit, INPUTS, TIME, few, pick};

/// The maximum number of pages of a listing: more than a file has, and enough to detect an endless listing.
const PAGES: usize = 1_000;

/// A file of some runs and contexts, closed and open, and the places where it is not zero.
struct Valid {
    bytes: Vec<u8>,
    used: Vec<usize>,
}

fn valid() -> &'static [Valid; 2] {
    static VALID: OnceLock<[Valid; 2]> = OnceLock::new();
    VALID.get_or_init(|| {
        let place = Place::new();
        let store = place.open();
        block_on(fill(&store));
        let open = place.bytes();
        drop(store);
        [open, place.bytes()].map(|bytes| {
            let used = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
            Valid { bytes, used }
        })
    })
}

async fn fill(store: &RedbStore) {
    let names: Vec<String> = (0..6).map(|number| format!("run-{number}")).collect();
    // Interleaved, so that some batches are among the recent ones.
    for round in 0..3 {
        let puts = names.iter().map(|run| put(store, run, 4 * round..4 * round + 4));
        futures::future::join_all(puts).await;
    }
    put(store, "long", 0..300).await.unwrap();
    put_ended(store, "ended", RunStatus::Completed).await;
    for scope in [ContextScope::Run("run-1".into()), ContextScope::Thread("user-4".into())] {
        for number in 0..20 {
            let value = ContextValue::new(format!("value {number}"));
            store.set(&scope, &format!("key-{number}"), Some(value)).await.unwrap();
        }
    }
    for number in 0..20 {
        store.put_message("run-1", message(number)).await.unwrap();
        store.put_message("run-2", message(number)).await.unwrap();
        store.settle(&"run-2".into(), &message(number), Err("no".to_owned())).await.unwrap();
    }
}

fn message(number: u64) -> InboxMessage {
    let event = RunMessage::Send { event: "Note".into(), data: number.into() };
    InboxMessage::new(number.to_string(), event, moment())
}

/// Most edits hit used bytes, some of them in the header, where they do most.
fn edited(start: bool, edits: &[Edit]) -> Vec<u8> {
    let valid = &valid()[usize::from(start)];
    let mut bytes = valid.bytes.clone();
    for (kind, at, to, with) in few(edits) {
        let used = valid.used[pick(*at, valid.used.len())];
        let (at, to) = match kind % 8 {
            0 => (pick(*at, 320), pick(*to, 320)),
            1 | 2 => (pick(*at, valid.bytes.len()), pick(*to, valid.bytes.len())),
            _ => (used, valid.used[pick(*to, valid.used.len())]),
        };
        let (at, to) = (at.min(bytes.len()), to.min(bytes.len()));
        match kind / 8 % 6 {
            0 | 1 => flip(&mut bytes, at, *with),
            2 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = *with),
            // Whole pages trade places.
            3 => splice(&mut bytes, at & !4095, to & !4095, 4096),
            4 => splice(&mut bytes, at, to, usize::from(*with)),
            _ => bytes.truncate(if *with < 16 { at } else { bytes.len() }),
        }
    }
    bytes
}

fn flip(bytes: &mut [u8], at: usize, with: u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << (with % 8);
    }
}

fn splice(bytes: &mut [u8], from: usize, to: usize, length: usize) {
    let length = length.min(bytes.len().saturating_sub(from.max(to)));
    bytes.copy_within(from..from + length, to);
}

/// The store's thread still runs: its only panics are caught ones.
fn is_typed(error: &(dyn Error + 'static)) {
    let mut next = Some(error);
    while let Some(error) = next {
        assert!(
            !matches!(error.downcast_ref(), Some(WorkError::Closed { .. })),
            "the store's thread is gone"
        );
        next = error.source();
    }
    assert!(!error.to_string().is_empty());
}

pub(crate) fn typed<T>(result: Result<T, impl Error + 'static>) -> Option<T> {
    result.inspect_err(|error| is_typed(error)).ok()
}

pub(crate) fn look_at(path: &Path) {
    let Some(mut file) = typed(StoreFile::open(path)) else { return };
    let mut query = RunQuery::new().at_most(3);
    for _ in 0..PAGES {
        let Some(page) = typed(file.runs(&query)) else { break };
        let Some(last) = page.last() else { break };
        query = RunQuery::new().at_most(3).after(last.id.clone());
        for stored in &page {
            typed(file.run(&stored.id));
            read_all(|from| file.read(&stored.id, from, 7));
        }
    }
    typed(file.pending_messages(None, 1_000));
    typed(file.refused_messages());
    typed(file.check());
}

fn read_all(read: impl Fn(Position) -> Result<Vec<workflow_core::store::Record>, StoreError>) {
    let mut from = Position(0);
    for _ in 0..PAGES {
        let Some(page) = typed(read(from)) else { break };
        if page.is_empty() {
            break;
        }
        from = from.after(page.len());
    }
}

pub(crate) async fn use_store(store: &RedbStore, copy: &Path) {
    let runs = typed(store.runs(&RunQuery::new()).await).unwrap_or_default();
    typed(store.runs(&RunQuery::new().open()).await);
    for stored in &runs {
        typed(store.read(&stored.id, Position(0), 1_000).await);
        let end = stored.end.0;
        if end < 1 << 40 {
            typed(store.append(&stored.id, stored.end, batch(end..end + 2)).await);
        }
    }
    list_scopes(store).await;
    for scope in [ContextScope::Run("run-1".into()), ContextScope::Thread("user-4".into())] {
        list_all(store, &scope).await;
        typed(store.set(&scope, "key-3", Some(ContextValue::new(7))).await);
        typed(store.clear(&scope).await);
    }
    use_inbox(store).await;
    typed(store.check().await);
    typed(store.snapshot(copy).await);
    typed(store.remove(&"long".into()).await);
    typed(store.retain(&Retention::none()).await);
    typed(store.compact().await);
}

/// What was settled is pending no more, for any damage.
async fn use_inbox(store: &RedbStore) {
    typed(store.refused_messages().await);
    typed(store.put_message("run-1", message(21)).await);
    let run = "run-1".into();
    for page in 0.. {
        assert!(page < PAGES, "the messages of a run have no end");
        let Some(messages) = typed(store.pending(&run, 3).await) else { break };
        let Some(first) = messages.first() else { break };
        if typed(store.settle(&run, first, Err("no".to_owned())).await).is_none() {
            break;
        }
    }
}

/// A listing of contexts ends, for any damage of the table.
async fn list_scopes(store: &RedbStore) {
    let mut after = None;
    for page in 0.. {
        assert!(page < PAGES, "the list of contexts has no end");
        let Some(scopes) = typed(store.scopes(after.as_ref(), 3).await) else { break };
        let Some(last) = scopes.last() else { break };
        after = Some(last.clone());
    }
}

async fn list_all(store: &RedbStore, scope: &ContextScope) {
    let mut after = None::<String>;
    for _ in 0..PAGES {
        let page: Result<_, ContextError> = store.list(scope, after.as_deref(), 3).await;
        let Some(page) = typed(page) else { break };
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
    }
}

fn survives(start: bool, edits: &[Edit]) -> bool {
    survives_bytes(&edited(start, edits), &Place::new())
}

/// Performs every operation on the bytes; returns whether a store could be opened.
fn survives_bytes(bytes: &[u8], place: &Place) -> bool {
    std::fs::write(&place.file, bytes).unwrap();
    look_at(&place.file);
    assert!(place.bytes() == bytes, "looking at a file changes it");
    let memory = InMemoryBackend::new();
    memory.set_len(bytes.len() as u64).unwrap();
    memory.write(0, bytes).unwrap();
    let store = typed(RedbStore::builder().open_backend("memory", memory));
    if let Some(store) = &store {
        block_on(use_store(store, &place.folder.path().join("copy.redb")));
    }
    store.is_some()
}

#[test]
fn a_file_that_was_changed_is_read_or_refused() {
    let check = bolero::check!().with_iterations(INPUTS).with_test_time(TIME);
    let watchdog = Watchdog::of("pages of files");
    check.with_type::<(bool, Vec<Edit>)>().for_each(|input| {
        let (start, edits) = input;
        watchdog.watch(input, || survives(*start, edits));
    });
}
