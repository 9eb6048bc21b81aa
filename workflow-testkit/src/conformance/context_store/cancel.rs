//! Cancellation: a call whose future is dropped takes effect completely or not at all. The number of polls before the
//! drop makes no difference, so the checks try every number up to a bound.

use std::time::Duration;

use workflow_core::store::{ContextStore, ContextValue};

use super::place::{Number, Place};
use crate::conformance::stage::{abandon, run};

/// The most polls before a call is dropped.
const MOST_POLLS: u32 = 12;

pub fn a_set_that_is_dropped_is_done_or_not_done<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        for polls in 0..=MOST_POLLS {
            let place = Place::new(&store);
            place.put(1).await;
            let value = Some(ContextValue::new(2 as Number));
            let is_done = abandon(place.store.set(&place.scope, &place.key, value), polls).await;
            assert_whole(&place, is_done, polls).await;
        }
    });
}

pub fn an_update_that_is_dropped_is_done_or_not_done<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        for polls in 0..=MOST_POLLS {
            let place = Place::new(&store);
            place.put(1).await;
            let is_done = abandon(place.increment(), polls).await;
            assert_whole(&place, is_done, polls).await;
        }
    });
}

pub fn a_clear_that_is_dropped_is_done_or_not_done<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        for polls in 0..=MOST_POLLS {
            let place = Place::new(&store);
            for key in KEYS {
                place.at_key(key).put(1).await;
            }
            let is_done = abandon(place.store.clear(&place.scope), polls).await;
            let mut left = count(&place).await;
            if left != 0 && left != KEYS.len() {
                // The call may take effect between the two reads, but no later than this.
                tokio::time::sleep(Duration::from_millis(200)).await;
                left = count(&place).await;
            }
            let is_whole = left == 0 || (left == KEYS.len() && !is_done);
            let of = KEYS.len();
            assert!(
                is_whole,
                "a `clear` that is dropped after {polls} polls is done or not done: {left} of {of} left"
            );
        }
    });
}

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

async fn count(place: &Place) -> usize {
    let mut count = 0;
    for key in KEYS {
        count += usize::from(place.at_key(key).read().await.is_some());
    }
    count
}

/// The value changed from 1 to 2 or not at all, and the next call is not obstructed.
async fn assert_whole(place: &Place, is_done: bool, polls: u32) {
    let read = place.read().await;
    let is_whole = read == Some(2) || (read == Some(1) && !is_done);
    let demand = "a call that is dropped is done or not done";
    assert!(is_whole, "{demand}: a change from 1 to 2 that was dropped after {polls} polls left {read:?}");
    place.put(7).await;
    place.at_key("another key").put(7).await;
}
