//! Passing time besides step calls, and the reports where time was not passed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_testkit::{Explored, Outcome, Scenario, explore};

use crate::exploring::orders::{Bid, Bought, Go, Note, Stock, tried};

fn outputs(explored: &Explored) -> HashSet<&str> {
    explored.outcomes().filter_map(Outcome::output).collect()
}

/// Sleeps more often than the limit beside other operations.
struct Marathon(u32);

#[workflow]
impl Marathon {
    #[step]
    async fn run(&self, _: &Go) -> Bought {
        for _ in 0..self.0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Bought(2)
    }

    #[step]
    async fn bid(&self, _: &Go) -> Bid {
        Bid(1)
    }

    #[step]
    async fn stock(&self, bid: &Bid) -> Stock {
        Stock(bid.0)
    }

    #[step]
    async fn end(&self, stock: &Stock) -> Bought {
        Bought(stock.0)
    }
}

#[test]
fn an_exploration_that_gives_up_on_time_says_so() {
    let explored = explore(|| Scenario::new(Marathon(1_500)).start(Go)).survey();
    assert!(!explored.is_exhaustive());
    assert_eq!(
        explored.to_string(),
        "tried 1 order that can be told apart; \
         a step slept so often in a row that orders in which it wakes first were left out"
    );
}

#[test]
fn what_is_drawn_at_random_can_be_replayed() {
    let scenario = || Scenario::new(Marathon(700)).start(Go);
    for seed in 60..80 {
        let explored = explore(scenario).orders(1).seed(seed).survey();
        for outcome in explored.outcomes() {
            let order = explored.order_of(outcome).unwrap();
            let again = explore(scenario).replay(&order).survey();
            assert_eq!(again.outcomes().collect::<Vec<_>>(), [outcome], "seed {seed}: {order}");
        }
    }
}

/// Waits for an event that never comes, beside more orders than are tried.
struct Hanging;

#[workflow]
impl Hanging {
    #[step]
    async fn hang(&self, _: &Go) -> Bid {
        tokio::time::sleep(Duration::from_hours(1)).await;
        std::future::pending().await
    }

    #[step]
    async fn notes(&self, _: &Go) -> Vec<Note> {
        vec![Note(1), Note(2), Note(3)]
    }

    #[step]
    async fn work(&self, note: &Note) -> Stock {
        tokio::time::sleep(Duration::from_mins(note.0)).await;
        Stock(note.0)
    }

    #[step]
    async fn weigh(&self, _: &Bid) {}

    #[step]
    async fn sum(&self, stock: &FixedList<Stock, 3>) -> Bought {
        Bought(stock.iter().fold(0, |sum, stock| sum * 10 + stock.0))
    }
}

#[test]
fn time_that_was_drawn_and_did_not_pass_is_drawn_no_more() {
    for seed in 0..20 {
        let explored = explore(|| Scenario::new(Hanging).start(Go)).orders(1).seed(seed).assert(|run| {
            assert!(run.elapsed() <= Duration::from_hours(1), "{:?}", run.elapsed());
        });
        assert_eq!(outputs(&explored).len(), explored.outcomes().len());
    }
}

/// A child that is started and not awaited.
struct Child(Arc<AtomicBool>);

#[workflow]
impl Child {
    #[step]
    async fn sleep(&self, _: &Go) -> Bought {
        tokio::time::sleep(Duration::from_hours(1)).await;
        self.0.store(true, Ordering::SeqCst);
        Bought(0)
    }
}

struct Parent(Arc<AtomicBool>);

#[workflow]
impl Parent {
    #[step]
    async fn begin(&self, _: &Go, children: &Children) -> Result<Note, StepError> {
        children.start::<Child>(Go).await?;
        Ok(Note(1))
    }

    #[step]
    async fn look(&self, _: &Note) -> Bought {
        Bought(u64::from(self.0.load(Ordering::SeqCst)))
    }
}

#[test]
fn a_started_child_may_end_before_the_next_operation() {
    let explored = explore(|| {
        let woken = Arc::<AtomicBool>::default();
        let child = Child(Arc::clone(&woken));
        Scenario::new(Parent(woken)).engine(|engine| engine.workflow(child)).start(Go)
    })
    .survey();
    assert!(explored.is_exhaustive());
    assert_eq!(outputs(&explored), HashSet::from(["Bought 0", "Bought 1"]));
    assert!(explored.to_string().ends_with("; each child run was tried in one order only"), "{explored}");
}

/// Waits for a reply, while its child waits for another.
struct Waits;

struct Listening;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Answer;

#[workflow]
impl Waits {
    #[step]
    async fn begin(&self, _: &Go, children: &Children) -> Result<Note, StepError> {
        children.start::<Listening>(Go).await?;
        Ok(Note(1))
    }

    #[step]
    async fn end(&self, _: &Note, _: &Answer) -> Bought {
        Bought(1)
    }
}

#[workflow]
impl Listening {
    #[step]
    async fn end(&self, _: &Go, _: &Answer) -> Bought {
        Bought(1)
    }
}

#[test]
fn a_run_waits_although_its_child_does() {
    let scenario = || Scenario::new(Waits).engine(|engine| engine.workflow(Listening)).start(Go);
    let explored = explore(scenario).assert(|run| run.status() == workflow_core::RunStatus::Waiting);
    assert_eq!(tried(&explored), 1);
}

#[precondition]
async fn patient(_: &Bid) -> bool {
    tokio::time::sleep(Duration::from_hours(1)).await;
    true
}

/// Two ways to the end, one with a slow precondition.
struct Thinking;

#[workflow]
impl Thinking {
    #[step]
    async fn offer(&self, _: &Go) -> Bid {
        Bid(1)
    }

    #[step(precondition = patient)]
    async fn accept(&self, bid: &Bid) -> Bought {
        Bought(bid.0)
    }

    #[step]
    async fn stock(&self, _: &Go) -> Stock {
        Stock(2)
    }

    #[step]
    async fn sell(&self, stock: &Stock) -> Bought {
        Bought(stock.0)
    }
}

#[test]
fn the_sleep_of_a_precondition_may_be_over_before_what_comes_next() {
    let explored = explore(|| Scenario::new(Thinking).start(Go)).survey();
    assert!(explored.is_exhaustive());
    assert_eq!(outputs(&explored), HashSet::from(["Bought 1", "Bought 2"]));
}

/// One of two bids comes at the second attempt.
#[derive(Default)]
struct Flaky(AtomicU32);

#[workflow]
impl Flaky {
    #[step]
    async fn one(&self, _: &Go) -> Result<Bid, StepError> {
        if self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(StepError::transient("not yet"));
        }
        Ok(Bid(1))
    }

    #[step]
    async fn two(&self, _: &Go) -> Note {
        Note(2)
    }

    #[step]
    async fn three(&self, note: &Note) -> Bid {
        Bid(note.0)
    }

    #[step]
    async fn choose(&self, bids: &FixedList<Bid, 2>) -> Bought {
        Bought(bids.iter().fold(0, |sum, bid| sum * 10 + bid.0))
    }
}

#[test]
fn the_next_attempt_may_come_before_and_after_all_else() {
    let scenario = || Scenario::new(Flaky::default()).start(Go);
    let (reduced, every) = (explore(scenario).survey(), explore(scenario).every_order().survey());
    for explored in [&reduced, &every] {
        assert!(explored.is_exhaustive(), "{explored}");
        assert_eq!(outputs(explored), HashSet::from(["Bought 12", "Bought 21"]));
    }
    assert!(reduced.tried() <= every.tried());
}

#[test]
fn an_order_with_a_next_attempt_is_the_same_each_time() {
    let scenario = || Scenario::new(Flaky::default()).start(Go);
    let explored = explore(scenario).survey();
    for outcome in explored.outcomes() {
        let order = explored.order_of(outcome).unwrap();
        let again = explore(scenario).replay(&order).assert(|run| {
            assert_eq!(run.report().executions("one"), 1);
            assert_eq!(run.elapsed(), Duration::from_secs(10));
        });
        assert_eq!(again.outcomes().collect::<Vec<_>>(), [outcome]);
    }
}

/// Draws values from a source that no order controls.
static SOLD: AtomicU32 = AtomicU32::new(0);

struct Fickle;

#[workflow]
impl Fickle {
    #[step]
    async fn sell(&self, _: &Go) -> Bought {
        Bought(SOLD.fetch_add(1, Ordering::SeqCst).into())
    }
}

#[test]
fn an_order_that_does_not_fail_again_is_not_offered_for_replay() {
    let failure = crate::support::panic_of(|| {
        explore(|| Scenario::new(Fickle).start(Go)).assert(|run| run.outcome().unwrap().0 > 0);
    });
    assert!(
        failure.contains("a run does not do the same each time: the order 0 did not fail again"),
        "{failure}"
    );
    assert!(failure.contains("`spawn_blocking`") && !failure.contains(".replay("), "{failure}");
}
