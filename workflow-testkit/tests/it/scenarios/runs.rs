//! Runs that sleep, wait, fail, hang or differ between executions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use workflow_core::RunStatus;
use workflow_core::prelude::*;
use workflow_testkit::{Outcome, Scenario, explore};

use crate::exploring::orders::{Bid, Bought, Go, Note, Stock, tried};
use crate::support::panic_of;

struct Moody(Arc<AtomicU64>);

#[workflow]
impl Moody {
    #[step]
    async fn bid(&self, _: &Go) -> Option<Bid> {
        (self.0.fetch_add(1, Ordering::Relaxed) == 0).then_some(Bid(1))
    }

    #[step]
    async fn other(&self, _: &Go) -> Bid {
        Bid(2)
    }

    #[step(reruns)]
    async fn choose(&self, bids: &List<Bid>) -> Option<Bought> {
        (bids.len() == 2).then_some(Bought(1))
    }
}

#[test]
fn a_workflow_that_does_not_do_the_same_each_time_is_refused() {
    let runs = Arc::new(AtomicU64::new(0));
    let refusal = panic_of(|| explore(|| Scenario::new(Moody(Arc::clone(&runs))).start(Go)).survey());
    assert!(refusal.starts_with("a run does not do the same each time: after\n"), "{refusal}");
}

struct Sleepy;

#[workflow]
impl Sleepy {
    #[step]
    async fn slow(&self, _: &Go) -> Stock {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Stock(1)
    }

    #[step]
    async fn slower(&self, _: &Go) -> Note {
        tokio::time::sleep(Duration::from_hours(2)).await;
        Note(1)
    }

    #[step]
    async fn quick(&self, _: &Go) -> Bid {
        Bid(1)
    }

    #[step]
    async fn buy(&self, _: &Stock, _: &Bid, _: &Note) -> Bought {
        Bought(1)
    }
}

#[test]
fn what_sleeps_completes_before_or_after_what_does_not() {
    let explored = explore(|| Scenario::new(Sleepy).start(Go)).assert(|run| {
        run.assert_output(&Bought(1));
    });
    // After an hour the slow step completes, before or after the slower one has slept or completed: 3 orders. In each
    // of them the quick step has 5 places.
    assert_eq!(tried(&explored), 15, "{explored}");
}

struct Stuck;

#[workflow]
impl Stuck {
    #[step]
    async fn wait(&self, _: &Go) -> Bought {
        std::future::pending().await
    }
}

#[test]
fn a_run_that_never_ends_is_given_up() {
    let refusal = panic_of(|| explore(|| Scenario::new(Stuck).start(Go)).survey());
    assert!(
        refusal.starts_with("the run does not end: a step, a precondition or the store waits"),
        "{refusal}"
    );
}

/// Waits for ever if the second comes first.
struct StuckAtTimes;

#[workflow]
impl StuckAtTimes {
    #[step]
    async fn first(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn second(&self, _: &Go) -> Note {
        Note(2)
    }

    #[step]
    async fn look(&self, notes: &FixedList<Note, 2>) -> Bought {
        let [first, _] = notes.to_array();
        if first.0 == 2 {
            std::future::pending::<()>().await;
        }
        Bought(1)
    }
}

#[test]
fn an_order_in_which_a_run_hangs_is_a_failure_like_any_other() {
    let scenario = || Scenario::new(StuckAtTimes).start(Go);
    let failure = panic_of(|| explore(scenario).survey());
    assert!(
        failure.starts_with("the run does not end: a step, a precondition or the store waits"),
        "{failure}"
    );
    assert!(failure.contains("\n\nin this order:\n  1. second(#1) completes with Note\n"), "{failure}");
    assert!(failure.contains("\nthe run did this:\n#1 Go from outside\n"), "{failure}");
    let order = failure.split("replay with .replay(\"").nth(1).and_then(|order| order.strip_suffix("\")"));
    let again = panic_of(|| explore(scenario).replay(order.unwrap()).assert(|_| true));
    assert_eq!(again.split("found").next(), failure.split("found").next());
}

/// Loops endlessly.
struct Rounds;

#[workflow]
impl Rounds {
    #[step]
    async fn begin(&self, _: &Go) -> Bid {
        Bid(0)
    }

    #[step]
    async fn go_round(&self, bid: &Bid) -> Stock {
        Stock(bid.0)
    }

    #[step]
    async fn turn(&self, stock: &Stock) -> Option<Bid> {
        Some(Bid(stock.0 + 1))
    }

    #[step]
    async fn never(&self, stock: &Stock) -> Option<Bought> {
        (stock.0 == u64::MAX).then_some(Bought(0))
    }
}

#[test]
fn a_loop_without_an_end_is_a_failure_like_any_other() {
    let failure = panic_of(|| explore(|| Scenario::new(Rounds).start(Go)).survey());
    assert!(
        failure.starts_with("the run does not end: it has more than 4096 operations\n\nin this order:\n")
    );
    assert!(
        failure.contains("… 3996 more …") && failure.ends_with("replay with .replay(\"0\")"),
        "{failure}"
    );
}

#[test]
fn a_reply_that_panics_is_a_failure_like_any_other() {
    let scenario = || {
        let scenario = Scenario::new(Approval).send(Cancelled);
        scenario.reply(|_: &Approve| panic!("nobody is there")).start(Go)
    };
    let failure = panic_of(|| explore(scenario).survey());
    assert!(failure.starts_with("a reply panics: nobody is there\n\nin this order:\n"), "{failure}");
    assert!(failure.contains("the reply to #2 Approve arrives\n\nthe run did this:\n"), "{failure}");
}

/// Gives up after an hour.
struct Patient;

#[workflow]
impl Patient {
    #[step]
    async fn give_up(&self, _: &Go) -> Bought {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Bought(0)
    }

    #[step]
    async fn close(&self, _: &Cancelled) -> Bought {
        Bought(1)
    }
}

#[test]
fn a_timer_may_run_out_before_what_is_sent() {
    let scenario = || Scenario::new(Patient).send_after(Duration::from_hours(2), Cancelled).start(Go);
    let plain = futures::executor::block_on(async { scenario().await });
    plain.assert_output(&Bought(0));
    let explored = explore(scenario).survey();
    let outputs: Vec<_> = explored.outcomes().filter_map(Outcome::output).collect();
    assert!(explored.is_exhaustive(), "{explored}");
    assert!(outputs.contains(&"Bought 0") && outputs.contains(&"Bought 1"), "{outputs:?}");
}

/// Sets timers endlessly, without effect.
struct Heart;

#[workflow]
impl Heart {
    #[step]
    async fn beat(&self, _: &Go) -> Bid {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    #[step]
    async fn hang(&self, _: &Go) -> Stock {
        std::future::pending().await
    }

    #[step]
    async fn note(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn end(&self, note: &Note) -> Bought {
        Bought(note.0)
    }

    #[step]
    async fn read(&self, _: &Bid, _: &Stock) {}
}

#[test]
fn time_of_which_nothing_comes_adds_no_order() {
    let explored = explore(|| Scenario::new(Heart).start(Go)).survey();
    assert_eq!((explored.tried(), explored.outcomes().len(), explored.left_out()), (1, 1, 0), "{explored}");
    assert!(!explored.is_exhaustive(), "nobody knows what would come of more beats");
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
pub(crate) struct Cancelled;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
pub(crate) struct Approve;

pub(crate) struct Approval;

#[workflow]
impl Approval {
    #[step]
    async fn ask(&self, _: &Go) -> Approve {
        Approve
    }

    #[step]
    async fn approved(&self, approved: &Reply<Approve>) -> Bought {
        Bought(u64::from(**approved))
    }

    #[step]
    async fn cancelled(&self, _: &Cancelled) -> Bought {
        Bought(100)
    }
}

#[test]
fn what_arrives_from_outside_may_arrive_at_any_time() {
    let scenario = || Scenario::new(Approval).send(Cancelled).reply(|_: &Approve| true).start(Go);
    let explored = explore(scenario).assert(|run| run.outcome().is_ok());
    let outputs: Vec<_> = explored.outcomes().filter_map(Outcome::output).collect();
    assert!(outputs.contains(&"Bought 1") && outputs.contains(&"Bought 100"), "{outputs:?}");
}

#[test]
fn a_run_that_waits_for_what_is_not_in_the_scenario_is_asserted_on_as_it_waits() {
    let scenario = || Scenario::new(Approval).start(Go);
    let explored = explore(scenario).assert(|run| {
        assert!(run.explanation().is_some());
        run.assert_executions("ask", 1);
        run.status() == RunStatus::Waiting
    });
    let outcome = explored.outcomes().next().unwrap();
    assert_eq!((tried(&explored), outcome.status(), outcome.executions("ask")), (1, RunStatus::Waiting, 1));
    assert_eq!(outcome.to_string(), "waiting; executions: ask 1");
}

#[test]
fn a_run_that_waits_and_should_not_is_shown_as_it_waits() {
    let scenario = || Scenario::new(Approval).start(Go);
    let failure = panic_of(|| explore(scenario).assert(|run| run.status() == RunStatus::Completed));
    assert!(
        failure.contains(
            "#2 Approve of x1\nwaiting\n   for the reply to #2 Approve\n   for Cancelled from outside\n\n"
        ),
        "{failure}"
    );
}

#[test]
fn a_failure_of_a_step_is_an_outcome() {
    let explored = explore(|| Scenario::new(Panicking).start(Go)).survey();
    assert_eq!(explored.outcomes().map(Outcome::status).collect::<Vec<_>>(), [RunStatus::Failed]);
}

struct Panicking;

#[workflow]
impl Panicking {
    #[step]
    async fn panic(&self, go: &Go) -> Bought {
        panic!("{go:?} is not possible")
    }
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Offered(u64);

struct Offers;

#[workflow]
impl Offers {
    #[step]
    async fn choose(&self, _: &Go, offers: &FixedList<Offered, 2>) -> Bought {
        Bought(offers.iter().fold(0, |sum, offer| sum * 10 + offer.0))
    }
}

#[test]
fn what_is_sent_one_after_the_other_arrives_so() {
    let sent = || Scenario::new(Offers).send(Offered(1)).send(Offered(2)).start(Go);
    let explored = explore(sent).assert(|run| run.assert_output(&Bought(12)));
    assert_eq!(tried(&explored), 1);
    let timed = || {
        let scenario = Scenario::new(Offers).send(Offered(1));
        scenario.send_after(Duration::from_hours(1), Offered(2)).start(Go)
    };
    assert_eq!(explore(timed).survey().outcomes().len(), 2);
}
