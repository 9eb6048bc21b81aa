//! The known bugs of joins after fan-outs, each named after its symptom (S44–S50). Where an order could trigger one,
//! the tests try all orders, or many.

use std::cell::Cell;
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::ExecutionOutcome;
use workflow_testkit::{Scenario, explore};

use crate::fixtures::{Begin, Done, Item, Part, Saw, log_of, outcomes_of, saw};
use crate::scopes::fan_out::Level;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Round(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// The plain case: items, by default a part of each, and one join.
#[derive(Default, Clone, Copy)]
struct Plain {
    without: Option<u32>,
    failing: Option<u32>,
}

#[workflow]
impl Plain {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Option<Part>, StepError> {
        if self.failing == Some(item.0) {
            return Err(StepError::permanent("broken"));
        }
        Ok((self.without != Some(item.0)).then_some(Part(item.0)))
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> (Saw, Done) {
        let all = parts.branches().map(|branch| match (branch.event(), branch.failure()) {
            (Some(part), _) => part.0.to_string(),
            (None, Some(_)) => "failed".into(),
            (None, None) => "none".into(),
        });
        (Saw(all.collect::<Vec<_>>().join(" ")), Done(u32::try_from(parts.len()).unwrap()))
    }
}

impl Plain {
    /// Asserts that in every order of the branches there is one join, and its input.
    fn joins(self, items: u32, expected: &str) {
        let explored = explore(|| Scenario::new(self).start(Begin(items))).every_order().assert(|run| {
            run.assert_output(&Done(items));
            run.assert_executions("join", 1);
            assert_eq!(saw(run), [expected]);
        });
        assert!(explored.is_exhaustive());
        assert_eq!(explored.tried(), (1..=u64::from(items)).product::<u64>());
    }
}

// S48
#[test]
fn fires_per_arrival() {
    Plain::default().joins(5, "0 1 2 3 4");
}

// S47, S48
#[test]
fn fires_early_on_partial_results() {
    Plain::default().joins(3, "0 1 2");
}

// S48
#[test]
fn never_fires_when_one_branch_yields_nothing() {
    for (without, expected) in (0..3).zip(["none 1 2", "0 none 2", "0 1 none"]) {
        Plain { without: Some(without), failing: None }.joins(3, expected);
    }
}

// S48
#[test]
fn hangs_on_zero_items() {
    Plain::default().joins(0, "");
}

struct Paired;

#[workflow]
impl Paired {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn pair(&self, item: &Item, part: &Part) -> Joined {
        assert_eq!(item.0, part.0);
        Joined(item.0)
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        assert!(
            joined.branches().all(|branch| branch.item::<Item>().unwrap().0 == branch.event().unwrap().0)
        );
        Done(u32::try_from(joined.ok().count()).unwrap())
    }
}

// S45
#[test]
fn pairs_items_across_branches() {
    for (items, orders) in [(3, 100), (10, 20)] {
        let exploration = explore(|| Scenario::new(Paired).start(Begin(items))).every_order().orders(orders);
        let explored = exploration.assert(|run| run.assert_output(&Done(items)));
        assert_eq!(explored.is_exhaustive(), items == 3);
    }
}

/// Rounds with a fan-out each.
struct Looping {
    /// Whether a round begins before the previous fan-out is gathered.
    overlaps: bool,
}

const PER_ROUND: u32 = 3;

#[workflow]
impl Looping {
    #[step]
    async fn first(&self, _begin: &Begin) -> Round {
        Round(0)
    }

    #[step]
    async fn split(&self, round: &Round) -> FanOut<Item> {
        (0..PER_ROUND).map(|item| Item(PER_ROUND * round.0 + item)).collect()
    }

    #[step(loops, precondition = may_overlap)]
    async fn go_on(&self, round: &Round) -> Option<Round> {
        (round.0 == 0).then_some(Round(1))
    }

    #[precondition]
    fn may_overlap(&self, _round: &Round) -> bool {
        self.overlaps
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> (Saw, Option<Round>, Joined) {
        let numbers: Vec<u32> = parts.ok().map(|part| part.0).collect();
        let round = numbers[0] / PER_ROUND;
        let next = (round == 0 && !self.overlaps).then_some(Round(1));
        (Saw(format!("{numbers:?}")), next, Joined(round))
    }

    #[step]
    async fn end(&self, _joined: &FixedList<Joined, 2>) -> Done {
        Done(2)
    }
}

// S44, S48
#[test]
fn second_loop_iteration_hangs() {
    let explored =
        explore(|| Scenario::new(Looping { overlaps: false }).start(Begin(0))).every_order().assert(|run| {
            run.assert_output(&Done(2));
            assert_eq!(saw(run), ["[0, 1, 2]", "[3, 4, 5]"]);
        });
    assert!(explored.is_exhaustive());
}

// S44, S48
#[test]
fn gather_sees_a_later_iterations_items() {
    let later_ended_first = Cell::new(0);
    let exploration = explore(|| Scenario::new(Looping { overlaps: true }).start(Begin(0)));
    exploration.every_order().orders(60).assert(|run| {
        run.assert_output(&Done(2));
        let mut saw = saw(run);
        later_ended_first.update(|times| times + u32::from(saw[0] == "[3, 4, 5]"));
        saw.sort();
        assert_eq!(saw, ["[0, 1, 2]", "[3, 4, 5]"]);
    });
    assert!(later_ended_first.get() > 0);
}

// S49
#[test]
fn loses_a_branch_that_fails() {
    for (failing, expected) in (0..3).zip(["failed 1 2", "0 failed 2", "0 1 failed"]) {
        Plain { failing: Some(failing), without: None }.joins(3, expected);
    }
}

struct Nested;

#[workflow]
impl Nested {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect()
    }

    #[step]
    async fn again(&self, _outer: &Outer) -> FanOut<Item> {
        (0..5).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn join(&self, outer: &Outer, parts: &Gather<Part>) -> (Saw, Joined) {
        (Saw(format!("inner {}", parts.len())), Joined(outer.0))
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> (Saw, Done) {
        (Saw(format!("outer {}", joined.len())), Done(0))
    }
}

// S48
#[test]
fn nested_join_fires_for_the_inner_count() {
    explore(|| Scenario::new(Nested).start(Begin(2))).orders(50).assert(|run| {
        assert_eq!(saw(run), ["inner 5", "inner 5", "outer 2"]);
        run.assert_executions("end", 1);
    });
}

// S48
#[test]
fn order_of_results_differs_from_order_of_items() {
    Plain::default().joins(4, "0 1 2 3");
}

/// The first inner branch fails, which drops the others; the outer branch continues.
struct Cancelling;

#[workflow]
impl Cancelling {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn again(&self, outer: &Outer) -> FanOut<Item> {
        (0..2).map(|item| Item(2 * outer.0 + item)).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 == 0 { Err(StepError::permanent("broken")) } else { Ok(Part(item.0)) }
    }

    #[step(reruns)]
    async fn watch(&self, parts: &List<Part>) -> Saw {
        Saw(format!("{:?}", parts.iter().map(|part| part.0).collect::<Vec<_>>()))
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Joined {
        Joined(parts.ok().map(|part| part.0).sum())
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        Done(joined.ok().map(|joined| joined.0).sum())
    }
}

// S49
#[test]
fn result_of_a_cancelled_branch_leaks() {
    let was_dropped = Cell::new(0);
    explore(|| Scenario::new(Cancelling).start(Begin(2))).orders(50).assert(|run| {
        run.assert_output(&Done(5));
        let works = outcomes_of(run.report(), "work");
        let dropped = works.iter().filter(|outcome| ***outcome == ExecutionOutcome::Dropped).count();
        was_dropped.update(|times| times + dropped);
        assert_eq!(log_of(run.report()).iter().filter(|event| **event == "Part").count(), 3 - dropped);
        // The dropped branch may have ended before, and been recorded.
        let (cancelled, mut others): (Vec<_>, Vec<_>) = saw(run).into_iter().partition(|line| line == "[1]");
        others.sort();
        assert_eq!(others, ["[2]", "[3]"]);
        assert!(cancelled.len() <= 1 - dropped);
    });
    assert!(was_dropped.get() > 0);
}

#[derive(Clone, Default)]
struct Bounded(Level);

#[workflow]
impl Bounded {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(4)
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        self.0.rise();
        tokio::time::sleep(Duration::from_secs(u64::from(7 * item.0 % 11))).await;
        self.0.fall();
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

// S50
#[tokio::test]
async fn unbounded_parallelism() {
    let workflow = Bounded::default();
    Scenario::new(workflow.clone()).start(Begin(100)).await.assert_output(&Done(100));
    assert_eq!(workflow.0.highest(), 4);
}
