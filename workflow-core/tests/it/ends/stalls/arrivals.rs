//! Stalls of runs with possible arrivals, none of which would make a step run.

use expect_test::expect;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use super::{Approve, stall, stall_of};
use crate::fixtures::{Alpha, Begin, Beta, Close, Done, Item, Part};

struct SentInVain;

#[workflow]
impl SentInVain {
    #[step]
    async fn find(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 9).then_some(Item(0))
    }

    #[step]
    async fn join(&self, alphas: FixedList<Alpha, 2>, item: &Item) -> Done {
        Done(item.0 + alphas.iter().map(|alpha| alpha.0).sum::<u32>())
    }
}

// S30
#[tokio::test]
async fn an_external_event_that_would_make_no_step_run() {
    expect![[r#"
        the run of `SentInVain` stalled: nothing runs, and `Alpha` would make no step run
        - no `Done` ended the run
            `join` did not run
        - `join` did not run
            it needs 2 of `Alpha` and has 0
                `Alpha` comes from outside and was not sent
            it needs `Item`
                `find` ran once and emitted nothing"#]]
    .assert_eq(&stall(SentInVain).await.to_string());
    Scenario::new(SentInVain).start(Begin(10)).await.assert_waiting();
}

struct AskedInVain;

#[workflow]
impl AskedInVain {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Approve {
        Approve
    }

    #[step]
    async fn find(&self, begin: &Begin) -> Option<Item> {
        (begin.0 > 9).then_some(Item(0))
    }

    #[step]
    async fn decide(&self, approval: &Reply<Approve>, item: &Item) -> Done {
        Done(item.0 + u32::from(**approval))
    }

    #[step]
    async fn note(&self, _alpha: &Alpha, _item: &Item) {}
}

// S30
#[tokio::test]
async fn a_request_whose_reply_would_make_no_step_run() {
    expect![[r#"
        the run of `AskedInVain` stalled: nothing runs, and `Alpha` or the reply to `Approve` would make no step run
        - no `Done` ended the run
            `decide` did not run
        - `decide` did not run
            it needs the reply to `Approve`
                `Approve` was asked and not answered
            it needs `Item`
                `find` ran once and emitted nothing
        - `note` did not run
            it needs `Alpha`
                `Alpha` comes from outside and was not sent
            it needs `Item`
                `find` ran once and emitted nothing"#]]
    .assert_eq(&stall(AskedInVain).await.to_string());
    Scenario::new(AskedInVain).start(Begin(10)).await.assert_waiting();
}

struct UsedUp;

#[workflow]
impl UsedUp {
    #[step(max_executions = 1)]
    async fn first(&self, alpha: &Alpha) -> Option<Done> {
        (alpha.0 > 9).then_some(Done(alpha.0))
    }

    #[step]
    async fn begin(&self, _begin: &Begin) {}
}

// S19, S30
#[tokio::test]
async fn an_external_event_that_comes_after_the_limit() {
    expect![[r#"
        the run of `UsedUp` stalled: nothing runs, and `Alpha` would make no step run
        - no `Done` ended the run
            `first` ran once and emitted nothing"#]]
    .assert_eq(&stall_of(Scenario::new(UsedUp).send(Alpha(1)).start(Begin(0))).await.to_string());
}

struct Together;

#[workflow]
impl Together {
    #[step]
    async fn begin(&self, _begin: &Begin) {}

    #[step]
    async fn join(&self, alpha: &Alpha, beta: &Beta) -> Done {
        Done(alpha.0 + beta.0)
    }
}

// S30
#[tokio::test]
async fn events_that_can_arrive_one_after_the_other_are_waited_for() {
    let run = Scenario::new(Together).send(Beta(1)).send(Alpha(2)).start(Begin(0)).await;
    run.assert_output(&Done(3));
}

struct TooLateForBranches;

#[workflow]
impl TooLateForBranches {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Part> {
        (0..begin.0).map(Part).collect()
    }

    #[step]
    async fn mark(&self, part: &Part, _close: &Close) -> Item {
        Item(part.0)
    }

    #[step]
    async fn sum(&self, items: Gather<Item>) -> Option<Done> {
        items.ok().next().map(|item| Done(item.0))
    }
}

// S30, S47
#[tokio::test]
async fn an_external_event_that_settled_branches_do_not_see() {
    expect![[r#"
        the run of `TooLateForBranches` stalled: nothing runs, and `Close` would make no step run
        - no `Done` ended the run
            `sum` ran once and emitted nothing
        - `mark` did not run
            it needs `Close`
                `Close` comes from outside and was not sent"#]]
    .assert_eq(&stall(TooLateForBranches).await.to_string());
}

struct DeafBranches;

#[workflow]
impl DeafBranches {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Part> {
        (0..begin.0).map(Part).collect()
    }

    #[step]
    async fn ask(&self, _part: &Part) -> Approve {
        Approve
    }

    #[step]
    async fn find(&self, part: &Part) -> Option<Item> {
        (part.0 > 9).then_some(Item(0))
    }

    #[step]
    async fn decide(&self, _approval: &Reply<Approve>, item: &Item) -> Beta {
        Beta(item.0)
    }

    #[step]
    async fn sum(&self, items: Gather<Beta>) -> Option<Done> {
        items.ok().next().map(|item| Done(item.0))
    }
}

// S30, S47, S48
#[tokio::test]
async fn replies_that_only_settle_branches_are_waited_for_if_the_gather_makes_a_step_run() {
    Scenario::new(DeafBranches).start(Begin(2)).await.assert_waiting();
    let run = Scenario::new(DeafBranches).reply(|_: &Approve| true).start(Begin(2)).await;
    run.assert_stalled("`sum` ran once and emitted nothing");
}
