//! When a branch is settled, and when its fan-out is gathered (S47, S48).

use std::sync::Arc;

use tokio::sync::Barrier;
use workflow_core::prelude::*;
use workflow_core::{Quality, RunStatus};

use super::Gates;
use crate::fixtures::{
    Alpha, Begin, Close, Done, Item, Part, Seen, everyone_else, log_of, report_of, started,
};

/// An item makes as many parts as it says.
struct Parts(Seen);

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
    async fn end(&self, parts: &Gather<Part>) -> Done {
        for branch in parts.branches() {
            let parts: Vec<u32> = branch.events().map(|part| part.0).collect();
            self.0.note(format!("{:?} {parts:?}", branch.event().map(|part| part.0)));
        }
        Done(u32::try_from(parts.ok().count()).unwrap())
    }
}

// S48
#[tokio::test]
async fn a_branch_may_emit_nothing_one_or_several_and_is_gathered_all_the_same() {
    let seen = Seen::default();
    let done = Parts(seen.clone()).run(Begin(4)).await.unwrap();
    assert_eq!(done, Done(6));
    let expected = ["None []", "Some(10) [10]", "Some(20) [20, 21]", "Some(30) [30, 31, 32]"];
    assert_eq!(seen.lines(), expected);
}

// S48
#[tokio::test]
async fn a_fan_out_of_nothing_is_gathered_at_once() {
    let seen = Seen::default();
    let report = report_of(Parts(seen.clone()), 0).await;
    assert_eq!((report.status, report.quality), (RunStatus::Completed, Quality::Clean));
    assert_eq!(log_of(&report), ["Begin", "split.Item.gathered", "Done"]);
    assert_eq!((report.branches.len(), seen.lines().len()), (0, 0));
}

// S48
#[tokio::test]
async fn branches_that_all_emit_nothing_are_gathered_too() {
    let report = report_of(Parts(Seen::default()), 1).await;
    assert_eq!(log_of(&report), ["Begin", "Item", "split.Item.gathered", "Done"]);
    assert_eq!(report.executions("end"), 1);
}

/// Several steps one after the other, and two side by side.
struct Chain(Gates);

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
        self.0.pass(2 * item.0).await;
        Half(item.0)
    }

    #[step]
    async fn right(&self, item: &Item) {
        self.0.pass(2 * item.0 + 1).await;
    }

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
#[tokio::test]
async fn a_branch_is_settled_when_its_last_step_has_ended_and_not_before() {
    let gates = Gates::closed(4);
    let run = started(Chain(gates.clone()), 2).await;
    // The last gate is of a step that emits nothing.
    for place in 0..4 {
        everyone_else().await;
        assert_eq!(run.status(), RunStatus::Running);
        gates.open(place);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(2));
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

/// A branch that would take an event from outside, but does not wait for it.
struct Idle(Seen);

#[workflow]
impl Idle {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn react(&self, item: &Item, alpha: &Alpha) -> Part {
        self.0.note(format!("item {} alpha {}", item.0, alpha.0));
        Part(item.0)
    }

    #[step]
    async fn gathered(&self, parts: &Gather<Part>) {
        self.0.note(format!("gathered {} of {}", parts.ok().count(), parts.len()));
    }

    #[step]
    async fn end(&self, _close: &Close) -> Done {
        Done(0)
    }
}

// S47
#[tokio::test]
async fn an_event_from_outside_does_not_reopen_a_settled_branch() {
    let seen = Seen::default();
    let run = started(Idle(seen.clone()), 2).await;
    assert_eq!(run.settled().await, RunStatus::Waiting);
    run.send(Alpha(1)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    run.send(Close).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    assert_eq!(seen.lines(), ["gathered 0 of 2"]);
    assert_eq!(run.report().await.unwrap().executions("react"), 0);
}

/// A branch whose step waits for nothing but a precondition's answer.
struct Asked(Gates);

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
        self.0.pass(item.0).await;
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
    let gates = Gates::closed(2);
    let run = started(Asked(gates.clone()), 2).await;
    for place in [1, 0] {
        everyone_else().await;
        assert_eq!(run.status(), RunStatus::Running);
        gates.open(place);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}
