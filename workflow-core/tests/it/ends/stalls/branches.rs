//! Stalls of runs with branches: late events, refusals and failures in them.

use expect_test::expect;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use super::{Approve, NoPrice, stall, stall_of};
use crate::fixtures::{Alpha, Begin, Close, Done, Item, Part};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Score(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Facts(u32);

struct JoinedTooLate;

#[workflow]
impl JoinedTooLate {
    #[step]
    async fn parts(&self, begin: &Begin) -> FanOut<Part> {
        (0..begin.0).map(Part).collect()
    }

    #[step]
    async fn score(&self, part: &Part) -> Score {
        Score(part.0)
    }

    #[step]
    async fn mid(&self, scores: Gather<Score>) -> Facts {
        Facts(u32::try_from(scores.len()).unwrap())
    }

    #[step]
    async fn done(&self, facts: &Facts, score: &Score) -> Done {
        Done(facts.0 + score.0)
    }
}

// S30, S47
#[tokio::test]
async fn an_event_that_comes_after_the_branches_in_which_the_rest_is() {
    expect![[r#"
        the run of `JoinedTooLate` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `done` did not run
        - `done` did not run
            it needs `Facts`
                #9 `Facts` of `mid` came after the branch of #2 `Part` of `parts` had ended: take `Gather<Score>` beside it"#]]
    .assert_eq(&stall(JoinedTooLate).await.to_string());
}

struct ItemTooEarly;

#[workflow]
impl ItemTooEarly {
    #[step]
    async fn parts(&self, begin: &Begin) -> FanOut<Part> {
        (0..begin.0).map(Part).collect()
    }

    #[step]
    async fn score(&self, part: &Part) -> Score {
        Score(part.0)
    }

    #[step]
    async fn mid(&self, scores: Gather<Score>) -> Facts {
        Facts(u32::try_from(scores.len()).unwrap())
    }

    #[step]
    async fn done(&self, facts: &Facts, part: &Part) -> Done {
        Done(facts.0 + part.0)
    }
}

// S30, S47
#[tokio::test]
async fn an_event_that_comes_after_the_branch_of_the_item() {
    expect![[r#"
        the run of `ItemTooEarly` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `done` did not run
        - `done` did not run
            it needs `Facts`
                #9 `Facts` of `mid` came after the branch of #2 `Part` of `parts` had ended: take `Gather<Part>` beside it"#]]
    .assert_eq(&stall(ItemTooEarly).await.to_string());
}

struct SentTooLate;

#[workflow]
impl SentTooLate {
    #[step]
    async fn parts(&self, begin: &Begin) -> FanOut<Part> {
        (0..begin.0).map(Part).collect()
    }

    #[step]
    async fn score(&self, part: &Part, _alpha: &Alpha) -> Score {
        Score(part.0)
    }

    #[step]
    async fn end(&self, _close: &Close, scores: Gather<Score>) -> Done {
        Done(u32::try_from(scores.len()).unwrap())
    }
}

// S30, S47
#[tokio::test]
async fn an_outside_event_after_the_branches_is_reported_of_a_waiting_run() {
    let run = Scenario::new(SentTooLate).send(Alpha(0)).start(Begin(2)).await;
    run.assert_waiting();
    expect![[r#"
        run `scenario` of `SentTooLate`: waiting
        - no `Done` has ended the run yet
            `end` did not run
        - `parts` ran once
            x1, triggered by #1 `Begin`
        - `score` did not run
            not for #2 `Part` of `parts` in scope 1: it waited for `Alpha`
            not for #3 `Part` of `parts` in scope 2: it waited for `Alpha`
            not for #5 `Alpha`: it waited for `Part`
            it needs `Alpha`
                #5 `Alpha` came after the branch of #2 `Part` of `parts` had ended: take `Gather<Part>` beside it
        - `end` did not run
            not for #4 the gathered `Part` of `parts`: it waited for `Close`
            it needs `Close`
                `Close` comes from outside and was not sent"#]].assert_eq(&run.explanation().unwrap().to_string());
}

struct RefusedInside;

#[workflow]
impl RefusedInside {
    #[step]
    async fn a(&self, begin: &Begin) -> FanOut<Part> {
        (0..begin.0).map(Part).collect()
    }

    #[step]
    async fn b(&self, part: &Part) -> FanOut<Item> {
        (0..part.0).map(Item).collect()
    }

    #[precondition]
    fn no(item: &Item) -> bool {
        item.0 > 9
    }

    #[step(precondition = no)]
    async fn c(&self, item: &Item) -> Score {
        Score(item.0)
    }

    #[step]
    async fn d(&self, _scores: Gather<Score>) -> Facts {
        Facts(0)
    }

    #[step]
    async fn e(&self, facts: Gather<Facts>) -> Option<Done> {
        (facts.len() > 9).then_some(Done(0))
    }
}

// S18, S30
#[tokio::test]
async fn a_refusal_in_branches_is_the_only_reason() {
    expect![[r#"
        the run of `RefusedInside` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `e` ran once and emitted nothing
        - `c` did not run
            its precondition `no` said no 3 times, the last time at #9 `Item` of `b`"#]]
    .assert_eq(&stall(RefusedInside).await.to_string());
}

struct AnyOfThem;

#[workflow]
impl AnyOfThem {
    #[step]
    async fn x(&self, begin: &Begin) -> Option<Drafted> {
        (begin.0 > 9).then_some(Drafted::Facts(Facts(0)))
    }

    #[step]
    async fn y(&self, begin: &Begin) -> Option<FanOut<Part>> {
        (begin.0 > 9).then(|| (0..begin.0).map(Part).collect())
    }

    #[step]
    async fn ask(&self, _score: &Score) -> Approve {
        Approve
    }

    #[step(reruns)]
    async fn z(
        &self,
        drafted: Option<Drafted>,
        parts: Option<Gather<Part>>,
        approval: Option<Reply<Approve>>,
    ) -> Done {
        Done(u32::from(drafted.is_some() || parts.is_some() || approval.is_some()))
    }
}

#[derive(Debug, Clone, EventSet)]
enum Drafted {
    Facts(Facts),
    Score(Score),
}

// S9, S30
#[tokio::test]
async fn optional_inputs_are_named_as_the_step_takes_them() {
    expect![[r#"
        the run of `AnyOfThem` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `z` did not run
        - `z` did not run
            it needs `Facts`, `Score`, the gathered `Part` or the reply to `Approve`
                `x` ran once and emitted nothing
                `y` ran once and emitted nothing
                `ask` did not run
        - `ask` did not run
            it needs `Score`
                `x` ran once and emitted nothing"#]]
    .assert_eq(&stall(AnyOfThem).await.to_string());
}

struct NothingToGather;

#[workflow]
impl NothingToGather {
    #[step]
    async fn a(&self, begin: &Begin) -> FanOut<Part> {
        (0..begin.0).map(Part).collect::<FanOut<_>>().continue_others()
    }

    #[step]
    async fn b(&self, part: &Part) -> Result<Score, NoPrice> {
        Err(NoPrice(part.0))
    }

    #[step]
    async fn d(&self, scores: Gather<Score>) -> Vec<Facts> {
        scores.ok().map(|score| Facts(score.0)).collect()
    }

    #[step]
    async fn e(&self, facts: &Facts) -> Done {
        Done(facts.0)
    }
}

// S30, S49
#[tokio::test]
async fn failures_that_left_a_gather_nothing_are_named_with_their_branches() {
    expect![[r#"
        the run of `NothingToGather` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `e` did not run
        - `e` did not run
            it needs `Facts`
                `d` ran once and emitted nothing
        - `b` failed 3 times in the branches of #2 `Part`, #3 `Part` and #4 `Part`, the last time: 2 has no price"#]]
    .assert_eq(&stall(NothingToGather).await.to_string());
    expect![[r#"
        the run of `NothingToGather` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `e` did not run
        - `e` did not run
            it needs `Facts`
                `d` ran once and emitted nothing
        - `b` failed 9 times in the branches of #2 `Part`, #3 `Part`, #4 `Part`, #5 `Part`, #6 `Part` and 4 more, the last time: 8 has no price"#]]
    .assert_eq(&stall_of(Scenario::new(NothingToGather).start(Begin(9))).await.to_string());
}

struct FailedBeside;

#[workflow]
impl FailedBeside {
    #[step(on_error = "continue")]
    async fn note(&self, begin: &Begin) -> Result<(), NoPrice> {
        Err(NoPrice(begin.0))
    }

    #[step]
    async fn end(&self, begin: &Begin) -> Option<Done> {
        (begin.0 > 9).then_some(Done(0))
    }
}

// S29, S30
#[tokio::test]
async fn a_failure_without_a_dependent_step_is_named_as_well() {
    expect![[r#"
        the run of `FailedBeside` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `end` ran once and emitted nothing
        - `note` failed: 3 has no price"#]]
    .assert_eq(&stall(FailedBeside).await.to_string());
}

struct OncePerBranch;

#[workflow]
impl OncePerBranch {
    #[step]
    async fn a(&self, begin: &Begin) -> FanOut<Part> {
        (0..begin.0).map(Part).collect()
    }

    #[step]
    async fn b(&self, part: &Part) -> Vec<Item> {
        vec![Item(part.0), Item(part.0 + 1)]
    }

    #[step(max_executions = 1)]
    async fn c(&self, item: &Item) -> Option<Score> {
        (item.0 > 9).then_some(Score(0))
    }

    #[step]
    async fn d(&self, score: &Score) -> Facts {
        Facts(score.0)
    }

    #[step]
    async fn e(&self, facts: Gather<Facts>) -> Option<Done> {
        facts.ok().next().map(|facts| Done(facts.0))
    }
}

// S19, S30, S46
#[tokio::test]
async fn a_limit_that_is_met_in_each_branch() {
    expect![[r#"
        the run of `OncePerBranch` stalled: nothing runs and nothing can arrive
        - no `Done` ended the run
            `e` ran once and emitted nothing
        - `d` did not run
            it needs `Score`
                `c` ran 3 times, by its `max_executions` at most once in each branch, and emitted nothing
        - `c` ran 3 times, but not for #10 `Item` of `b`: by its `max_executions` it may run only once in each branch"#]]
    .assert_eq(&stall(OncePerBranch).await.to_string());
}
