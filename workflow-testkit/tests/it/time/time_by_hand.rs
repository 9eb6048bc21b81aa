//! A waiting run returns to the test, which lets time pass as it likes.

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{RunStatus, SendError};
use workflow_testkit::{Scenario, ScenarioOf, explore};

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(start)]
struct Opened;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Confirm;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(u32);

#[derive(Debug, Serialize, Deserialize, Event)]
struct Reminder(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
struct Reminded(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Closed(Ending);

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Ending {
    Confirmed,
    Refused,
    Expired,
    Noted,
}

const AN_HOUR: Duration = Duration::from_hours(1);
const TEN_MINUTES: Duration = Duration::from_mins(10);
const A_MILLISECOND: Duration = Duration::from_millis(1);
const ALMOST_AN_HOUR: Duration = Duration::from_millis(3_599_999);

/// Requests a confirmation that expires after an hour.
struct Desk;

#[workflow]
impl Desk {
    #[step]
    async fn ask(&self, _: &Opened) -> Expiring<Confirm> {
        Confirm.expires_in(AN_HOUR)
    }

    #[step]
    async fn confirmed(&self, confirmed: &Reply<Confirm>) -> Closed {
        Closed(if **confirmed { Ending::Confirmed } else { Ending::Refused })
    }

    #[step]
    async fn give_up(&self, _: &Expired<Confirm>) -> Closed {
        Closed(Ending::Expired)
    }
}

fn desk() -> ScenarioOf<Desk> {
    Scenario::new(Desk).until_it_waits()
}

#[tokio::test]
async fn a_request_that_expires_is_replied_to_by_hand() {
    let mut run = desk().start(Opened).await;
    run.assert_waiting();
    assert_eq!(run.elapsed(), Duration::ZERO);
    let confirm = run.requests()[0].id::<Confirm>().unwrap();
    assert_eq!(run.advance(ALMOST_AN_HOUR).await, RunStatus::Waiting);
    run.reply(confirm, true).await.unwrap();
    run.settled().await;
    run.assert_output(&Closed(Ending::Confirmed));
    assert_eq!(run.elapsed(), ALMOST_AN_HOUR);
}

#[tokio::test]
async fn a_request_expires_when_its_time_has_passed() {
    let mut run = desk().start(Opened).await;
    let confirm = run.requests()[0].id::<Confirm>().unwrap();
    assert_eq!(run.advance(AN_HOUR).await, RunStatus::Completed);
    run.assert_output(&Closed(Ending::Expired));
    assert_eq!(run.elapsed(), AN_HOUR);
    assert!(matches!(run.reply(confirm, true).await, Err(SendError::Ended { .. })));
}

#[tokio::test]
async fn no_time_passes_after_a_request_that_expires_has_ended_the_run() {
    let scenario = Scenario::new(Desk).cancel_after(3 * AN_HOUR, "too late");
    let run = scenario.start(Opened).await;
    run.assert_output(&Closed(Ending::Expired));
    assert_eq!(run.elapsed(), AN_HOUR);
}

#[tokio::test]
async fn the_clock_stands_still_until_the_test_lets_time_pass() {
    let mut run = desk().start(Opened).await;
    for _ in 0..3 {
        assert_eq!(run.settled().await, RunStatus::Waiting);
    }
    assert_eq!((run.elapsed(), run.requests().len()), (Duration::ZERO, 1));
}

#[tokio::test]
async fn no_time_passes_for_a_run_that_has_ended() {
    let mut run = desk().start(Opened).await;
    run.advance(3 * AN_HOUR).await;
    assert_eq!(run.elapsed(), AN_HOUR, "it ends on the way");
    assert_eq!(run.advance(AN_HOUR).await, RunStatus::Completed);
    assert_eq!(run.elapsed(), AN_HOUR);
}

#[tokio::test]
async fn what_the_script_replies_after_a_time_is_left_to_the_test_too() {
    let scenario = desk().reply_after(TEN_MINUTES, |_: &Confirm| false);
    let mut run = scenario.start(Opened).await;
    assert_eq!((run.status(), run.elapsed()), (RunStatus::Waiting, Duration::ZERO));
    run.advance(TEN_MINUTES).await;
    run.assert_output(&Closed(Ending::Refused));
    assert_eq!(run.elapsed(), TEN_MINUTES);
}

#[tokio::test]
async fn a_run_does_not_wait_while_an_attempt_is_to_come() {
    let run = desk().fail_first("ask", 1, || StepError::transient("busy")).start(Opened).await;
    run.assert_waiting();
    assert_eq!((run.elapsed(), run.requests().len()), (Duration::from_secs(10), 1));
}

#[tokio::test]
async fn what_the_script_replies_at_once_is_not() {
    let run = desk().reply(|_: &Confirm| false).start(Opened).await;
    run.assert_output(&Closed(Ending::Refused));
}

#[test]
fn where_orders_are_explored_time_passes_all_the_same() {
    let explored = explore(|| desk().start(Opened)).assert(|run| run.outcome().is_ok());
    assert!(explored.is_exhaustive());
}

/// Reminds after one hour and after two, which takes ten minutes each, and is closed by a note.
struct Watch;

#[workflow]
impl Watch {
    #[step]
    async fn set(&self, _: &Opened) -> Vec<Timer<Reminder>> {
        vec![Timer::after(2 * AN_HOUR, Reminder(2)), Timer::after(AN_HOUR, Reminder(1))]
    }

    #[step]
    async fn remind(&self, reminder: &Reminder) -> Reminded {
        tokio::time::sleep(TEN_MINUTES).await;
        Reminded(reminder.0)
    }

    #[step]
    async fn close(&self, _: &Note) -> Closed {
        Closed(Ending::Noted)
    }
}

fn watch() -> ScenarioOf<Watch> {
    Scenario::new(Watch).until_it_waits()
}

#[tokio::test]
async fn a_timer_fires_when_exactly_its_time_has_passed() {
    let mut run = watch().start(Opened).await;
    run.advance(ALMOST_AN_HOUR).await;
    assert_eq!((run.executions("remind"), run.report().timers.len()), (0, 2));
    run.advance(A_MILLISECOND).await;
    assert_eq!((run.executions("remind"), run.report().timers.len()), (1, 1));
    run.assert_waiting();
    assert_eq!(run.elapsed(), AN_HOUR + TEN_MINUTES, "a step at work is waited for");
}

#[tokio::test]
async fn timers_fire_in_order_and_steps_continue_while_time_passes() {
    let mut run = watch().start(Opened).await;
    run.advance(24 * AN_HOUR).await;
    assert_eq!(run.emitted::<Reminded>().iter().map(|reminded| reminded.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((run.status(), run.elapsed()), (RunStatus::Waiting, 24 * AN_HOUR));
    run.send(Note(1)).await.unwrap();
    run.settled().await;
    run.assert_output(&Closed(Ending::Noted));
    assert_eq!(run.elapsed(), 24 * AN_HOUR);
}

#[tokio::test]
async fn what_the_script_sends_after_a_time_is_sent_while_time_passes() {
    let mut run = watch().send_after(AN_HOUR + TEN_MINUTES, Note(1)).start(Opened).await;
    run.advance(ALMOST_AN_HOUR).await;
    run.assert_executions("remind", 0);
    run.advance(TEN_MINUTES).await;
    run.assert_executions("remind", 1);
    run.assert_output(&Closed(Ending::Noted));
    assert_eq!(run.elapsed(), AN_HOUR + TEN_MINUTES);
}

#[tokio::test]
async fn time_passes_for_what_was_done_by_hand_too() {
    let mut run = watch().start(Opened).await;
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.advance(AN_HOUR).await, RunStatus::Completed);
    assert_eq!(run.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn time_passes_for_a_run_that_has_nothing_to_wait_for_but_the_test() {
    let mut run = Scenario::new(Watch).start(Opened).await;
    let waited = run.elapsed();
    assert_eq!(waited, 2 * AN_HOUR + TEN_MINUTES);
    // Longer than the longest timer of tokio.
    assert_eq!(run.advance(100_000 * AN_HOUR).await, RunStatus::Waiting);
    assert_eq!(run.elapsed(), waited + 100_000 * AN_HOUR);
}
