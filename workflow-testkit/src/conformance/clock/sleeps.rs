//! Checks of sleeps: their ends, and polls before that.

use std::time::{Duration, SystemTime};

use workflow_core::Clock;

use super::Subject;
use super::subject::poll;

const HOUR: Duration = Duration::from_hours(1);
const YEAR: Duration = Duration::from_hours(365 * 24);

pub fn a_sleep_does_not_end_before_its_time<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep ends when its time has come");
        for micros in [1, 300, 1_000, 1_700, 5_000, 20_000] {
            watch.sleep_for(Duration::from_micros(micros)).await;
        }
    });
}

pub fn a_sleep_ends_when_its_time_has_come<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep ends when its time has come, without being asked again");
        for millis in [1, 5, 10] {
            let until = watch.now() + Duration::from_millis(millis);
            let asleep = watch.fall_asleep(watch.sleep(until), until).await;
            watch.jump_to(until).await;
            asleep.ends().await;
        }
    });
}

pub fn a_sleep_until_a_time_that_has_passed_ends_at_once<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep until a time that has passed ends without any passing of time");
        watch.pass(Duration::from_millis(20)).await;
        let now = watch.now();
        for past in [now, now - Duration::from_millis(10), SystemTime::UNIX_EPOCH] {
            watch.fall_asleep(watch.sleep(past), past).await.ends().await;
        }
    });
}

pub fn a_sleep_that_is_first_polled_late_ends_at_once<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep that is first polled after its time ends without any further passing of time");
        let until = watch.now() + Duration::from_millis(10);
        let sleep = watch.sleep(until);
        watch.pass_until(until).await;
        watch.fall_asleep(sleep, until).await.ends().await;
    });
}

pub fn a_sleep_does_not_block_its_thread<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("neither `sleep_until` nor a poll blocks");
        let mut sleep = watch.sleep(watch.now() + HOUR);
        let ended = poll(&mut sleep);
        assert!(!ended, "a sleep does not end before its time, but one of an hour ended on its first poll");
    });
}

pub fn a_sleep_wakes_the_task_that_polled_it_last<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep wakes the task that polled it last");
        let until = watch.now() + Duration::from_millis(20);
        let mut sleep = watch.sleep(until);
        // This poll must not register a waker.
        poll(&mut sleep);
        let asleep = watch.fall_asleep(sleep, until).await;
        watch.pass_until(until).await;
        asleep.ends().await;
    });
}

pub fn a_time_thousands_of_years_away_is_waited_for_like_any_other<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("a sleep ends when its time has come, also beside one of thousands of years");
        for years in [3, 40, 150, 600, 10_000] {
            let mut far = watch.sleep(watch.now() + years * YEAR);
            let ended = poll(&mut far);
            assert!(!ended, "a sleep does not end before its time, but one of {years} years ended at once");
            watch.sleep_for(Duration::from_millis(2)).await;
            let ended = poll(&mut far);
            assert!(!ended, "a sleep does not end before its time, but one of {years} years ended early");
        }
    });
}

pub fn a_long_sleep_does_not_hold_up_a_short_one<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand(
            "a short sleep ends when its time has come, beside a long one and one that is not polled",
        );
        let long_until = watch.now() + HOUR;
        let not_polled = watch.sleep(long_until);
        let long = watch.fall_asleep(watch.sleep(long_until), long_until).await;
        watch.sleep_for(Duration::from_millis(10)).await;
        let is_early = long.has_ended() && watch.now() < long_until;
        assert!(!is_early, "a sleep does not end before its time, but one of an hour ended with a short one");
        drop(not_polled);
    });
}

pub fn a_thousand_sleeps_end_each_at_its_time<C: Clock>(subject: Subject<C>) {
    subject.check(|watch| async move {
        watch.demand("of many sleeps at once each ends when its time has come");
        let (began, mut sleeps) = (watch.now(), Vec::new());
        for number in 0..1_000 {
            let until = began + Duration::from_millis(number * 7 % 20);
            sleeps.push(watch.fall_asleep(watch.sleep(until), until).await);
        }
        watch.pass_until(began + Duration::from_millis(20)).await;
        for asleep in sleeps {
            asleep.ends().await;
        }
    });
}
