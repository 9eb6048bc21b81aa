//! Dropping a sleep has no effect on others.

use std::time::Duration;

use workflow_core::Clock;

use super::Subject;
use super::subject::poll;

pub fn a_dropped_sleep_leaves_others_until_the_same_time_alone<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep ends when its time has come, also when others until that time were dropped");
        let until = watch.now() + Duration::from_millis(20);
        let (mut polled, not_polled) = (watch.sleep(until), watch.sleep(until));
        poll(&mut polled);
        let before = watch.fall_asleep(watch.sleep(until), until).await;
        drop(polled);
        drop(not_polled);
        let after = watch.fall_asleep(watch.sleep(until), until).await;
        watch.pass_until(until).await;
        before.ends().await;
        after.ends().await;
    });
}

pub fn a_sleep_that_is_dropped_when_its_time_has_come_leaves_others_alone<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep ends when its time has come, also when another one was woken and not polled");
        let until = watch.now() + Duration::from_millis(20);
        let mut dropped = watch.sleep(until);
        poll(&mut dropped);
        let asleep = watch.fall_asleep(watch.sleep(until), until).await;
        watch.jump_to(until).await;
        drop(dropped);
        asleep.ends().await;
    });
}

pub fn a_sleep_that_is_begun_anew_over_and_over_keeps_its_time<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep ends when its time has come, also when others were begun and dropped before");
        let until = watch.now() + Duration::from_millis(20);
        for _ in 0..5 {
            let mut sleep = watch.sleep(until);
            poll(&mut sleep);
            drop(sleep);
            watch.pass(Duration::from_millis(2)).await;
        }
        let asleep = watch.fall_asleep(watch.sleep(until), until).await;
        watch.pass_until(until).await;
        asleep.ends().await;
    });
}
