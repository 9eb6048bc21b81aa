//! Events from outside that arrive while branches are open (S45, S46).

use workflow_core::RunStatus;
use workflow_core::prelude::*;

use super::Gates;
use crate::fixtures::{Alpha, Begin, Beta, Done, Item, Part, Seen, everyone_else, started};

/// Branches that stay open until their gates open.
struct Listening {
    gates: Gates,
    seen: Seen,
}

#[workflow]
impl Listening {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn hold(&self, item: &Item) -> Part {
        self.gates.pass(item.0).await;
        Part(item.0)
    }

    /// In each branch: it takes the branch's item.
    #[step]
    async fn inside(&self, item: &Item, alpha: &Alpha) {
        self.seen.note(format!("inside {} {}", item.0, alpha.0));
    }

    /// In the run only: nothing it takes is a branch's own.
    #[step]
    async fn outside(&self, begin: &Begin, alpha: &Alpha) {
        self.seen.note(format!("outside {} {}", begin.0, alpha.0));
    }

    /// In each branch once its part is there, with the latest of what came from outside.
    #[step]
    async fn after(&self, part: &Part, alpha: &Alpha) {
        self.seen.note(format!("after {} {}", part.0, alpha.0));
    }

    /// Not taken by any step in the branches.
    #[step]
    async fn elsewhere(&self, beta: &Beta) {
        self.seen.note(format!("elsewhere {}", beta.0));
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.ok().count()).unwrap())
    }
}

// S46
#[tokio::test]
async fn an_outer_event_is_seen_by_every_open_branch_and_triggers_only_where_it_should() {
    let (gates, seen) = (Gates::closed(3), Seen::default());
    let run = started(Listening { gates: gates.clone(), seen: seen.clone() }, 3).await;
    everyone_else().await;
    run.send(Alpha(1)).await.unwrap();
    run.send(Beta(9)).await.unwrap();
    everyone_else().await;
    assert_eq!(seen.lines(), ["outside 3 1", "inside 0 1", "inside 1 1", "inside 2 1", "elsewhere 9"]);
    for place in 0..3 {
        gates.open(place);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(3));
    assert_eq!(seen.lines()[5..], ["after 0 1", "after 1 1", "after 2 1"]);
}

// S46, S47
#[tokio::test]
async fn an_outer_event_is_not_evaluated_in_a_branch_that_has_settled() {
    let (gates, seen) = (Gates::closed(3), Seen::default());
    let run = started(Listening { gates: gates.clone(), seen: seen.clone() }, 3).await;
    everyone_else().await;
    gates.open(1);
    everyone_else().await;
    run.send(Alpha(1)).await.unwrap();
    everyone_else().await;
    assert_eq!(seen.lines(), ["outside 3 1", "inside 0 1", "inside 2 1"]);
    gates.open(0);
    gates.open(2);
    assert_eq!(run.outcome().await.unwrap(), Done(3));
}

// S45
#[tokio::test]
async fn a_branch_binds_the_latest_outer_event_when_it_gets_that_far() {
    let (gates, seen) = (Gates::closed(2), Seen::default());
    let run = started(Listening { gates: gates.clone(), seen: seen.clone() }, 2).await;
    for number in 0..2 {
        everyone_else().await;
        run.send(Alpha(number)).await.unwrap();
        gates.open(number as usize);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    let after: Vec<String> = seen.lines().into_iter().filter(|line| line.starts_with("after")).collect();
    // The first branch has its part after the first arrival.
    assert_eq!(after[0], "after 0 0");
    assert_eq!(after[1], "after 1 1");
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// Two levels of open branches.
struct Deep {
    gates: Gates,
    seen: Seen,
}

#[workflow]
impl Deep {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect()
    }

    #[step]
    async fn again(&self, outer: &Outer) -> FanOut<Item> {
        (0..2).map(|item| Item(2 * outer.0 + item)).collect()
    }

    #[step]
    async fn hold(&self, item: &Item) -> Part {
        self.gates.pass(item.0).await;
        Part(item.0)
    }

    #[step]
    async fn deepest(&self, item: &Item, alpha: &Alpha) {
        self.seen.note(format!("item {} alpha {}", item.0, alpha.0));
    }

    #[step]
    async fn middle(&self, outer: &Outer, alpha: &Alpha) {
        self.seen.note(format!("outer {} alpha {}", outer.0, alpha.0));
    }

    #[step]
    async fn join(&self, outer: &Outer, _parts: &Gather<Part>) -> Joined {
        Joined(outer.0)
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        Done(u32::try_from(joined.ok().count()).unwrap())
    }
}

// S46
#[tokio::test]
async fn an_outer_event_reaches_every_depth_once_per_scope_that_has_something_of_its_own() {
    let (gates, seen) = (Gates::closed(4), Seen::default());
    let run = started(Deep { gates: gates.clone(), seen: seen.clone() }, 2).await;
    everyone_else().await;
    run.send(Alpha(1)).await.unwrap();
    everyone_else().await;
    assert_eq!(run.status(), RunStatus::Running);
    let expected = [
        "outer 0 alpha 1",
        "item 0 alpha 1",
        "item 1 alpha 1",
        "outer 1 alpha 1",
        "item 2 alpha 1",
        "item 3 alpha 1",
    ];
    assert_eq!(seen.lines(), expected);
    (0..4).for_each(|place| gates.open(place));
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    assert_eq!(run.report().await.unwrap().executions("join"), 2);
}
