//! Listings of contexts from a file: contents written before it was closed, short pages, and nothing damaged.

use redb::{Database, TableDefinition};
use workflow_core::errors::ContextError;
use workflow_core::store::{ContextScope, ContextStore, ContextValue};
use workflow_redb::RedbStore;

use crate::fixtures::Place;

const CONTEXTS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("workflow.contexts");

fn scope() -> ContextScope {
    ContextScope::Thread("t".into())
}

async fn put(store: &RedbStore, key: &str, value: String) {
    store.set(&scope(), key, Some(ContextValue::new(value))).await.unwrap();
}

async fn keys(store: &RedbStore, after: Option<&str>) -> Result<Vec<String>, ContextError> {
    let page = store.list(&scope(), after, 100).await?;
    Ok(page.into_iter().map(|(key, _)| key).collect())
}

#[tokio::test]
async fn a_list_has_what_was_written_before_the_file_was_closed() {
    let place = Place::new();
    put(&place.open(), "k", "kept".into()).await;
    let listed = place.open().list(&scope(), None, 100).await.unwrap();
    let texts: Vec<_> = listed.iter().map(|(key, value)| (&**key, value.get::<String>().unwrap())).collect();
    assert_eq!(texts, [("k", "kept".to_owned())]);
}

#[tokio::test]
async fn a_page_ends_after_16_mib_and_the_next_one_continues() {
    let place = Place::new();
    let store = place.open();
    for key in ["a", "b", "c"] {
        put(&store, key, "x".repeat(9 << 20)).await;
    }
    assert_eq!(keys(&store, None).await.unwrap(), ["a", "b"]);
    assert_eq!(keys(&store, Some("b")).await.unwrap(), ["c"]);
}

#[tokio::test]
async fn a_value_that_cannot_be_read_is_an_error_and_in_the_way_of_no_page_behind_it() {
    let place = Place::new();
    let store = place.open();
    for key in ["a", "b", "c"] {
        put(&store, key, key.to_owned()).await;
    }
    drop(store);
    let damaged = Database::open(&place.file).unwrap();
    let transaction = damaged.begin_write().unwrap();
    transaction.open_table(CONTEXTS).unwrap().insert(&b"\x01\0\0\0\x01tb"[..], &b"[1"[..]).unwrap();
    transaction.open_table(CONTEXTS).unwrap().insert(&b"\x01\0\0\0\x01tc\xff"[..], &b"1"[..]).unwrap();
    transaction.commit().unwrap();
    drop(damaged);
    let store = place.open();
    // The page before the damaged key ends early, and the next one reports the key.
    assert_eq!(keys(&store, None).await.unwrap(), ["a"]);
    let error = keys(&store, Some("a")).await.unwrap_err();
    let ContextError::Unavailable { source } = &error else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "the value `b` of the context cannot be decoded");
    // A key that is no text is not listed.
    assert_eq!(keys(&store, Some("b")).await.unwrap(), ["c"]);
}

#[tokio::test]
async fn contexts_that_have_something_are_listed_once_page_by_page() {
    let place = Place::new();
    let store = place.open();
    let run = |id: &str| ContextScope::Run(id.into());
    let value = || Some(ContextValue::new(1));
    // With several values, with none left, and with ids of several lengths.
    for (scope, key) in [(run("b"), "k"), (run("b"), "l"), (run("aa"), "k"), (run("c"), "k"), (scope(), "k")]
    {
        store.set(&scope, key, value()).await.unwrap();
    }
    store.clear(&run("c")).await.unwrap();
    for at_most in [0, 1, 2, 9] {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = store.scopes(after.as_ref(), at_most).await.unwrap();
            assert!(page.len() <= at_most.max(1));
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            listed.extend(page);
        }
        assert_eq!(listed, [run("b"), run("aa"), scope()]);
    }
    // A cleared context is still a valid place to continue from.
    assert_eq!(store.scopes(Some(&run("c")), 1).await.unwrap(), [run("aa")]);
}

/// Makes a key smaller than its predecessors in the leaf, but not in the branch pages.
fn misplace(bytes: &mut [u8], thread: u8) {
    const PAGE: usize = 4096;
    const LEAF: u8 = 1;
    let key = [1, 0, 0, 0, 1, thread, b'k'];
    for page in bytes.chunks_mut(PAGE).filter(|page| page[0] == LEAF) {
        while let Some(at) = page.windows(key.len()).position(|part| part == key) {
            page[at] = 0;
        }
    }
}

#[tokio::test]
async fn a_list_of_contexts_whose_keys_are_out_of_order_ends_with_an_error() {
    let place = Place::new();
    let store = place.open();
    for thread in ["a", "b", "c", "d", "e", "f"] {
        let value = ContextValue::new("x".repeat(3_000));
        store.set(&ContextScope::Thread(thread.into()), "k", Some(value)).await.unwrap();
    }
    drop(store);
    let mut bytes = place.bytes();
    misplace(&mut bytes, b'd');
    misplace(&mut bytes, b'e');
    std::fs::write(&place.file, bytes).unwrap();
    let (store, mut after) = (place.open(), None);
    for _ in 0..100 {
        match store.scopes(after.as_ref(), 1).await {
            Ok(page) => after = page.last().cloned(),
            Err(error) => {
                let ContextError::Unavailable { source } = &error else { panic!("{error:?}") };
                return assert!(format!("{source:?}").contains("out of order"), "{source:?}");
            }
        }
    }
    panic!("the list goes on behind {after:?}");
}
