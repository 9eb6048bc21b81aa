//! Explorations of runs with a store: the time of confirmations is part of the order.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use workflow_core::Workflow;
use workflow_core::prelude::*;
use workflow_testkit::{Explored, Outcome, Scenario, Start, TestRun, explore};

use crate::exploring::orders::{Bid, Bought, Go, Note, Stock, tried};
use crate::support::panic_of;

fn outcomes(explored: &Explored) -> HashSet<Outcome> {
    assert!(explored.is_exhaustive(), "{explored}");
    explored.outcomes().cloned().collect()
}

/// Explores with a store, reduced and not, and without one. Asserts that the store adds outcomes and loses none, and
/// that the reduction loses none. Returns the numbers of orders, reduced and not.
fn compare<W: Workflow>(scenario: impl Fn() -> Start<W>) -> [u64; 2] {
    let without = explore(&scenario).survey();
    let reduced = explore(&scenario).durable().orders(20_000).survey();
    let every = explore(&scenario).durable().every_order().orders(20_000).survey();
    let (found, expected) = (outcomes(&reduced), outcomes(&every));
    assert_eq!(found, expected, "{reduced}, and {every}");
    assert!(outcomes(&without).is_subset(&found), "{without}, and {reduced}");
    [reduced.tried(), every.tried()]
}

thread_local! {
    /// The number of calls of `tell`. An explored run uses the thread of its test.
    static TOLD: Cell<usize> = const { Cell::new(0) };
}

/// Ends whether or not all steps have seen the note.
struct Hopes;

#[workflow]
impl Hopes {
    #[step]
    async fn note(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn tell(&self, _: &Note) {
        TOLD.set(TOLD.get() + 1);
    }

    #[step]
    async fn stock(&self, _: &Go) -> Stock {
        Stock(2)
    }

    #[step]
    async fn finish(&self, stock: &Stock) -> Bought {
        Bought(stock.0)
    }
}

fn hopes() -> Start<Hopes> {
    TOLD.set(0);
    Scenario::new(Hopes).start(Go)
}

/// Whether `tell` has seen everything in the log.
fn told(run: &TestRun<Hopes>) -> bool {
    let notes = run.report().log.iter().filter(|logged| &*logged.event == "Note").count();
    TOLD.get() == notes
}

#[test]
fn what_depends_on_when_the_store_confirms_is_found() {
    explore(hopes).assert(told);
    let said = panic_of(|| explore(hopes).durable().assert(told));
    assert!(said.contains("the store confirms #2 Stock\n"), "{said}");
    assert!(said.contains("replay with .replay("), "{said}");
}

#[test]
fn an_order_of_confirmations_is_replayed() {
    let said = panic_of(|| explore(hopes).durable().assert(told));
    let order = said.split("replay(\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an order");
    let again = panic_of(|| explore(hopes).durable().replay(order).assert(told));
    assert!(again.contains(&format!("replay with .replay(\"{order}\")")), "{again}");
}

#[test]
fn orders_with_a_store_are_bounded() {
    let [reduced, every] = compare(hopes);
    assert!(reduced <= every && every <= 60, "{reduced} of {every}");
}

/// Writes to a context, which no confirmation depends on.
struct Counting;

#[workflow]
impl Counting {
    #[step]
    async fn one(&self, _: &Go, context: RunContext) -> Result<Bid, StepError> {
        Ok(Bid(context.increment("count", 1).await?.unsigned_abs()))
    }

    #[step]
    async fn two(&self, _: &Go) -> Stock {
        Stock(2)
    }

    #[step]
    async fn finish(&self, bid: &Bid, stock: &Stock, context: RunContext) -> Result<Bought, StepError> {
        context.set("finished", true).await?;
        Ok(Bought(bid.0 + stock.0))
    }
}

#[test]
fn confirmations_commute_with_context_operations() {
    let [reduced, every] = compare(|| Scenario::new(Counting).start(Go));
    assert!(reduced < every, "{reduced} of {every}");
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Hint(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u64)]
struct Ask(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Late(u64);

/// Waits for a reply, a timer and an event: the first two count.
struct Waits;

#[workflow]
impl Waits {
    #[step]
    async fn ask(&self, _: &Go) -> (Ask, Timer<Late>) {
        (Ask(1), Timer::after(Duration::from_secs(5), Late(2)))
    }

    #[step]
    async fn answered(&self, reply: &Reply<Ask>) -> Bid {
        Bid(**reply)
    }

    #[step]
    async fn late(&self, late: &Late) -> Bid {
        Bid(late.0)
    }

    #[step]
    async fn hear(&self, hint: &Hint) -> Bid {
        Bid(hint.0)
    }

    #[step]
    async fn choose(&self, bids: &FixedList<Bid, 2>) -> Bought {
        Bought(bids.iter().fold(0, |all, bid| all * 10 + bid.0))
    }
}

/// The outputs of runs with a store: at least all of those without.
fn outputs<W: Workflow>(scenario: impl Fn() -> Start<W>) -> Vec<String> {
    let durable = explore(&scenario).durable().orders(20_000).survey();
    let without = explore(&scenario).survey();
    assert!(outcomes(&without).is_subset(&outcomes(&durable)), "{without}, and {durable}");
    let found: BTreeSet<String> = durable.outcomes().filter_map(Outcome::output).map(str::to_owned).collect();
    found.into_iter().collect()
}

#[test]
fn replies_and_timers_come_before_and_after_confirmations() {
    let outputs = outputs(|| Scenario::new(Waits).reply(|ask: &Ask| ask.0).start(Go));
    assert_eq!(outputs, ["Bought 12", "Bought 21"]);
}

#[test]
fn timers_and_what_is_sent_come_before_and_after_confirmations() {
    let outputs = outputs(|| Scenario::new(Waits).send(Hint(3)).start(Go));
    assert_eq!(outputs, ["Bought 23", "Bought 32"]);
}

#[test]
fn one_step_after_the_other_has_one_order_with_a_store_too() {
    struct Alone;

    #[workflow]
    impl Alone {
        #[step]
        async fn first(&self, _: &Go) -> Note {
            Note(1)
        }

        #[step]
        async fn second(&self, note: &Note) -> Bought {
            Bought(note.0)
        }
    }

    let explored = explore(|| Scenario::new(Alone).start(Go)).durable().survey();
    assert_eq!((tried(&explored), explored.outcomes().len()), (1, 1), "{explored}");
}
