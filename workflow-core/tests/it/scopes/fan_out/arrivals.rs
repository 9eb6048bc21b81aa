//! Events from outside that arrive while branches are open (S45, S46).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::report::{BoundInput, LoggedEvent};
use workflow_testkit::{Scenario, explore};

use super::{Noted, noted, noted_sorted};
use crate::fixtures::{Alpha, Begin, Beta, Done, Item, Part, log_of};

/// A branch is open until its part arrives.
struct Listening;

#[workflow]
impl Listening {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn hold(&self, item: &Item) -> Part {
        Part(item.0)
    }

    /// Runs in each branch: it takes the branch's item.
    #[step]
    async fn inside(&self, item: &Item, alpha: &Alpha) -> Noted {
        Noted(format!("inside {} {}", item.0, alpha.0))
    }

    /// Runs in the root only: none of its inputs belongs to a branch.
    #[step]
    async fn outside(&self, _begin: &Begin, _alpha: &Alpha) {}

    /// Runs in each branch once its part arrives, with the latest outside event.
    #[step]
    async fn after(&self, part: &Part, alpha: &Alpha) -> Noted {
        Noted(format!("after {} {}", part.0, alpha.0))
    }

    /// No step in the branches takes this event.
    #[step]
    async fn elsewhere(&self, _beta: &Beta) {}

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(u32::try_from(parts.ok().count()).unwrap())
    }
}

// S46, S47
#[test]
fn an_outer_event_is_evaluated_in_every_open_branch_and_in_none_that_has_settled() {
    let listening = || Scenario::new(Listening).send(Alpha(1)).send(Beta(9)).start(Begin(2));
    explore(listening).assert(|run| {
        let (log, arrived) = (&run.report().log, log_of(run.report()));
        let after_alpha = log.iter().skip_while(|logged| &*logged.event != "Alpha");
        let open = after_alpha.filter(|logged| &*logged.event == "Part").map(|part| part.scope.0 - 1);
        let mut expected: Vec<String> =
            open.flat_map(|item| ["inside", "after"].map(|step| format!("{step} {item} 1"))).collect();
        expected.sort();
        assert_eq!(noted_sorted(run), expected);
        run.assert_executions("outside", arrived.contains(&"Alpha").into());
        run.assert_executions("elsewhere", arrived.contains(&"Beta").into());
        run.assert_output(&Done(2));
    });
}

// S45
#[test]
fn a_branch_binds_the_latest_outer_event_when_it_gets_that_far() {
    explore(|| Scenario::new(Listening).send(Alpha(0)).send(Alpha(1)).start(Begin(2))).assert(|run| {
        let report = run.report();
        for part in report.log.iter().filter(|logged| &*logged.event == "Part") {
            let is_seen = |logged: &&LoggedEvent| &*logged.event == "Alpha" && logged.seq < part.seq;
            let latest = report.log.iter().rfind(is_seen);
            let expected = latest.map(|alpha| vec![BoundInput::One(part.seq), BoundInput::One(alpha.seq)]);
            let by_part = report.trace.iter().filter(|trace| trace.trigger == part.seq);
            let bound = by_part.filter(|trace| &*trace.step == "after").map(|trace| trace.inputs.clone());
            assert!(bound.eq(expected));
        }
        run.assert_output(&Done(2));
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// Two levels of open branches.
struct Deep;

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
        tokio::time::sleep(Duration::from_secs(2)).await;
        Part(item.0)
    }

    #[step]
    async fn deepest(&self, item: &Item, alpha: &Alpha) -> Noted {
        Noted(format!("item {} alpha {}", item.0, alpha.0))
    }

    #[step]
    async fn middle(&self, outer: &Outer, alpha: &Alpha) -> Noted {
        Noted(format!("outer {} alpha {}", outer.0, alpha.0))
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
    let run = Scenario::new(Deep).send_after(Duration::from_secs(1), Alpha(1)).start(Begin(2)).await;
    let expected = [
        "outer 0 alpha 1",
        "item 0 alpha 1",
        "item 1 alpha 1",
        "outer 1 alpha 1",
        "item 2 alpha 1",
        "item 3 alpha 1",
    ];
    assert_eq!(noted(&run), expected);
    run.assert_output(&Done(2));
    run.assert_executions("join", 2);
}
