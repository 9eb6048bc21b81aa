//! A scenario's settings apply in every order.

use std::collections::HashSet;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_testkit::{Explored, Mock, Outcome, Scenario, ScenarioOf, explore};

use crate::exploring::orders::{Bid, Bought, Go, Note, tried};
use crate::scenarios::runs::{Approval, Approve, Cancelled};
use crate::support::panic_of;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Budget {
    most: u64,
}

/// Two steps request offers concurrently; the first one within the remaining budget is taken.
struct Purchase;

#[workflow]
impl Purchase {
    #[step]
    async fn ask_acme(&self, _: &Go) -> Bid {
        Bid(1_000)
    }

    #[step]
    async fn ask_brook(&self, _: &Go) -> Bid {
        Bid(30)
    }

    #[step]
    async fn choose(
        &self,
        bids: &FixedList<Bid, 2>,
        budget: Config<Budget>,
        run: RunContext,
        thread: ThreadContext,
    ) -> Result<Bought, StepError> {
        let spent = run.get::<u64>("spent").await?.unwrap_or(0)
            + thread.increment("purchases", 1).await?.unsigned_abs();
        let left = budget.most - spent;
        Ok(Bought(bids.iter().map(|bid| bid.0).find(|cents| *cents <= left).unwrap_or(0)))
    }
}

fn purchase() -> ScenarioOf<Purchase> {
    Scenario::new(Purchase)
        .replace("ask_acme", |_: &Go| Bid(20))
        .config(Budget { most: 100 })
        .run_context("spent", 60_u64)
        .thread_context("purchases", 9)
}

fn outputs(explored: &Explored) -> HashSet<&str> {
    explored.outcomes().filter_map(Outcome::output).collect()
}

#[test]
fn stand_ins_configuration_and_contexts_are_those_of_the_scenario() {
    let explored = explore(|| purchase().start(Go)).assert(|run| {
        run.assert_executions("choose", 1);
        run.assert_order("ask_acme", "choose");
        assert_eq!(run.emitted::<Bid>().len(), 2);
    });
    assert_eq!((tried(&explored), outputs(&explored)), (2, HashSet::from(["Bought 20", "Bought 30"])));
}

#[test]
fn the_testkits_assertions_show_what_the_run_did_once() {
    let failure = panic_of(|| explore(|| purchase().start(Go)).assert(|run| run.assert_output(&Bought(20))));
    assert_eq!(failure.matches("\ncompleted with #").count(), 1, "{failure}");
    assert!(failure.contains("in this order:\n  1. ask_brook(#1) completes with Bid\n"), "{failure}");
}

/// Each of two notes is read separately, and no step can see which comes first.
struct Notes;

#[workflow]
impl Notes {
    #[step]
    async fn one(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn two(&self, _: &Go) -> Note {
        Note(2)
    }

    #[step(on_error = "continue")]
    async fn read(&self, note: &Note) -> Bid {
        Bid(note.0)
    }

    #[step]
    async fn bid(&self, bid: &Bid) -> Option<Bought> {
        (bid.0 > 2).then_some(Bought(0))
    }
}

#[test]
fn which_call_is_failed_depends_on_the_order() {
    let scenario = || Scenario::new(Notes).start(Go);
    assert_eq!(explore(scenario).survey().outcomes().len(), 1);
    let fails = || Scenario::new(Notes).fail_first("read", 1, || StepError::permanent("torn")).start(Go);
    let (reduced, every) = (explore(fails).survey(), explore(fails).every_order().survey());
    let found = |explored: &Explored| explored.outcomes().cloned().collect::<HashSet<_>>();
    assert_eq!(found(&reduced), found(&every));
    assert_eq!(found(&reduced).len(), 2);
}

#[test]
fn what_has_a_time_may_arrive_at_any_time_too() {
    let scenario = || {
        let scenario = Scenario::new(Approval).send_after(Duration::from_hours(9), Cancelled);
        scenario.reply_after(Duration::from_hours(1), |_: &Approve| true).start(Go)
    };
    let explored = explore(scenario).assert(|run| run.elapsed().is_zero());
    assert_eq!(outputs(&explored), HashSet::from(["Bought 1", "Bought 100"]));
}

struct Spinning;

#[workflow]
impl Spinning {
    #[step]
    async fn spin(&self, _: &Go) -> Bought {
        loop {
            tokio::task::yield_now().await;
        }
    }
}

#[test]
fn a_step_that_does_nothing_but_yield_is_noticed() {
    let refusal = panic_of(|| explore(|| Scenario::new(Spinning).start(Go)).survey());
    assert!(refusal.starts_with("the run does not end: one call of `spin` was polled"), "{refusal}");
}

#[test]
fn a_mock_is_refused() {
    let refusal = panic_of(|| {
        explore(|| Scenario::new(Approval).mock("ask", Mock::pair().0).start(Go)).survey();
    });
    assert_eq!(refusal, "`ask` is mocked: a test cannot answer by hand in every order; use `replace`");
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Reminder;

/// Bids during a timer: steps with and without a sleep may take longer than the timer.
struct Hurried;

#[workflow]
impl Hurried {
    #[step]
    async fn set(&self, _: &Go) -> Timer<Reminder> {
        Timer::after(Duration::from_hours(1), Reminder)
    }

    #[step]
    async fn bid(&self, _: &Go) -> Bid {
        tokio::time::sleep(Duration::from_mins(1)).await;
        Bid(7)
    }

    #[step]
    async fn give_up(&self, _: &Reminder) -> Bought {
        Bought(0)
    }

    #[step]
    async fn choose(&self, bid: &Bid) -> Bought {
        Bought(bid.0)
    }
}

#[test]
fn a_timer_may_come_before_what_a_step_does_after_a_shorter_sleep() {
    let explored = explore(|| Scenario::new(Hurried).start(Go)).survey();
    assert!(explored.is_exhaustive());
    assert_eq!(outputs(&explored), HashSet::from(["Bought 0", "Bought 7"]));
    let instantly = explore(|| Scenario::new(Hurried).replace("bid", |_: &Go| Bid(7)).start(Go)).survey();
    assert_eq!(outputs(&instantly), outputs(&explored));
}
