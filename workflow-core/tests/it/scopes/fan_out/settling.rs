//! The times at which a branch settles and its fan-out is gathered (S47, S48).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;
use workflow_core::RunStatus;
use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_testkit::{Scenario, explore};

use super::{Noted, Told, noted, told};
use crate::fixtures::{Alpha, Begin, Close, Done, Item, Part, log_of, report_of};

/// An item makes as many parts as it says.
struct Parts;

#[workflow]
impl Parts {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Vec<Part> {
        (0..item.0).map(|part| Part(10 * item.0 + part)).collect()
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Told {
        told(parts.branches().map(|branch| {
            let parts: Vec<u32> = branch.events().map(|part| part.0).collect();
            format!("{:?} {parts:?}", branch.event().map(|part| part.0))
        }))
    }
}

// S48
#[tokio::test]
async fn a_branch_may_emit_nothing_one_or_several_and_is_gathered_all_the_same() {
    let run = Scenario::new(Parts).start(Begin(4)).await;
    run.assert_output(&told(["None []", "Some(10) [10]", "Some(20) [20, 21]", "Some(30) [30, 31, 32]"]));
}

// S48
#[tokio::test]
async fn a_fan_out_of_nothing_is_gathered_at_once() {
    let run = Scenario::new(Parts).start(Begin(0)).await;
    run.assert_output(&Told(vec![]));
    run.assert_quality(Quality::Clean);
    assert_eq!(log_of(run.report()), ["Begin", "split.Item.gathered", "Told"]);
    assert_eq!(run.report().branches.len(), 0);
}

// S48
#[tokio::test]
async fn branches_that_all_emit_nothing_are_gathered_too() {
    let run = Scenario::new(Parts).start(Begin(1)).await;
    assert_eq!(log_of(run.report()), ["Begin", "Item", "split.Item.gathered", "Told"]);
    run.assert_executions("end", 1);
}

/// Several sequential steps, and two concurrent ones.
struct Chain;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Half(u32);

#[workflow]
impl Chain {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn left(&self, item: &Item) -> Half {
        Half(item.0)
    }

    #[step]
    async fn right(&self, _item: &Item) {}

    #[step]
    async fn second(&self, half: &Half) -> Part {
        tokio::task::yield_now().await;
        Part(half.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.ok().count()).unwrap())
    }
}

// S47
#[test]
fn a_branch_is_settled_when_its_last_step_has_ended_and_not_before() {
    let explored = explore(|| Scenario::new(Chain).start(Begin(2))).every_order().assert(|run| {
        run.assert_output(&Done(2));
        // Of two steps in a branch one emits nothing.
        for step in ["left", "right", "second"] {
            run.assert_order(step, "end");
        }
    });
    assert!(explored.is_exhaustive());
}

struct AtOnce(Arc<Barrier>);

#[workflow]
impl AtOnce {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(spawn)]
    async fn work(&self, item: &Item) -> Part {
        self.0.wait().await;
        Part(item.0)
    }

    #[step]
    async fn note(&self, parts: &Gather<Part>, begin: &Begin) -> Counted {
        assert_eq!(parts.ok().count(), begin.0 as usize);
        Counted
    }

    #[step]
    async fn end(&self, _counted: &Counted) -> Done {
        tokio::task::yield_now().await;
        Done(0)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Counted;

// S48
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_gather_fires_once_although_its_branches_settle_at_the_same_moment() {
    for _ in 0..200 {
        let report = report_of(AtOnce(Arc::new(Barrier::new(8))), 8).await;
        assert_eq!(report.executions("note"), 1);
        let gathered = log_of(&report).iter().filter(|event| **event == "split.Item.gathered").count();
        assert_eq!(gathered, 1);
    }
}

/// The first branch loops without ever waiting; the others wait once.
struct Busy;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Hop(u32);

const HOPS: u32 = 100_000;

#[workflow]
impl Busy {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn first(&self, item: &Item) -> Option<Hop> {
        (item.0 == 0).then_some(Hop(HOPS))
    }

    #[step(loops)]
    async fn next(&self, hop: &Hop) -> Option<Hop> {
        hop.0.checked_sub(1).map(Hop)
    }

    #[step]
    async fn wait(&self, item: &Item) -> Option<Part> {
        tokio::task::yield_now().await;
        (item.0 > 0).then_some(Part(item.0))
    }

    #[step]
    async fn end(&self, part: &Part) -> Done {
        Done(part.0)
    }
}

// S21
#[tokio::test]
async fn a_branch_that_never_waits_lets_the_others_have_their_turn() {
    let report = report_of(Busy, 2).await;
    assert_eq!(report.status, RunStatus::Completed);
    assert!(report.executions("next") < u64::from(HOPS) / 10, "{}", report.executions("next"));
}

/// A branch that would take an outside event, but does not wait for it.
struct Idle;

#[workflow]
impl Idle {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn react(&self, item: &Item, _alpha: &Alpha) -> Part {
        Part(item.0)
    }

    #[step]
    async fn gathered(&self, parts: &Gather<Part>) -> Noted {
        Noted(format!("gathered {} of {}", parts.ok().count(), parts.len()))
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S47
#[tokio::test]
async fn an_event_from_outside_does_not_reopen_a_settled_branch() {
    let run = Scenario::new(Idle).send(Alpha(1)).send(Close).start(Begin(2)).await;
    run.assert_output(&Done(0));
    assert_eq!(noted(&run), ["gathered 0 of 2"]);
    run.assert_executions("react", 0);
}

/// A branch whose step waits for nothing but a precondition's answer.
struct Asked;

#[workflow]
impl Asked {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(precondition = wanted)]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[precondition]
    async fn wanted(&self, item: &Item) -> bool {
        tokio::time::sleep(Duration::from_secs(u64::from(2 - item.0))).await;
        item.0 > 0
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.ok().count()).unwrap())
    }
}

// S18, S47
#[tokio::test]
async fn a_branch_is_not_settled_while_a_precondition_is_being_asked_in_it() {
    let run = Scenario::new(Asked).start(Begin(2)).await;
    run.assert_output(&Done(1));
    // The branch waits for the last answer, which is no.
    assert_eq!(run.elapsed(), Duration::from_secs(2));
}
