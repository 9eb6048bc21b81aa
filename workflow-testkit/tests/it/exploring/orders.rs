//! The number of orders, and how they are counted, repeated and replayed.

use expect_test::expect;
use workflow_core::prelude::*;
use workflow_testkit::{Explored, Scenario, Start, explore};

use crate::support::panic_of;

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Go;

#[derive(Debug, Serialize, Deserialize, Event)]
pub(crate) struct Bid(pub(crate) u64);

#[derive(Debug, Serialize, Deserialize, Event)]
pub(crate) struct Stock(pub(crate) u64);

#[derive(Debug, Serialize, Deserialize, Event)]
pub(crate) struct Note(pub(crate) u64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Bought(pub(crate) u64);

pub(crate) fn tried(explored: &Explored) -> u64 {
    assert!(explored.is_exhaustive(), "{explored}");
    explored.tried()
}

/// Five concurrent steps, and one that sees the order of their completion.
struct Auction;

#[workflow]
impl Auction {
    #[step]
    async fn first(&self, _: &Go) -> Bid {
        Bid(1)
    }

    #[step]
    async fn second(&self, _: &Go) -> Bid {
        Bid(2)
    }

    #[step]
    async fn third(&self, _: &Go) -> Bid {
        Bid(3)
    }

    #[step]
    async fn fourth(&self, _: &Go) -> Bid {
        Bid(4)
    }

    #[step]
    async fn fifth(&self, _: &Go) -> Bid {
        Bid(5)
    }

    #[step]
    async fn choose(&self, bids: &FixedList<Bid, 5>) -> Bought {
        Bought(bids.iter().fold(0, |sum, bid| sum * 10 + bid.0))
    }
}

fn auction() -> Start<Auction> {
    Scenario::new(Auction).start(Go)
}

#[test]
fn five_that_run_at_the_same_time_have_all_their_orders() {
    let explored = explore(auction).survey();
    assert_eq!((tried(&explored), explored.outcomes().len()), (120, 120));
    assert_eq!(explored.to_string(), "tried 120 of 120 orders that can be told apart");
}

struct Apart;

#[workflow]
impl Apart {
    #[step]
    async fn bid(&self, _: &Go) -> Bid {
        Bid(1)
    }

    #[step]
    async fn stock(&self, _: &Go) -> Stock {
        Stock(2)
    }

    #[step]
    async fn note(&self, _: &Go) -> Note {
        Note(3)
    }

    #[step]
    async fn read(&self, _: &Note) {}

    #[step]
    async fn weigh(&self, _: &Bid) {}

    #[step]
    async fn count(&self, _: &Stock) {}
    #[step]
    async fn never(&self, _: &Go, _: &Bid) -> Option<Bought> {
        None
    }
}

#[test]
fn indistinguishable_orders_are_tried_once() {
    let explored = explore(|| Scenario::new(Apart).start(Go)).assert(|run| run.executions("weigh") == 1);
    assert_eq!(tried(&explored), 1);
    assert!(explored.left_out() > 0);
    let every = explore(|| Scenario::new(Apart).start(Go)).every_order().orders(20_000).survey();
    assert!(tried(&every) > 100);
    assert_eq!(every.to_string(), format!("tried {} of {0} orders", every.tried()));
}

/// The same for each page, in branches of their own.
struct Pages(u64);

#[workflow]
impl Pages {
    #[step]
    async fn split(&self, _: &Go) -> FanOut<Note> {
        (0..self.0).map(Note).collect()
    }

    #[step]
    async fn look(&self, note: &Note) -> Stock {
        Stock(note.0)
    }

    #[step]
    async fn price(&self, stock: &Stock) -> Bid {
        Bid(stock.0)
    }

    #[step]
    async fn sum(&self, _: &Go, bids: &Gather<Bid>) -> Bought {
        Bought(bids.ok().map(|bid| bid.0).sum())
    }
}

#[test]
fn ten_branches_have_one_order() {
    assert_eq!(tried(&explore(|| Scenario::new(Pages(10)).start(Go)).survey()), 1);
}

#[test]
fn beyond_the_limit_orders_are_drawn_from_the_seed() {
    let found = |seed| {
        let explored = explore(auction).orders(20).seed(seed).survey();
        assert!(!explored.is_exhaustive());
        assert!(explored.tried() > 20 && explored.tried() <= 40, "{explored}");
        let text = explored.to_string();
        assert!(text.starts_with("tried 20 orders that can be told apart, and "), "{text}");
        let rest = format!(
            " at random with the seed {seed}; there are about 120 in all, by an estimate, equivalent ones counted"
        );
        assert!(text.contains(&rest), "{text}");
        assert_eq!(explored.estimated_orders(), Some(120.0));
        explored.outcomes().map(|outcome| explored.order_of(outcome).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(found(7), found(7));
    assert_ne!(found(7), found(1_000));
    let drawn = |seed| found(seed).into_iter().skip(20).collect::<std::collections::HashSet<_>>();
    // Of 120 orders, two samples of 20 have some in common, but not nearly all.
    assert!(drawn(7).intersection(&drawn(8)).count() < 10);
}

#[test]
fn a_failure_is_reported_with_its_smallest_order_and_replays() {
    let third_is_not_first = |run: &workflow_testkit::TestRun<Auction>| {
        assert!(run.outcome().unwrap().0 / 10_000 != 3, "the third was first");
    };
    let failure = panic_of(|| explore(auction).assert(third_is_not_first));
    expect![[r#"
        the third was first

        in this order:
          1. third(#1) completes with Bid
          2. first(#1) completes with Bid
          3. second(#1) completes with Bid
          4. fourth(#1) completes with Bid
          5. fifth(#1) completes with Bid
          6. choose(#1) completes with Bought

        the run did this:
        #1 Go from outside
        x1 first by #1 starts
        x2 second by #1 starts
        x3 third by #1 starts
        x4 fourth by #1 starts
        x5 fifth by #1 starts
        x3 third: succeeded
        #2 Bid of x3: 3
        x1 first: succeeded
        #3 Bid of x1: 1
        x2 second: succeeded
        #4 Bid of x2: 2
        x4 fourth: succeeded
        #5 Bid of x4: 4
        x5 fifth: succeeded
        #6 Bid of x5: 5
        x6 choose by #6 with a list of 5: succeeded
        #7 Bought of x6: 31245
        completed with #7

        found in the order number 49, with the seed 0
        replay with .replay("2")"#]]
    .assert_eq(&failure);
    let replayed = panic_of(|| explore(auction).replay("2").assert(third_is_not_first));
    assert_eq!(replayed.split("found").next(), failure.split("found").next());
}

#[test]
fn a_failing_seed_fails_in_the_same_way_each_time() {
    let fails =
        || panic_of(|| explore(auction).orders(5).seed(3).assert(|run| run.outcome().unwrap().0 < 30_000));
    let failure = fails();
    assert_eq!(failure, fails());
    assert!(failure.starts_with("the assertion is false\n\nin this order:\n  1. third"), "{failure}");
}

#[test]
fn an_order_is_replayed_alone() {
    let explored = explore(auction).replay("4.3.2.1").assert(|run| run.assert_output(&Bought(54_321)));
    assert_eq!(explored.tried(), 1);
    assert!(!explored.is_exhaustive());
}

#[test]
fn an_order_that_does_not_fit_is_refused() {
    let refusal = panic_of(|| explore(auction).replay("7").survey());
    assert!(refusal.starts_with("the order 7 does not fit"), "{refusal}");
    let refusal = panic_of(|| explore(auction).replay("0.x").survey());
    assert!(refusal.starts_with("`0.x` is not an order such as `0.2.1`"), "{refusal}");
}

#[test]
fn an_exploration_in_a_runtime_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let refusal = std::panic::catch_unwind(|| runtime.block_on(async { explore(auction).survey() }));
    assert!(refusal.is_err());
}

/// The same race, with the choice of where its steps are polled.
macro_rules! races {
    ($($name:ident: [$($spawn:tt)*];)*) => {
        $(
            struct $name;

            #[workflow]
            impl $name {
                #[step($($spawn)*)]
                async fn first(&self, _: &Go) -> Bid {
                    Bid(1)
                }

                #[step($($spawn)*)]
                async fn second(&self, _: &Go) -> Bid {
                    tokio::task::yield_now().await;
                    Bid(2)
                }

                #[step($($spawn)*)]
                async fn third(&self, _: &Go) -> Bid {
                    Bid(3)
                }

                #[step($($spawn)*)]
                async fn choose(&self, bids: &FixedList<Bid, 3>) -> Bought {
                    Bought(bids.iter().fold(0, |sum, bid| sum * 10 + bid.0))
                }
            }
        )*
    };
}

races! {
    Learned: [];
    Spawned: [spawn];
    Kept: [spawn = false];
}

fn outputs<W: Workflow>(race: fn() -> Start<W>) -> std::collections::BTreeSet<String> {
    let explored = explore(race).survey();
    assert!(explored.is_exhaustive(), "{explored}");
    explored.outcomes().filter_map(|outcome| outcome.output().map(str::to_owned)).collect()
}

// S72
#[test]
fn where_executions_are_polled_changes_no_result_in_any_order() {
    let learned = outputs(|| Scenario::new(Learned).start(Go));
    assert_eq!(learned.len(), 6, "every order of three");
    assert_eq!(outputs(|| Scenario::new(Spawned).start(Go)), learned);
    assert_eq!(outputs(|| Scenario::new(Kept).start(Go)), learned);
}
