//! Runs that sleep, wait, fail, hang or differ from one time to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use workflow_core::RunStatus;
use workflow_core::prelude::*;
use workflow_testkit::{Outcome, Scenario, explore};

use crate::orders::{Bid, Bought, Go, Note, Stock, tried};
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
fn what_sleeps_completes_after_what_does_not() {
    let explored = explore(|| Scenario::new(Sleepy).start(Go)).assert(|run| {
        run.assert_output(&Bought(1));
    });
    assert_eq!(tried(&explored), 1);
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
    assert!(refusal.starts_with("the run does not end: a step or a precondition waits"), "{refusal}");
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
