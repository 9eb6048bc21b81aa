//! Atomicity: many callers at once, and each call as a whole.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{JoinSet, yield_now};
use workflow_core::store::{ContextStore, ContextValue};

use super::place::{Number, Place};
use crate::conformance::stage::run;

/// How many callers there are at a time, and how often each calls.
const CALLERS: Number = 8;
const CALLS: Number = 25;

pub fn concurrent_updates_all_count<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        let counted = at_once(&place, |place, _| async move { place.increment().await }).await;
        let all = CALLERS * CALLS;
        assert_eq!(place.read().await, Some(all), "each of {all} concurrent increments counts");
        let distinct: BTreeSet<Option<Number>> = counted.into_iter().collect();
        let expected = (1..=all).map(Some).collect();
        assert_eq!(distinct, expected, "each update returns what it stored itself, not what another stored");
    });
}

pub fn of_concurrent_sets_each_returns_what_it_replaced<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        let mut replaced = at_once(&place, |place, number| async move { place.put(number).await }).await;
        replaced.push(place.read().await);
        replaced.sort_unstable();
        let mut expected = vec![None];
        expected.extend((0..CALLERS * CALLS).map(Some));
        let demand = "the calls on a key have one order: each value is replaced once, but for the last";
        assert_eq!(replaced, expected, "{demand}");
    });
}

pub fn updates_of_several_keys_do_not_disturb_each_other<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        let increment = |place: Place, number| async move { place.at_key(&key_of(number)).increment().await };
        at_once(&place, increment).await;
        for number in 0..CALLERS {
            let count = place.at_key(&key_of(number)).read().await;
            assert_eq!(count, Some(CALLS), "concurrent updates of several keys of one scope all count");
        }
    });
}

/// One of as many keys as there are callers.
fn key_of(number: Number) -> String {
    (number % CALLERS).to_string()
}

/// Makes every call of every caller, each with a number of its own, and collects what they return.
async fn at_once<C: Future<Output = Option<Number>> + Send + 'static>(
    place: &Place,
    call: impl Fn(Place, Number) -> C + Copy + Send + 'static,
) -> Vec<Option<Number>> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let place = place.clone();
        callers.spawn(async move {
            let mut returned = Vec::new();
            for number in 0..CALLS {
                returned.push(call(place.clone(), caller * CALLS + number).await);
            }
            returned
        });
    }
    callers.join_all().await.concat()
}

pub fn nobody_sees_half_of_a_value<S: ContextStore>(open: impl FnOnce() -> S) {
    run(open, |store| async move {
        let place = Place::new(&store);
        place.put_value(Some(whole(0))).await;
        let (mut writers, mut readers) = (JoinSet::new(), JoinSet::new());
        let is_over = Arc::<AtomicBool>::default();
        for number in 1..=2 {
            writers.spawn(write_whole(place.clone(), number));
            readers.spawn(read_whole(place.clone(), Arc::clone(&is_over)));
        }
        writers.join_all().await;
        is_over.store(true, Ordering::Relaxed);
        readers.join_all().await;
    });
}

async fn write_whole(place: Place, number: u8) {
    for _ in 0..CALLS {
        place.put_value(Some(whole(number))).await;
        yield_now().await;
    }
}

async fn read_whole(place: Place, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        assert_whole(place.value().await);
        yield_now().await;
    }
}

/// A value that is easily torn: many times the same number.
fn whole(number: u8) -> ContextValue {
    ContextValue::new(vec![number; 20_000])
}

fn assert_whole(value: Option<ContextValue>) {
    let demand = "nobody sees half of a call";
    let value = value.unwrap_or_else(|| panic!("{demand}, but while a value was replaced there was none"));
    let numbers = value.get::<Vec<u8>>().unwrap_or_else(|error| panic!("{demand}, but: {error}"));
    let is_whole = numbers.len() == 20_000 && numbers.iter().all(|number| *number == numbers[0]);
    assert!(is_whole, "{demand}, but a value was a mixture of two");
}
