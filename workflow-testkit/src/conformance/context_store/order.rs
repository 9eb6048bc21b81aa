//! Order: each call on a key sees all earlier calls, and reports correctly what it found.

use workflow_core::store::ContextStore;

use super::place::Place;
use crate::conformance::stage::run;

pub fn what_was_set_is_there_for_every_later_get<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put(1).await;
        assert_eq!(place.read().await, Some(1), "`get` finds what was set before it");
        place.put(2).await;
        assert_eq!(place.read().await, Some(2), "`get` finds what was set last");
    });
}

pub fn a_key_that_was_never_set_has_no_value<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        assert_eq!(Place::new(&store).read().await, None, "`get` returns `None` where there is no value");
    });
}

pub fn a_get_changes_nothing<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put(1).await;
        for _ in 0..3 {
            assert_eq!(place.read().await, Some(1), "`get` changes nothing, however often it is repeated");
        }
    });
}

pub fn a_set_returns_the_value_that_was_there<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        assert_eq!(place.put(1).await, None, "`set` returns `None` where there was no value");
        assert_eq!(place.put(2).await, Some(1), "`set` returns the value that it replaced");
        assert_eq!(place.remove().await, Some(2), "`set` returns the value that it removed");
    });
}

pub fn setting_none_removes_the_value<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put(1).await;
        place.remove().await;
        assert_eq!(place.read().await, None, "`set` to `None` removes the value that is there");
    });
}

pub fn removing_what_is_not_there_is_no_error<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        assert_eq!(place.remove().await, None, "`set` to `None` returns `None` where there was no value");
        assert_eq!(place.remove().await, None, "removing twice leaves what removing once leaves");
    });
}

pub fn setting_the_same_value_twice_is_as_good_as_once<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put(1).await;
        assert_eq!(
            place.put(1).await,
            Some(1),
            "`set` returns the value that was there, even if it is equal"
        );
        assert_eq!(
            place.read().await,
            Some(1),
            "putting the same value twice leaves what putting it once leaves"
        );
    });
}

pub fn a_call_that_returned_comes_before_calls_that_begin_later<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        for number in 0..100 {
            place.put(number).await;
            let reader = place.clone();
            // A separate task may run on another thread than the writer's.
            let read = tokio::spawn(async move { reader.read().await }).await;
            let demand = "a call takes effect before it returns, and a later one sees it from any thread";
            assert_eq!(read.expect("a reader does not panic"), Some(number), "{demand}");
        }
    });
}
