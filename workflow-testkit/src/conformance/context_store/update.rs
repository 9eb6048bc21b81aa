//! Checks of `update` and the change function it receives, with one caller at a time.

use std::panic::resume_unwind;
use std::time::Duration;

use workflow_core::errors::ContextError;
use workflow_core::store::{ContextStore, ContextValue};

use super::place::{Place, number};
use crate::conformance::stage::{Elsewhere, PATIENCE, run};

pub fn an_update_hands_the_value_to_its_change_and_returns_what_it_stored<S: ContextStore>(
    open: impl FnOnce() -> S,
) {
    run(open, |store| async move {
        let place = Place::new(&store);
        assert_eq!(place.increment().await, Some(1), "`change` is given `None` where there is no value");
        assert_eq!(place.increment().await, Some(2), "`change` is given the value that is there");
        assert_eq!(place.read().await, Some(2), "what `update` returned is what is stored");
    });
}

pub fn an_update_to_none_removes_the_value<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        assert_eq!(place.change(|_| None).await, None, "an update from nothing to nothing is no error");
        assert_eq!(place.read().await, None, "an update from nothing to nothing stores nothing");
        place.put(1).await;
        assert_eq!(place.change(|_| None).await, None, "`update` returns `None` if that is what is stored");
        assert_eq!(place.read().await, None, "a change to `None` removes the value");
    });
}

pub fn a_change_that_fails_leaves_everything_as_it_was<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        fail(&place).await;
        assert_eq!(place.read().await, None, "a change that fails stores nothing where there was nothing");
        place.put(1).await;
        fail(&place).await;
        assert_eq!(place.read().await, Some(1), "a change that fails leaves the value that was there");
        assert_eq!(place.increment().await, Some(2), "after a change that failed the key can be used");
    });
}

async fn fail(place: &Place) {
    let mut change = |_| Err(ContextError::Overflow { key: "of this change".into(), value: 17, by: 4 });
    let error = place.store.update(&place.scope, &place.key, &mut change).await.map(number);
    let is_its_own = matches!(&error, Err(ContextError::Overflow { value: 17, by: 4, .. }));
    assert!(is_its_own, "`update` returns the error that its change returned, but returned {error:?}");
}

pub fn a_change_that_panics_leaves_everything_as_it_was<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put(1).await;
        panic_in(place.clone()).await;
        assert_eq!(place.read().await, Some(1), "a change that panics leaves the value that was there");
        assert_eq!(place.increment().await, Some(2), "after a change that panicked the key can be used");
    });
}

async fn panic_in(place: Place) {
    let update = tokio::spawn(async move {
        // `resume_unwind` skips the panic hook, because the panic is intended.
        let mut change = |_: Option<ContextValue>| resume_unwind(Box::new("of this change"));
        place.store.update(&place.scope, &place.key, &mut change).await.map(number)
    });
    let error = match update.await {
        Ok(returned) => panic!("`update` lets a panic of its change pass, but returned {returned:?}"),
        Err(error) => error.into_panic(),
    };
    let is_its_own = error.downcast_ref::<&str>().is_some_and(|text| *text == "of this change");
    assert!(is_its_own, "`update` lets a panic of its change pass as it is");
}

pub fn no_lock_is_held_while_a_change_runs<S: ContextStore>(open: impl FnOnce() -> S) {
    no_lock_is_held_within(PATIENCE, open);
}

/// The same with this time limit per call.
///
/// A store that keeps the contract never reaches the limit. A store known to break it always does, however short the
/// limit is.
pub fn no_lock_is_held_within<S: ContextStore>(patience: Duration, open: impl FnOnce() -> S) {
    run(open, move |store| async move {
        let place = Place::new(&store);
        place.put(1).await;
        let mut progress = Vec::new();
        place
            .change(|there| {
                if progress.is_empty() {
                    progress.extend(others_of(&place, patience));
                }
                there
            })
            .await;
        assert!(!progress.is_empty(), "`update` applies its change");
        let held_up: Vec<&str> = progress.iter().filter(|(_, ended)| !ended).map(|(call, _)| *call).collect();
        let demand = "a store holds no lock while a change runs";
        assert!(held_up.is_empty(), "{demand}, but meanwhile nobody could {}", held_up.join(", nor "));
    });
}

/// Calls that a lock could hold up, and whether they returned.
fn others_of(place: &Place, patience: Duration) -> Vec<(&'static str, bool)> {
    let (same, other, far) = (place.clone(), place.at_key("another key"), Place::new(&place.store));
    let calls = [
        ("read the key", Elsewhere::start(patience, async move { same.read().await })),
        ("set another key of the scope", Elsewhere::start(patience, async move { other.put(2).await })),
        ("set a key of another scope", Elsewhere::start(patience, async move { far.put(2).await })),
    ];
    calls.iter().map(|(call, started)| (*call, started.ends())).collect()
}

pub fn a_change_is_applied_to_the_very_value_that_it_replaces<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put(1).await;
        let mut seen = Vec::new();
        let stored = place.change(|there| {
            if seen.is_empty() {
                let between = place.clone();
                let set = Elsewhere::start(PATIENCE, async move { between.put(10).await }).ends();
                assert!(
                    set,
                    "a store holds no lock while a change runs, but meanwhile nobody could set the key"
                );
            }
            seen.push(there);
            there.map(|number| number + 1)
        });
        let stored = stored.await;
        let demand = "the value that the last call of a change is given is the one that is replaced";
        assert_eq!(seen.last(), Some(&Some(10)), "{demand}: 10 was set while the change of 1 ran");
        assert_eq!(stored, Some(11), "`update` returns what the last call of its change returned");
        assert_eq!(place.read().await, Some(11), "what the last call of a change returned is stored");
    });
}
