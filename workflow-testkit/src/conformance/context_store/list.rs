//! Checks of `list`: its entries, their order and its pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::task::{JoinSet, yield_now};
use workflow_core::store::{ContextScope, ContextStore, ContextValue};
use workflow_core::{RunId, ThreadId};

use super::keys::ALIKE;
use super::place::{Number, Place};
use crate::conformance::stage::run;

/// More than any scope has here.
const ALL: usize = 1_000;

/// The number of keys that stay while others come and go, and the least number of changes and of listings.
const STAYING: Number = 20;
const GOING: u32 = 50;
const LISTS: u32 = 20;
const WRITERS: Number = 3;

/// How often a scope is cleared while it is listed.
const CLEARS: u32 = 20;

type Entries = Vec<(String, Number)>;

pub fn a_list_has_every_key_with_its_value_in_the_order_of_their_bytes<S: ContextStore>(
    open: impl FnOnce() -> S,
) {
    run(open, |store| async move {
        let place = Place::new(&store);
        // The last two change places where the order is that of UTF-16.
        let keys = ALIKE.into_iter().chain(["aa", "abc", "b", "\u{fffd}", "\u{10ffff}"]);
        let mut expected: Entries = keys.map(str::to_owned).zip(0..).collect();
        for (key, number) in &expected {
            place.at_key(key).put(*number).await;
        }
        expected.sort_unstable_by(|(one, _), (other, _)| one.as_bytes().cmp(other.as_bytes()));
        let demand = "`list` has every key with its value, in the order of the bytes of the keys";
        assert_eq!(pages(&place, ALL).await, expected, "{demand}");
    });
}

pub fn pages_follow_each_other_without_a_gap<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        let expected = put_all(&place, &["", "a", "ab", "abc", "b", "ä", "🦀"]).await;
        for at_most in [0, 1, 2, 3, 6, 7, 8, ALL, usize::MAX] {
            let listed = pages(&place, at_most).await;
            let demand = "each page goes on where the one before it ended";
            assert_eq!(listed, expected, "{demand}, in pages of {at_most}");
        }
    });
}

pub fn a_page_begins_after_a_key_that_need_not_be_there<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        let expected = put_all(&place, &["", "b", "bb", "d", "ä"]).await;
        place.at_key("c").put(7).await;
        place.at_key("c").remove().await;
        let afters = ["", "a", "b", "ba", "bb", "bbb", "c", "d", "z", "ä", "äa", "🦀"];
        for after in afters {
            let expected: Entries = expected.iter().filter(|(key, _)| **key > *after).cloned().collect();
            let demand = "a page begins after a key, be it there or not";
            assert_eq!(place.list(Some(after), ALL).await, expected, "{demand}: after {after:?}");
        }
    });
}

pub fn a_list_has_nothing_of_other_scopes<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let (place, run) = (Place::new(&store), RunId::generate());
        let name = run.as_str();
        let names = [name, &format!("{name}2"), &format!("{name}/a"), &format!("{name}\0"), &name[1..]];
        let mut scopes = names.map(|name| ContextScope::Run(name.into())).to_vec();
        scopes.push(ContextScope::Thread(ThreadId::new(name)));
        for (scope, number) in scopes.iter().zip(0..) {
            place.in_scope(scope.clone()).at_key(&format!("{number}")).put(number).await;
            place.in_scope(scope.clone()).at_key("shared").put(number).await;
        }
        for (scope, number) in scopes.iter().zip(0..) {
            let listed = pages(&place.in_scope(scope.clone()), 1).await;
            let expected = [(number.to_string(), number), ("shared".to_owned(), number)];
            assert_eq!(listed, expected, "`list` has nothing of other scopes than {scope}");
        }
    });
}

pub fn a_scope_that_has_nothing_lists_nothing<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        lists_nothing(&place, "was never used").await;
        place.put(1).await;
        place.remove().await;
        lists_nothing(&place, "lost its last value to a `set`").await;
        place.put(1).await;
        place.change(|_| None).await;
        lists_nothing(&place, "lost its last value to an `update`").await;
        put_all(&place, &["a", "b", "c"]).await;
        place.clear().await;
        lists_nothing(&place, "was cleared").await;
    });
}

async fn lists_nothing(place: &Place, why: &str) {
    for after in [None, Some("a")] {
        assert_eq!(place.list(after, ALL).await, [], "a scope that {why} lists nothing");
    }
}

pub fn a_list_has_what_was_set_and_not_what_was_removed<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        put_all(&place, &["a", "b", "c", "d", "e"]).await;
        place.at_key("b").remove().await;
        place.at_key("c").increment().await;
        place.at_key("d").change(|_| None).await;
        place.at_key("e").put(9).await;
        let expected = [("a", 0), ("c", 3), ("e", 9)].map(|(key, number)| (key.to_owned(), number));
        let demand = "`list` has what is there, as it was written last, and not what was removed";
        assert_eq!(place.list(None, ALL).await, expected, "{demand}");
    });
}

pub fn a_value_that_is_null_is_listed<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put_value(Some(ContextValue::new(()))).await;
        let listed = place.list_values(None, ALL).await;
        let keys: Vec<&str> = listed.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, [&*place.key], "`list` has a value that is null: that is not the same as no value");
    });
}

pub fn a_list_changes_nothing<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        let expected = put_all(&place, &["a", "b"]).await;
        for _ in 0..2 {
            assert_eq!(place.list(None, ALL).await, expected, "`list` changes nothing: it can be repeated");
        }
        assert_eq!(place.at_key("b").read().await, Some(1), "`list` changes nothing: a value is still there");
    });
}

pub fn writes_between_two_pages_do_not_move_what_is_listed<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        put_all(&place, &["b", "c", "d", "e", "f", "g"]).await;
        assert_eq!(keys(&place.list(None, 2).await), ["b", "c"], "a page has as much as was asked for");
        // Before the next page, one key is new and two are gone.
        place.at_key("a").put(0).await;
        let demand = "a key that stays is listed once, whatever is set or removed between two pages";
        assert_eq!(keys(&place.list(Some("c"), 2).await), ["d", "e"], "{demand}");
        for gone in ["a", "b", "e"] {
            place.at_key(gone).remove().await;
        }
        assert_eq!(keys(&place.list(Some("e"), 2).await), ["f", "g"], "{demand}");
    });
}

pub fn pages_that_are_read_during_writes_have_each_key_once<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        for number in 0..STAYING {
            place.at_key(&staying(number)).put(number).await;
        }
        let (mut writers, others) = (JoinSet::new(), Arc::<Others>::default());
        for writer in 0..WRITERS {
            writers.spawn(come_and_go(place.clone(), writer, Arc::clone(&others)));
        }
        let expected: Vec<String> = (0..STAYING).map(staying).collect();
        let mut lists = 0;
        while lists < LISTS || others.gone.load(Ordering::Relaxed) < GOING {
            lists += 1;
            let mut listed = pages(&place, 3).await;
            listed.retain(|(key, _)| key.ends_with("stays"));
            let demand = "a key that stays is listed once, whatever is written meanwhile";
            assert_eq!(keys(&listed), expected, "{demand}");
        }
        others.is_over.store(true, Ordering::Relaxed);
        writers.join_all().await;
    });
}

/// The keys that come and go.
#[derive(Default)]
struct Others {
    gone: AtomicU32,
    is_over: AtomicBool,
}

fn staying(number: Number) -> String {
    format!("{number:02} stays")
}

/// Sets and removes keys between those that stay, and changes their values.
async fn come_and_go(place: Place, writer: Number, others: Arc<Others>) {
    let numbers = (0..STAYING).cycle().skip(usize::try_from(writer).unwrap_or_default());
    for number in numbers {
        if others.is_over.load(Ordering::Relaxed) {
            return;
        }
        let other = place.at_key(&format!("{number:02} goes, of {writer}"));
        other.put(number).await;
        place.at_key(&staying(number)).increment().await;
        other.remove().await;
        others.gone.fetch_add(1, Ordering::Relaxed);
        yield_now().await;
    }
}

pub fn a_list_has_all_that_is_cleared_or_nothing_of_it<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        for _ in 0..CLEARS {
            let all = put_all(&place, &["a", "b", "c", "d", "e"]).await;
            let clearing = place.clone();
            let cleared = tokio::spawn(async move { clearing.clear().await });
            while !cleared.is_finished() {
                let listed = place.list(None, ALL).await;
                let demand = "a page shows one moment: all that a `clear` removes, or nothing of it";
                assert!(listed == all || listed.is_empty(), "{demand}, but it has {:?}", keys(&listed));
                yield_now().await;
            }
            cleared.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        }
    });
}

/// Gives each of these keys a value of its own. They are in order.
async fn put_all(place: &Place, keys: &[&str]) -> Entries {
    let entries: Entries = keys.iter().map(ToString::to_string).zip(0..).collect();
    for (key, number) in &entries {
        place.at_key(key).put(*number).await;
    }
    entries
}

/// Reads a whole scope page by page, and asserts that each is a valid page.
async fn pages(place: &Place, at_most: usize) -> Entries {
    let mut all = Entries::new();
    loop {
        let after = all.last().map(|(key, _)| key.clone());
        let page = place.list(after.as_deref(), at_most).await;
        if page.is_empty() {
            return all;
        }
        yield_now().await;
        assert!(page.len() <= at_most.max(1), "a page of at most {at_most} has {} keys", page.len());
        all.extend(page);
        let is_in_order = all.is_sorted_by(|(one, _), (other, _)| one.as_bytes() < other.as_bytes());
        let demand = "keys are listed in the order of their bytes, each after the last of the page before";
        assert!(is_in_order, "{demand}, and not {:?}", keys(&all));
    }
}

fn keys(entries: &[(String, Number)]) -> Vec<&str> {
    entries.iter().map(|(key, _)| &**key).collect()
}
