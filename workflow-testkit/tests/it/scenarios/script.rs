//! Events from outside arrive at the script's times.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use futures::FutureExt as _;
use workflow_core::prelude::*;
use workflow_core::{RunStatus, SendError};
use workflow_testkit::Scenario;

use crate::support::{failed, failure};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Opened {
    claims: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Note(u32);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Verdict {
    granted: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Verdict)]
struct Claim {
    number: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
struct Settled {
    number: u32,
    granted: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Closed {
    granted: Vec<u32>,
    notes: Vec<u32>,
}

/// Makes a request per claim, and closes after three settled claims or notes.
struct Desk;

#[workflow]
impl Desk {
    #[step]
    async fn ask(&self, opened: &Opened) -> Vec<Claim> {
        (1..=opened.claims).map(|number| Claim { number }).collect()
    }

    #[step(reruns)]
    async fn settle(&self, verdict: &Reply<Claim>) -> Settled {
        Settled { number: verdict.request().number, granted: verdict.granted }
    }

    #[step(reruns)]
    async fn close(&self, settled: Option<&List<Settled>>, notes: Option<&List<Note>>) -> Option<Closed> {
        let settled: Vec<_> = settled.iter().flat_map(|settled| settled.iter()).collect();
        let notes: Vec<u32> = notes.iter().flat_map(|notes| notes.iter()).map(|note| note.0).collect();
        let granted =
            settled.iter().filter(|settled| settled.granted).map(|settled| settled.number).collect();
        (settled.len() + notes.len() == 3).then_some(Closed { granted, notes })
    }
}

#[tokio::test]
async fn every_open_request_of_a_type_is_replied_to() {
    let odd = |claim: &Claim| Verdict { granted: claim.number % 2 == 1 };
    let run = Scenario::new(Desk).reply(odd).start(Opened { claims: 3 }).await;
    run.assert_output(&Closed { granted: vec![1, 3], notes: vec![] });
    assert_eq!(run.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn the_later_of_two_replies_to_one_type_of_request_counts() {
    let scenario = Scenario::new(Desk).reply(|_: &Claim| Verdict { granted: false });
    let run = scenario.reply(|_: &Claim| Verdict { granted: true }).start(Opened { claims: 3 }).await;
    run.assert_output(&Closed { granted: vec![1, 2, 3], notes: vec![] });
}

#[tokio::test]
async fn what_is_sent_waits_for_the_run_and_comes_in_order() {
    let scenario = Scenario::new(Desk).send(Note(1)).send(Note(2)).send(Note(3)).send(Note(4));
    let run = scenario.start(Opened { claims: 0 }).await;
    run.assert_output(&Closed { granted: vec![], notes: vec![1, 2, 3] });
}

#[tokio::test]
async fn what_is_sent_and_replied_after_a_time_comes_when_it_is_due() {
    let scenario = Scenario::new(Desk)
        .send_after(Duration::from_secs(90), Note(90))
        .send_after(Duration::from_secs(30), Note(30))
        .reply_after(Duration::from_mins(1), |_: &Claim| Verdict { granted: true });
    let run = scenario.start(Opened { claims: 1 }).await;
    run.assert_output(&Closed { granted: vec![1], notes: vec![30, 90] });
    run.assert_order("ask", "settle");
    assert_eq!(run.elapsed(), Duration::from_secs(90));
    let at = |text: &str| run.transcript().find(text).unwrap();
    assert!(at(" Note from outside: 30\n") < at(" Claim.reply to "), "{}", run.transcript());
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Over;

/// Closes after an hour, and signals the test.
struct Hour(Sender<()>);

#[workflow]
impl Hour {
    #[step]
    async fn wait(&self, _opened: &Opened) -> Over {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Over
    }

    #[step(reruns)]
    async fn close(&self, _over: &Over, note: Option<&Note>) -> Closed {
        self.0.send(()).unwrap();
        Closed { granted: vec![], notes: note.iter().map(|note| note.0).collect() }
    }
}

#[tokio::test]
async fn due_events_are_sent_in_time_even_if_the_test_is_late() {
    let (tell, told) = channel();
    let scenario = Scenario::new(Hour(tell)).send_after(Duration::from_mins(30), Note(30));
    let mut run = scenario.start(Opened { claims: 0 }).into_future();
    // From now on the run continues on its own thread; it may even have ended by now.
    let ended = (&mut run).now_or_never();
    told.recv().unwrap();
    let run = if let Some(ended) = ended { ended } else { run.await };
    run.assert_output(&Closed { granted: vec![], notes: vec![30] });
}

#[tokio::test]
async fn a_run_that_waits_after_the_script_can_be_continued_by_hand() {
    let scenario = Scenario::new(Desk).reply(|_: &Claim| Verdict { granted: true });
    let mut run = scenario.start(Opened { claims: 2 }).await;
    run.assert_waiting();
    run.assert_executions("settle", 2);
    run.assert_emitted::<Settled>(2);
    let failure = failed(&run, |run| assert!(run.outcome().is_ok()));
    assert!(failure.starts_with("the run has not ended: it is waiting\n"), "{failure}");
    assert!(failure.contains("\nwaiting\n   for Note from outside\n"), "the transcript follows: {failure}");
    assert!(failure.contains("`close`"), "the explanation follows: {failure}");
    run.handle().send(Note(7)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Completed);
    run.assert_output(&Closed { granted: vec![1, 2], notes: vec![7] });
    assert!(matches!(run.handle().send(Note(8)).await, Err(SendError::Ended { .. })));
    assert_eq!(run.settled().await, RunStatus::Completed);
}

#[tokio::test]
async fn a_run_that_waits_ends_with_its_test_run() {
    let run = Scenario::new(Desk).start(Opened { claims: 1 }).await;
    let handle = run.handle().clone();
    drop(run);
    assert!(handle.outcome().await.is_err());
}

#[tokio::test]
async fn a_panic_in_a_reply_is_the_tests_own() {
    let asserts = |claim: &Claim| -> Verdict { panic!("claim {} is not to be asked for", claim.number) };
    let failure = failure(Scenario::new(Desk).reply(asserts).start(Opened { claims: 1 })).await;
    assert_eq!(failure, "claim 1 is not to be asked for");
}

/// Repeats its request after every reply.
struct Nagging;

#[workflow]
impl Nagging {
    #[step]
    async fn ask(&self, opened: &Opened) -> Claim {
        Claim { number: opened.claims }
    }

    #[step(loops)]
    async fn ask_again(&self, verdict: &Reply<Claim>) -> (Claim, Option<Closed>) {
        (Claim { number: verdict.request().number + 1 }, None)
    }
}

#[tokio::test]
async fn a_run_that_asks_for_ever_fails_the_scenario() {
    let scenario = Scenario::new(Nagging).reply(|_: &Claim| Verdict { granted: false });
    let failure = failure(scenario.start(Opened { claims: 1 })).await;
    assert!(
        failure
            .starts_with("the run does not end: 10000 events and replies were sent to it, or timers fired\n")
    );
    assert!(failure.lines().count() < 500, "what is printed is bounded");
}
