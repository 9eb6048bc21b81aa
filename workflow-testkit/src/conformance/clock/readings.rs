//! Checks of the times that a clock shows.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use workflow_core::Clock;

use super::Subject;
use super::subject::Watch;

pub fn time_goes_on<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("time goes on, so that `now` returns a later one");
        watch.pass(Duration::from_millis(20)).await;
    });
}

pub fn now_does_not_go_backwards<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("time goes on, so that `now` returns a later one");
        let mut last = watch.now();
        for _ in 0..10 {
            for _ in 0..100 {
                look(&watch, &mut last, "");
            }
            watch.pass(Duration::from_millis(1)).await;
            look(&watch, &mut last, ", when time had passed");
        }
    });
}

pub fn now_does_not_go_backwards_from_one_thread_to_another<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("`now` returns on any thread");
        watch.pass(Duration::from_millis(20)).await;
        let last = Mutex::new(watch.now());
        let looks = || {
            for _ in 0..10 {
                // The lock makes one call return before the next begins.
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                look(&watch, &mut last, " on another thread");
                drop(last);
                watch.pass_a_little();
            }
        };
        std::thread::scope(|threads| {
            for looking in [(); 4].map(|()| threads.spawn(looks)) {
                looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
    });
}

fn look<C: Clock>(watch: &Watch<C>, last: &mut SystemTime, when: &str) {
    let now = watch.now();
    let back = last.duration_since(now).unwrap_or_default();
    assert!(back.is_zero(), "`now` does not go backwards, but it went back by {back:?}{when}");
    *last = now;
}
