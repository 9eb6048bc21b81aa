//! Scopes are independent of each other, and so are keys; any text of up to 1 KiB is a key.

use workflow_core::store::{ContextScope, ContextStore};
use workflow_core::{RunId, ThreadId};

use super::place::Place;
use crate::conformance::stage::run;

/// Keys that a store could take for each other.
pub(super) const ALIKE: [&str; 22] = [
    "", " ", "a", "A", "a ", " a", "ab", "a/b", "a.b", "a:b", "a%", "a_", "a*", "a'b", "a\"b", "a\\b",
    "a\0b", "a\nb", "ä", "a\u{308}", "日本", "🦀",
];

pub fn keys_of_a_scope_are_independent<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        keep_apart(
            ALIKE.map(|key| place.at_key(key)).to_vec(),
            "a key is any text, and keys are independent",
        )
        .await;
    });
}

pub fn scopes_are_independent<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        let stem = RunId::generate();
        let named = |name: &&str| place.in_scope(ContextScope::Run(format!("{stem}{name}").into()));
        keep_apart(ALIKE.iter().map(named).collect(), "scopes are independent, whatever their names").await;
    });
}

pub fn a_run_and_a_thread_of_one_name_are_two_scopes<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let (place, name) = (Place::new(&store), RunId::generate());
        let run = place.in_scope(ContextScope::Run(name.clone()));
        let thread = place.in_scope(ContextScope::Thread(ThreadId::new(name.as_str())));
        keep_apart(vec![run, thread], "a run and a thread are two scopes, even if they have one name").await;
    });
}

pub fn the_end_of_a_scope_is_not_the_beginning_of_a_key<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let (place, run) = (Place::new(&store), RunId::generate());
        for between in ["", "/", ":", ".", "-", "_", "|", "\0", " "] {
            let short = ContextScope::Run(run.clone());
            let long = ContextScope::Run(format!("{run}{between}a").into());
            let places = [
                place.in_scope(short).at_key(&format!("a{between}b{between}")),
                place.in_scope(long).at_key(&format!("b{between}")),
            ];
            keep_apart(places.to_vec(), "a scope and a key are two things, not one joined text").await;
        }
    });
}

pub fn keys_of_1_kib_are_told_apart_to_their_last_byte<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let (place, stem) = (Place::new(&store), "k".repeat(1023));
        let wide = "ä".repeat(512);
        let places = [format!("{stem}a"), format!("{stem}b"), stem, wide].map(|key| place.at_key(&key));
        keep_apart(places.to_vec(), "a key of up to 1 KiB is kept whole").await;
    });
}

/// Writes a different value to every place, then removes each, and asserts that the others do not change.
async fn keep_apart(places: Vec<Place>, demand: &str) {
    for (place, number) in places.iter().zip(0..) {
        assert_eq!(place.put(number).await, None, "{demand}: {:?} of {} is taken", place.key, place.scope);
    }
    for (place, number) in places.iter().zip(0..) {
        assert_eq!(place.read().await, Some(number), "{demand}: {:?} of {}", place.key, place.scope);
    }
    for (place, number) in places.iter().zip(0..) {
        assert_eq!(place.remove().await, Some(number), "{demand}: {:?} of {}", place.key, place.scope);
    }
}
