//! Continuing a waiting run by hand: nothing depends on the speed of threads.

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{RunStatus, SendError};
use workflow_testkit::Scenario;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(start)]
struct Opened;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Slow;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Quick;

#[derive(Debug, Serialize, Deserialize, Event)]
struct Slept;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
struct Confirm;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Closed(bool);

/// Takes two notes: one keeps it busy for an hour, the other does not.
struct Desk;

#[workflow]
impl Desk {
    #[step]
    async fn open(&self, _: &Opened) -> Confirm {
        Confirm
    }

    #[step]
    async fn slow(&self, _: &Slow) -> Slept {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Slept
    }

    #[step]
    async fn close(&self, _: &Slept, _: &Quick, confirmed: &Reply<Confirm>) -> Closed {
        Closed(**confirmed)
    }
}

/// Gives another thread every chance to get ahead of this one.
fn dawdle() {
    std::thread::sleep(Duration::from_millis(20));
}

#[tokio::test]
async fn what_is_sent_before_settling_arrives_at_the_same_time() {
    let mut run = Scenario::new(Desk).start(Opened).await;
    let confirm = run.requests()[0].id::<Confirm>().unwrap();
    run.send(Slow).await.unwrap();
    dawdle();
    run.send(Quick).await.unwrap();
    dawdle();
    run.reply(confirm, true).await.unwrap();
    dawdle();
    run.settled().await;
    run.assert_output(&Closed(true));
    assert_eq!(run.elapsed(), Duration::from_hours(1));
    expect_test::expect![[r"
        #1 Opened from outside
        x1 open by #1: succeeded
        #2 Confirm of x1
        waits
        #3 Slow from outside
        x2 slow by #3 starts
        #4 Quick from outside
        #5 Confirm.reply to #2 from outside: true
        x2 slow: succeeded
        #6 Slept of x2
        x3 close by #6 with #4, #5: succeeded
        #7 Closed of x3: true
        completed with #7
    "]]
    .assert_eq(&run.transcript());
}

#[tokio::test]
async fn the_clock_of_a_run_stands_still_while_a_handle_is_used() {
    let mut run = Scenario::new(Desk).start(Opened).await;
    let handle = run.handle().clone();
    handle.send(Slow).await.unwrap();
    dawdle();
    handle.send(Quick).await.unwrap();
    let confirm = handle.requests().await.unwrap()[0].id::<Confirm>().unwrap();
    handle.reply(confirm, false).await.unwrap();
    let arrived = |name: &str| run.report().log.iter().any(|logged| logged.event.as_ref() == name);
    assert!(!arrived("Quick"), "a run that waits is reported on as it was last settled");
    run.settled().await;
    run.assert_output(&Closed(false));
    let times: Vec<_> = run.report().log[2..5].iter().map(|logged| logged.at).collect();
    assert_eq!(times, [times[0]; 3], "all three arrive before the hour has passed");
}

#[tokio::test]
async fn a_run_is_cancelled_where_it_waits() {
    let mut run = Scenario::new(Desk).start(Opened).await;
    run.cancel("enough").await.unwrap();
    assert!(matches!(run.send(Slow).await, Err(SendError::Ended { .. })));
    assert_eq!(run.settled().await, RunStatus::Cancelled);
    assert!(matches!(run.send(Quick).await, Err(SendError::Ended { .. })));
    assert!(run.requests().is_empty());
}
