//! Operations that must not be swapped: for each rule of commutation, a workflow that would detect a weaker rule.

use std::collections::BTreeSet;

use workflow_core::StepFailed;
use workflow_core::prelude::*;
use workflow_testkit::{Scenario, Start, Tested, explore};

use crate::exploring::orders::{Bid, Bought, Go, Note, Stock};

/// The set of all outputs, with every order and with the reduced ones.
pub(crate) fn outputs<W: Tested>(scenario: impl Fn() -> Start<W>) -> BTreeSet<String> {
    let (reduced, every) =
        (explore(&scenario).survey(), explore(&scenario).every_order().orders(50_000).survey());
    assert!(reduced.is_exhaustive() && every.is_exhaustive(), "{reduced}, and {every}");
    let [reduced, every] = [&reduced, &every].map(|explored| {
        let outputs = explored.outcomes().map(|outcome| outcome.output().unwrap_or("none").to_owned());
        outputs.collect::<BTreeSet<_>>()
    });
    assert_eq!(reduced, every);
    reduced
}

/// One at a time: the first to come is processed first, and its result comes first.
struct Queue;

#[workflow]
impl Queue {
    #[step]
    async fn first(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn second(&self, _: &Go) -> Note {
        Note(2)
    }

    #[step(concurrency = 1)]
    async fn work(&self, note: &Note) -> Bid {
        Bid(note.0)
    }

    #[step]
    async fn collect(&self, bids: &FixedList<Bid, 2>) -> Bought {
        Bought(bids.iter().fold(0, |sum, bid| sum * 10 + bid.0))
    }
}

#[test]
fn the_order_in_which_a_queue_is_entered_is_tried() {
    let outputs = outputs(|| Scenario::new(Queue).start(Go));
    assert_eq!(outputs, ["Bought 12", "Bought 21"].map(str::to_owned).into());
}

/// Two at a time: the third begins when either ends, and may come before the other's effects.
struct Counter;

#[workflow]
impl Counter {
    #[step]
    async fn all(&self, _: &Go) -> Vec<Note> {
        vec![Note(1), Note(2), Note(3)]
    }

    #[step(concurrency = 2)]
    async fn work(&self, note: &Note, context: RunContext) -> Result<Option<Stock>, StepError> {
        if note.0 == 2 {
            context.set("elsewhere", 1).await?;
            context.set("elsewhere", 2).await?;
            return Ok(None);
        }
        let order = context.update("order", |there: Option<u64>| there.unwrap_or(0) * 10 + note.0).await?;
        Ok((order > 10).then_some(Stock(order)))
    }

    #[step]
    async fn buy(&self, stock: &Stock) -> Bought {
        Bought(stock.0)
    }
}

#[test]
fn each_first_end_under_full_concurrency_is_tried() {
    let outputs = outputs(|| Scenario::new(Counter).start(Go));
    assert_eq!(outputs, ["Bought 13", "Bought 31"].map(str::to_owned).into());
}

/// The first of two, which come through branches of their own, is let in.
struct Gate;

#[workflow]
impl Gate {
    #[step]
    async fn split(&self, _: &Go) -> FanOut<Note> {
        FanOut::from_iter([Note(1), Note(2)])
    }

    #[step]
    async fn go(&self, note: &Note) -> Stock {
        Stock(note.0)
    }

    #[step(concurrency = 1)]
    async fn enter(&self, stock: &Stock, context: RunContext) -> Result<Option<Bid>, StepError> {
        if stock.0 == 1 {
            context.set("seen", true).await?;
            return Ok(None);
        }
        Ok(context.get::<bool>("seen").await?.is_some().then_some(Bid(stock.0)))
    }

    #[step]
    async fn close(&self, bids: &Gather<Bid>) -> Bought {
        Bought(bids.ok().map(|bid| bid.0).sum())
    }
}

#[test]
fn a_room_is_one_room_to_all_branches() {
    let outputs = outputs(|| Scenario::new(Gate).start(Go));
    assert_eq!(outputs, ["Bought 0", "Bought 2"].map(str::to_owned).into());
}

/// Only the first is executed.
struct Once;

#[workflow]
impl Once {
    #[step]
    async fn first(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn second(&self, _: &Go) -> Note {
        Note(2)
    }

    #[step(max_executions = 1)]
    async fn take(&self, note: &Note) -> Bought {
        Bought(note.0)
    }
}

#[test]
fn every_order_of_using_up_a_limit_is_tried() {
    let outputs = outputs(|| Scenario::new(Once).start(Go));
    assert_eq!(outputs, ["Bought 1", "Bought 2"].map(str::to_owned).into());
}

/// Two fan-outs of one step; only the first gathered counts.
struct Twice;

#[workflow]
impl Twice {
    #[step]
    async fn begin(&self, _: &Go) -> Vec<Note> {
        vec![Note(1), Note(2)]
    }

    #[step]
    async fn split(&self, note: &Note) -> FanOut<Stock> {
        FanOut::from_iter([Stock(note.0)])
    }

    #[step]
    async fn go(&self, stock: &Stock, context: RunContext) -> Result<Bid, StepError> {
        if stock.0 == 1 {
            context.set("elsewhere", 1).await?;
            context.set("elsewhere", 2).await?;
        }
        Ok(Bid(stock.0))
    }

    #[step(max_executions = 1)]
    async fn close(&self, bids: &Gather<Bid>) -> Bought {
        Bought(bids.ok().map(|bid| bid.0).sum())
    }
}

#[test]
fn which_fan_out_of_a_step_is_gathered_first_is_tried() {
    let outputs = outputs(|| Scenario::new(Twice).start(Go));
    assert_eq!(outputs, ["Bought 1", "Bought 2"].map(str::to_owned).into());
}

/// The third execution of the run records which of two it is.
struct Third;

#[workflow]
impl Third {
    #[step]
    async fn first(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn second(&self, _: &Go) -> Note {
        Note(2)
    }

    #[step]
    async fn record(&self, note: &Note, info: RunInfo) -> Option<Bought> {
        (info.execution().0 == 3).then_some(Bought(note.0))
    }
}

#[test]
fn which_number_an_execution_has_is_tried() {
    let outputs = outputs(|| Scenario::new(Third).start(Go));
    assert_eq!(outputs, ["Bought 1", "Bought 2"].map(str::to_owned).into());
}

/// The number of an execution, through an injectable that only this test knows.
struct Number(u64);

impl workflow_core::StepInput for Number {
    const SPEC: workflow_core::signature::InputSpec = workflow_core::signature::InputSpec::injected("Number");
    type Item<'a> = Self;

    fn fill(slot: workflow_core::signature::Slot<'_>) -> Result<Self, StepError> {
        Ok(Self(slot.run_info().execution().0))
    }
}

struct Opaque;

#[workflow]
impl Opaque {
    #[step]
    async fn first(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn second(&self, _: &Go) -> Note {
        Note(2)
    }

    #[step]
    async fn record(&self, note: &Note, number: Number) -> Option<Bought> {
        (number.0 == 3).then_some(Bought(note.0))
    }
}

#[test]
fn what_an_injectable_of_ones_own_may_look_at_is_tried() {
    let outputs = outputs(|| Scenario::new(Opaque).start(Go));
    assert_eq!(outputs, ["Bought 1", "Bought 2"].map(str::to_owned).into());
}

/// An event that no step takes is part of the outcome too.
struct Untaken;

#[workflow]
impl Untaken {
    #[step]
    async fn count(&self, _: &Go, context: RunContext) -> Result<Note, StepError> {
        Ok(Note(context.increment("count", 1).await?.unsigned_abs()))
    }

    #[step]
    async fn jump(&self, _: &Go, context: RunContext) -> Result<Stock, StepError> {
        Ok(Stock(context.update("count", |there: Option<u64>| there.unwrap_or(0) * 10 + 5).await?))
    }

    #[step]
    async fn read(&self, _: &Note, _: &Stock) {}

    #[step]
    async fn never(&self, note: &Note) -> Option<Bought> {
        (note.0 > 100).then_some(Bought(0))
    }
}

#[test]
fn what_was_emitted_tells_outcomes_apart() {
    let explored = explore(|| Scenario::new(Untaken).start(Go)).survey();
    assert_eq!(explored.outcomes().len(), 2, "{explored}");
}

/// Keys of one name in the contexts of the run and of its thread.
struct TwoContexts;

#[workflow]
impl TwoContexts {
    #[step]
    async fn one(&self, _: &Go, context: RunContext) -> Result<Bid, StepError> {
        context.set("key", 1).await?;
        Ok(Bid(1))
    }

    #[step]
    async fn two(&self, _: &Go, context: ThreadContext) -> Result<Stock, StepError> {
        context.set("key", 2).await?;
        Ok(Stock(2))
    }

    #[step]
    async fn look(&self, _: &Bid) {}

    #[step]
    async fn count(&self, stock: &Stock) -> Option<Bought> {
        (stock.0 > 2).then_some(Bought(0))
    }
}

#[test]
fn a_key_of_the_run_is_not_the_same_key_of_its_thread() {
    let explored = explore(|| Scenario::new(TwoContexts).start(Go)).survey();
    assert_eq!((explored.is_exhaustive(), explored.tried()), (true, 1));
}

/// A list shows every key of a context.
struct Listing;

#[workflow]
impl Listing {
    #[step]
    async fn write(&self, _: &Go, context: RunContext) -> Result<(), StepError> {
        Ok(context.set("key", 1).await?)
    }

    #[step]
    async fn list(&self, _: &Go, context: RunContext) -> Result<Bought, StepError> {
        Ok(Bought(u64::from(!context.list(None, 10).await?.is_empty())))
    }
}

#[test]
fn a_list_is_tried_before_and_after_each_write_of_its_context() {
    let outputs = outputs(|| Scenario::new(Listing).start(Go));
    assert_eq!(outputs, ["Bought 0", "Bought 1"].map(str::to_owned).into());
}

/// A failure contains its execution.
struct Failing;

#[workflow]
impl Failing {
    #[step]
    async fn first(&self, _: &Go) -> Note {
        Note(1)
    }

    #[step]
    async fn second(&self, _: &Go) -> Note {
        Note(2)
    }

    #[step]
    async fn fail(&self, note: &Note) -> Result<Bid, StepError> {
        Err(StepError::permanent(note.0.to_string()))
    }

    #[step]
    async fn weigh(&self, _: &Bid) {}

    #[step(catches = [fail])]
    async fn catch(&self, failed: &StepFailed) -> Result<Option<Bought>, StepError> {
        let note = failed.error.parse()?;
        Ok((failed.execution.0 == 3).then_some(Bought(note)))
    }
}

#[test]
fn which_number_a_failed_execution_has_is_tried() {
    let outputs = outputs(|| Scenario::new(Failing).start(Go));
    assert_eq!(outputs, ["Bought 1", "Bought 2"].map(str::to_owned).into());
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Page(u64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Line(u64);

/// Two fan-outs that have nothing to do with each other.
struct Two;

#[workflow]
impl Two {
    #[step]
    async fn one(&self, _: &Go) -> FanOut<Note> {
        FanOut::from_iter([Note(1)])
    }

    #[step]
    async fn two(&self, _: &Go) -> FanOut<Stock> {
        FanOut::from_iter([Stock(1)])
    }

    #[step]
    async fn read(&self, note: &Note) -> Page {
        Page(note.0)
    }

    #[step]
    async fn count(&self, stock: &Stock) -> Line {
        Line(stock.0)
    }

    #[step]
    async fn close(&self, _: &Gather<Page>) -> Bought {
        Bought(1)
    }

    #[step]
    async fn add(&self, _: &Gather<Line>) {}
}

#[test]
fn what_a_gather_holds_is_of_its_own_fan_out() {
    let scenario = || Scenario::new(Two).start(Go);
    let (reduced, every) =
        (explore(scenario).survey(), explore(scenario).every_order().orders(50_000).survey());
    let [found, expected] = [&reduced, &every]
        .map(|explored| explored.outcomes().cloned().collect::<std::collections::HashSet<_>>());
    assert_eq!(found, expected, "{reduced}, and {every}");
    // The outcomes differ only in the other fan-out's progress.
    assert_eq!(expected.len(), 4, "{every}");
}

/// Two fan-outs, one of which records the first of its branches.
struct Numbered;

#[workflow]
impl Numbered {
    #[step]
    async fn one(&self, _: &Go) -> FanOut<Note> {
        FanOut::from_iter([Note(1)])
    }

    #[step]
    async fn two(&self, _: &Go) -> FanOut<Stock> {
        FanOut::from_iter([Stock(1)])
    }

    #[step]
    async fn read(&self, note: &Note) -> Page {
        Page(note.0)
    }

    #[step]
    async fn add(&self, _: &Gather<Stock>) {}

    #[step]
    async fn close(&self, pages: &Gather<Page>) -> Bought {
        Bought(pages.branches().map(|branch| u64::from(branch.scope().0)).sum())
    }
}

#[test]
fn which_number_a_branch_has_is_tried() {
    assert_eq!(outputs(|| Scenario::new(Numbered).start(Go)).len(), 2);
}

/// Reads the other offer, if it is there by then.
struct Reading;

#[workflow]
impl Reading {
    #[step]
    async fn offer(&self, _: &Go) -> Bid {
        Bid(1)
    }

    #[step]
    async fn note(&self, _: &Go) -> Note {
        Note(2)
    }

    #[step]
    async fn buy(&self, bid: &Bid, note: Passive<&Note>) -> Bought {
        Bought(bid.0 + note.map_or(0, |note| note.0))
    }
}

// S58
#[test]
fn the_order_of_an_event_and_a_passive_read_is_tried() {
    let outputs = outputs(|| Scenario::new(Reading).start(Go));
    assert_eq!(outputs, ["Bought 1", "Bought 3"].map(str::to_owned).into());
}

/// Ranks its branches, which run in any order.
struct Ranking;

#[workflow]
impl Ranking {
    #[step]
    async fn split(&self, _: &Go) -> FanOut<Stock> {
        (1..=3).map(Stock).collect()
    }

    #[step]
    async fn run(&self, stock: &Stock) -> Note {
        Note(stock.0)
    }

    #[step]
    async fn rank(&self, notes: Gather<Note>) -> Bought {
        Bought(notes.branches().fold(0, |sum, branch| sum * 10 + u64::from(branch.settled())))
    }
}

// S59
#[test]
fn the_order_in_which_branches_settle_is_tried_where_a_step_asks_for_it() {
    let outputs = outputs(|| Scenario::new(Ranking).start(Go));
    let all = [12, 21, 102, 120, 201, 210];
    assert_eq!(outputs, all.map(|order| format!("Bought {order}")).into());
}
