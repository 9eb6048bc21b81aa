//! A clock with a fault fails the check that is meant for it.

use std::time::Duration;

use workflow_testkit::conformance::clock::{Subject, drops, readings, sleeps, threads};

use super::broken_stores::failure;
use super::hands::Fault::{self, *};
use super::hands::Hands;

/// Long enough to start a check, and short enough to wait for its failure.
const PATIENCE: Duration = Duration::from_secs(1);

fn subject(fault: Fault) -> Subject<Hands> {
    Subject::driven(move || Hands::new(fault), Hands::advance)
}

fn assert_caught(fault: Fault, check: fn(Subject<Hands>), why: &str) {
    let text = failure(|| check(subject(fault)));
    assert!(text.contains(why), "{fault:?} is found for another reason: {text}");
}

/// Asserts that the demanded event does not happen.
fn assert_awaited(fault: Fault, check: fn(Subject<Hands>), demand: &str) {
    let text = failure(|| check(subject(fault).patience(PATIENCE)));
    let why = format!("{demand}: waited {PATIENCE:?} for that in vain");
    assert!(text.ends_with(&why), "{fault:?} is found for another reason: {text}");
}

#[test]
fn a_clock_that_stands_still_is_caught() {
    assert_awaited(StandsStill, readings::time_goes_on, "so that `now` returns a later one");
}

#[test]
fn a_clock_that_goes_backwards_is_caught() {
    let why = "`now` does not go backwards, but it went back by 1ms";
    assert_caught(GoesBackwards, readings::now_does_not_go_backwards, why);
}

#[test]
fn a_clock_that_shows_each_thread_another_time_is_caught() {
    let check = readings::now_does_not_go_backwards_from_one_thread_to_another;
    assert_caught(DiffersByThread, check, "on another thread");
}

#[test]
fn a_sleep_that_is_too_short_is_caught() {
    let why = "a sleep does not end before its time";
    assert_caught(EndsTooEarly, sleeps::a_sleep_does_not_end_before_its_time, why);
}

#[test]
fn a_sleep_that_never_ends_is_caught() {
    let demand = "a sleep ends when its time has come, without being asked again";
    assert_awaited(NeverEnds, sleeps::a_sleep_ends_when_its_time_has_come, demand);
}

#[test]
fn a_sleep_without_a_wake_up_is_caught() {
    let demand = "without being asked again";
    assert_awaited(NeverWakes, sleeps::a_sleep_ends_when_its_time_has_come, demand);
}

#[test]
fn a_sleep_that_waits_for_a_time_that_has_passed_is_caught() {
    let demand = "without any passing of time";
    assert_awaited(MissesThePast, sleeps::a_sleep_until_a_time_that_has_passed_ends_at_once, demand);
}

#[test]
fn a_sleep_that_counts_from_its_first_poll_is_caught() {
    let demand = "without any further passing of time";
    assert_awaited(CountsFromTheFirstPoll, sleeps::a_sleep_that_is_first_polled_late_ends_at_once, demand);
}

#[test]
fn a_sleep_that_blocks_its_thread_is_caught() {
    let demand = "neither `sleep_until` nor a poll blocks";
    for fault in [BlocksInAPoll, BlocksInTheCall] {
        assert_awaited(fault, sleeps::a_sleep_does_not_block_its_thread, demand);
    }
}

#[test]
fn a_sleep_that_wakes_only_the_task_that_polled_it_first_is_caught() {
    let demand = "a sleep wakes the task that polled it last";
    assert_awaited(WakesTheFirstTaskOnly, sleeps::a_sleep_wakes_the_task_that_polled_it_last, demand);
}

#[test]
fn a_clock_that_panics_far_away_is_caught() {
    let why = "a clock does not panic, but `sleep_until` did: a time as far away as that";
    let check = sleeps::a_time_thousands_of_years_away_is_waited_for_like_any_other;
    assert_caught(PanicsFarAway, check, why);
}

#[test]
fn a_clock_that_takes_far_away_for_passed_is_caught() {
    let check = sleeps::a_time_thousands_of_years_away_is_waited_for_like_any_other;
    assert_caught(EndsFarAwayAtOnce, check, "but one of 3 years ended at once");
}

#[test]
fn a_clock_that_wakes_them_in_the_order_in_which_they_came_is_caught() {
    let demand = "beside a long one and one that is not polled";
    assert_awaited(ServesInOrder, sleeps::a_long_sleep_does_not_hold_up_a_short_one, demand);
}

#[test]
fn a_clock_that_knows_one_sleep_at_a_time_is_caught() {
    let demand = "of many sleeps at once each ends when its time has come";
    assert_awaited(KnowsOneSleepOnly, sleeps::a_thousand_sleeps_end_each_at_its_time, demand);
}

#[test]
fn a_dropped_sleep_that_takes_others_with_it_is_caught() {
    let check = drops::a_dropped_sleep_leaves_others_until_the_same_time_alone;
    assert_awaited(DroppingForgetsAll, check, "also when others until that time were dropped");
    assert_caught(DroppingEndsAll, check, "a sleep does not end before its time");
}

#[test]
fn a_sleep_that_is_dropped_with_the_others_turn_is_caught() {
    let check = drops::a_sleep_that_is_dropped_when_its_time_has_come_leaves_others_alone;
    assert_awaited(WakesOnlyOne, check, "also when another one was woken and not polled");
}

#[test]
fn a_sleep_that_lasts_longer_when_it_is_begun_anew_is_caught() {
    let check = drops::a_sleep_that_is_begun_anew_over_and_over_keeps_its_time;
    assert_awaited(DroppingCountsAnew, check, "also when others were begun and dropped before");
}

#[test]
fn a_clock_that_needs_a_runtime_to_make_a_sleep_is_caught() {
    let why = "a clock does not panic, but `sleep_until` did: there is no reactor running";
    let check = threads::a_sleep_is_made_on_any_thread_also_without_a_runtime;
    assert_caught(NeedsARuntimeToMakeASleep, check, why);
}

#[test]
fn a_clock_that_loses_sleeps_of_several_threads_is_caught() {
    let check = threads::sleeps_are_made_on_several_threads_at_once;
    assert_awaited(
        LosesSleepsMadeAtOnce,
        check,
        "made on several threads at once each ends when its time has come",
    );
}

#[test]
fn a_clock_that_wakes_no_other_thread_is_caught() {
    let check = threads::time_that_passes_on_another_thread_wakes_a_sleep;
    assert_awaited(WakesOnItsOwnThreadOnly, check, "also when time passes on another thread");
}

#[test]
fn a_clock_that_goes_in_leaps_is_not_at_fault() {
    let leap = |hands: &Hands, by: Duration| hands.advance(by * 1_000);
    let open = || Hands::new(Nothing);
    sleeps::a_thousand_sleeps_end_each_at_its_time(Subject::driven(open, leap));
    readings::now_does_not_go_backwards(Subject::driven(open, leap));
}
