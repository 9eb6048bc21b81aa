//! Limits alone: their tokens, their order, and a comparison with a naive model in random orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use proptest::prelude::*;

use super::*;
use crate::clock::{Clock, EngineClock};
use crate::id::ExecutionId;
use crate::panics::locked;

mod model;

const SECOND: Duration = Duration::from_secs(1);

/// A clock that the test sets. Its sleeps never wake anyone: the test polls.
#[derive(Debug, Clone, Default)]
struct Still(Arc<std::sync::Mutex<Duration>>);

impl Still {
    fn pass(&self, time: Duration) {
        *locked(&self.0) += time;
    }

    fn set(&self, time: Duration) {
        *locked(&self.0) = time;
    }
}

impl Clock for Still {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_hours(1) + *locked(&self.0)
    }

    fn sleep_until(&self, at: SystemTime) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        futures::future::poll_fn(move |_| {
            if clock.now() >= at { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .boxed()
    }
}

fn limiter(limit: Limit) -> (Arc<Limiter>, Still) {
    let clock = Still::default();
    (Limiter::new("bank".into(), limit, EngineClock::new(clock.clone())), clock)
}

fn holder(number: u64) -> Requester {
    Requester { run: "r".into(), execution: ExecutionId(number) }
}

#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls a turn once, with a waker that counts.
fn poll(turn: &mut PermitWait, woken: &Arc<Counts>) -> Option<LimitPermit> {
    let waker = Waker::from(Arc::clone(woken));
    match turn.poll_unpin(&mut Context::from_waker(&waker)) {
        std::task::Poll::Ready(permit) => Some(permit),
        std::task::Poll::Pending => None,
    }
}

// S70
#[test]
fn permits_go_in_order_of_arrival_and_keys_are_apart() {
    let (limiter, _) = limiter(Limit::concurrent(1));
    let first = limiter.arrive("a", holder(1)).take().unwrap();
    let mut second = limiter.arrive("a", holder(2)).take().unwrap_err();
    let mut third = limiter.arrive("a", holder(3)).take().unwrap_err();
    let woken = [Arc::<Counts>::default(), Arc::default()];
    assert!(poll(&mut third, &woken[1]).is_none() && poll(&mut second, &woken[0]).is_none());
    let other = limiter.arrive("b", holder(4)).take();
    assert!(other.is_ok(), "another key passes");
    let wait_state = third.arrival().unwrap().wait_state(5);
    assert_eq!((wait_state.held_by, wait_state.before), (vec![holder(1)], 1));
    drop(first);
    assert_eq!(woken[0].0.load(Ordering::SeqCst), 1, "the release wakes the oldest");
    assert!(poll(&mut third, &woken[1]).is_none());
    let second = poll(&mut second, &woken[0]).unwrap();
    drop(second);
    assert!(poll(&mut third, &woken[1]).is_some());
}

// S70
#[test]
fn a_permit_that_is_given_back_goes_to_the_next_and_its_arrival_keeps_its_place() {
    let (limiter, _) = limiter(Limit::concurrent(1).rate(2, SECOND));
    let first = limiter.arrive("", holder(1)).take().unwrap();
    let mut second = limiter.arrive("", holder(2)).take().unwrap_err();
    let mut third = limiter.arrive("", holder(3)).take().unwrap_err();
    let woken = Arc::<Counts>::default();
    assert!(poll(&mut second, &woken).is_none() && poll(&mut third, &woken).is_none());
    drop(first);
    let second = poll(&mut second, &woken).unwrap().give_back();
    let third = poll(&mut third, &woken).expect("the token went back with the permit");
    let fourth = limiter.arrive("", holder(4)).take().unwrap_err();
    let second = second.take().unwrap_err();
    assert_eq!(second.arrival().unwrap().wait_state(5).before, 0, "it stands where it arrived");
    assert_eq!(fourth.arrival().unwrap().wait_state(5).before, 1);
    drop(third);
}

// S70
#[test]
fn a_turn_that_is_dropped_leaves_the_queue_and_what_it_was_handed() {
    let (limiter, _) = limiter(Limit::concurrent(1));
    let first = limiter.arrive("", holder(1)).take().unwrap();
    let second = limiter.arrive("", holder(2)).take().unwrap_err();
    let mut third = limiter.arrive("", holder(3)).take().unwrap_err();
    let woken = Arc::<Counts>::default();
    assert!(poll(&mut third, &woken).is_none());
    drop(first);
    assert!(poll(&mut third, &woken).is_none(), "the second was handed the permit");
    drop(second);
    assert!(woken.0.load(Ordering::SeqCst) >= 1);
    drop(poll(&mut third, &woken).unwrap());
    assert_eq!(limiter.key_count(), 0);
}

// S70
#[test]
fn a_rate_lets_so_many_begin_at_once_and_then_one_per_interval() {
    let (limiter, clock) = limiter(Limit::at_rate(4, SECOND));
    let at_once: Vec<_> = (0..4).map(|number| limiter.arrive("", holder(number)).take().unwrap()).collect();
    drop(at_once);
    let woken = Arc::<Counts>::default();
    for number in 4..12 {
        let mut turn = limiter.arrive("", holder(number)).take().expect_err("no token is left");
        assert!(poll(&mut turn, &woken).is_none());
        clock.pass(Duration::from_millis(249));
        assert!(poll(&mut turn, &woken).is_none());
        clock.pass(Duration::from_millis(1));
        assert!(poll(&mut turn, &woken).is_some());
    }
    clock.pass(10 * SECOND);
    let full = (0..5).filter(|number| limiter.arrive("", holder(*number)).take().is_ok());
    assert_eq!(full.count(), 4, "a full bucket holds no more");
}

// S70
#[test]
fn a_clock_that_is_set_back_delays_a_token_by_no_more_than_its_interval() {
    let (limiter, clock) = limiter(Limit::at_rate(1, SECOND));
    clock.pass(1_000 * SECOND);
    drop(limiter.arrive("", holder(1)).take().unwrap());
    let mut turn = limiter.arrive("", holder(2)).take().unwrap_err();
    clock.set(Duration::ZERO);
    let woken = Arc::<Counts>::default();
    assert!(poll(&mut turn, &woken).is_none());
    clock.pass(SECOND);
    assert!(poll(&mut turn, &woken).is_some());
}

// S70
#[test]
fn keys_that_nothing_uses_take_no_memory() {
    let (limiter, clock) = limiter(Limit::concurrent(1).rate(10, SECOND));
    let mut most = 0;
    for number in 0..20_000 {
        drop(limiter.arrive(&format!("customer {number}"), holder(number)).take().unwrap());
        // A bucket is full again after a tenth of a second, so about a hundred keys are in use.
        clock.pass(Duration::from_millis(1));
        most = most.max(limiter.key_count());
    }
    assert!(most <= 2 * 2 * 100, "{most} keys");
    let (limiter, _) = limiter_of_many(Limit::concurrent(1), 1_000);
    assert_eq!(limiter.key_count(), 0, "without a rate a key goes with its last permit");
}

fn limiter_of_many(limit: Limit, keys: u64) -> (Arc<Limiter>, Still) {
    let (limiter, clock) = limiter(limit);
    for number in 0..keys {
        drop(limiter.arrive(&number.to_string(), holder(number)).take().unwrap());
    }
    (limiter, clock)
}

#[test]
fn a_limit_has_at_least_one_permit_and_names_itself() {
    assert_eq!(Limit::concurrent(0), Limit::concurrent(1));
    assert_eq!(Limit::at_rate(0, SECOND), Limit::at_rate(1, SECOND));
    assert_eq!(Limit::concurrent(2).rate(5, Duration::ZERO), Limit::concurrent(2));
    assert_eq!(Limit::at_rate(5, Duration::ZERO).to_string(), "any number of attempts");
    assert_eq!(
        serde_json::to_string(&Limit::concurrent(4).rate(10, SECOND)).unwrap(),
        r#"{"concurrent":4,"rate":{"count":10,"per":{"secs":1,"nanos":0}}}"#
    );
}

proptest! {
    // S70
    #[test]
    fn a_limit_hands_out_what_a_naive_one_does(
        limit in model::limits(),
        acts in prop::collection::vec(model::acts(), 1..120),
    ) {
        model::compare(limit, &acts);
    }
}
