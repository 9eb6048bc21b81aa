//! Loops around fan-outs, in branches, and both (S44, S48).

use workflow_core::prelude::*;
use workflow_testkit::{Scenario, explore};

use super::{Noted, noted, noted_sorted};
use crate::fixtures::{Begin, Done, Item, Part};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Round(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Finished(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Text(u32);

/// A number of rounds, each with its own fan-out: round n has n % 4 items.
struct Rounds;

#[workflow]
impl Rounds {
    #[step]
    async fn first(&self, _begin: &Begin) -> Round {
        Round(0)
    }

    #[step]
    async fn split(&self, round: &Round) -> FanOut<Item> {
        (0..round.0 % 4).map(|item| Item(100 * round.0 + item)).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        for _ in 0..item.0 % 3 {
            tokio::task::yield_now().await;
        }
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> (Finished, Noted) {
        let numbers: Vec<u32> = parts.ok().map(|part| part.0).collect();
        (Finished(u32::try_from(parts.len()).unwrap()), Noted(format!("{numbers:?}")))
    }

    #[step(loops, precondition = is_over)]
    async fn next(
        &self,
        begin: &Begin,
        round: &Round,
        _all: &List<Finished>,
    ) -> (Option<Round>, Option<Done>) {
        let next = round.0 + 1;
        ((next < begin.0).then_some(Round(next)), (next == begin.0).then_some(Done(next)))
    }

    #[precondition]
    fn is_over(round: &Round, finished: &List<Finished>) -> bool {
        finished.len() == round.0 as usize + 1
    }
}

// S44, S48
#[tokio::test]
async fn each_of_fifty_iterations_has_a_fan_out_of_its_own() {
    let run = Scenario::new(Rounds).start(Begin(50)).await;
    run.assert_output(&Done(50));
    run.assert_executions("join", 50);
    let expected = (0..50_u32)
        .map(|round| format!("{:?}", (0..round % 4).map(|item| 100 * round + item).collect::<Vec<_>>()));
    assert_eq!(noted(&run), expected.collect::<Vec<_>>());
    assert_eq!(run.report().branches.len(), (0..50).map(|round| round % 4).sum::<usize>());
}

/// Rounds that do not wait for each other: all fan-outs are open at the same time.
struct Overlapping;

#[workflow]
impl Overlapping {
    #[step]
    async fn first(&self, begin: &Begin) -> Round {
        Round(begin.0 - 1)
    }

    #[step(loops)]
    async fn next(&self, round: &Round) -> Option<Round> {
        round.0.checked_sub(1).map(Round)
    }

    #[step]
    async fn split(&self, round: &Round) -> FanOut<Item> {
        (0..4).map(|item| Item(4 * round.0 + item)).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> (Finished, Noted) {
        let items: Vec<u32> = parts.branches().map(|branch| branch.item::<Item>().unwrap().0).collect();
        let parts: Vec<u32> = parts.ok().map(|part| part.0).collect();
        assert_eq!(items, parts);
        (Finished(parts[0] / 4), Noted(format!("{parts:?}")))
    }

    #[step(precondition = all_finished)]
    async fn end(&self, begin: &Begin, finished: &List<Finished>) -> Done {
        assert_eq!(finished.len(), begin.0 as usize);
        Done(finished.iter().map(|finished| finished.0).sum())
    }

    #[precondition]
    fn all_finished(begin: &Begin, finished: &List<Finished>) -> bool {
        finished.len() == begin.0 as usize
    }
}

// S44, S48
#[test]
fn iterations_that_overlap_are_gathered_each_by_itself_in_any_order() {
    let expected = (0..10).map(|round| format!("{:?}", [0, 1, 2, 3].map(|item| 4 * round + item)));
    let mut expected: Vec<String> = expected.collect();
    expected.sort();
    explore(|| Scenario::new(Overlapping).start(Begin(10))).orders(10).assert(|run| {
        run.assert_output(&Done(45));
        assert_eq!(noted_sorted(run), expected);
    });
}

/// Each branch revises a draft as often as its item says.
struct LoopInside;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Draft(u32);

#[workflow]
impl LoopInside {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn begin(&self, _item: &Item) -> Draft {
        Draft(0)
    }

    #[step(loops)]
    async fn improve(&self, item: &Item, draft: &Draft) -> (Option<Draft>, Option<Part>) {
        tokio::task::yield_now().await;
        let next = draft.0 + 1;
        if next <= item.0 { (Some(Draft(next)), None) } else { (None, Some(Part(draft.0))) }
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        for (branch, item) in parts.branches().zip(0..) {
            assert_eq!(branch.events().map(|part| part.0).collect::<Vec<_>>(), [item]);
        }
        Done(parts.ok().map(|part| part.0).sum())
    }
}

// S45, S47
#[tokio::test]
async fn a_loop_in_a_branch_runs_to_its_own_end() {
    let run = Scenario::new(LoopInside).start(Begin(10)).await;
    run.assert_output(&Done(45));
    run.assert_executions("improve", 55);
    run.assert_emitted::<Draft>(55);
}

/// Each branch has rounds with their own fan-outs.
struct LoopOfFanOutsInside;

const ROUNDS: u32 = 5;

#[workflow]
impl LoopOfFanOutsInside {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect()
    }

    #[step]
    async fn first(&self, _outer: &Outer) -> Round {
        Round(0)
    }

    #[step]
    async fn again(&self, outer: &Outer, round: &Round) -> FanOut<Item> {
        (0..round.0).map(|item| Item(100 * outer.0 + 10 * round.0 + item)).collect()
    }

    #[step]
    async fn work(&self, item: &Item, outer: &Outer) -> Part {
        assert_eq!(item.0 / 100, outer.0);
        Part(item.0)
    }

    #[step]
    async fn join(&self, outer: &Outer, parts: &Gather<Part>) -> (Finished, Noted) {
        let numbers: Vec<u32> = parts.ok().map(|part| part.0 - 100 * outer.0).collect();
        (Finished(u32::try_from(parts.len()).unwrap()), Noted(format!("{} {numbers:?}", outer.0)))
    }

    #[step(loops, precondition = is_over)]
    async fn next(
        &self,
        outer: &Outer,
        round: &Round,
        _all: &List<Finished>,
    ) -> (Option<Round>, Option<Text>) {
        let next = round.0 + 1;
        ((next < ROUNDS).then_some(Round(next)), (next == ROUNDS).then_some(Text(outer.0)))
    }

    #[precondition]
    fn is_over(round: &Round, finished: &List<Finished>) -> bool {
        finished.len() == round.0 as usize + 1
    }

    #[step]
    async fn end(&self, texts: &Gather<Text>) -> Done {
        assert!(texts.ok().map(|text| text.0).eq(0..4));
        Done(u32::try_from(texts.len()).unwrap())
    }
}

// S44, S47, S48
#[test]
fn each_branch_may_loop_over_fan_outs_of_its_own() {
    explore(|| Scenario::new(LoopOfFanOutsInside).start(Begin(4))).orders(10).assert(|run| {
        run.assert_output(&Done(4));
        assert_eq!((run.executions("join"), run.executions("end")), (20, 1));
        for outer in 0..4 {
            let of_outer = noted(run).into_iter().filter(|line| line.starts_with(&outer.to_string()));
            let items = |round: u32| (0..round).map(|item| 10 * round + item).collect::<Vec<_>>();
            assert!(of_outer.eq((0..ROUNDS).map(|round| format!("{outer} {:?}", items(round)))));
        }
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Stage(u32);

/// What follows a stage.
#[derive(Debug, Clone, EventSet)]
enum Next {
    Stage(Stage),
    Done(Done),
}

/// Stages that each begin once everything of the one before is gathered.
struct Stages {
    count: u32,
}

#[workflow]
impl Stages {
    #[step]
    async fn begin(&self, begin: &Begin) -> Stage {
        Stage(begin.0)
    }

    #[step]
    async fn plan(&self, stage: &Stage) -> FanOut<Item> {
        (0..stage.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step(loops)]
    async fn stage_done(&self, stage: &Stage, made: &Gather<Part>) -> Next {
        assert_eq!(made.len(), stage.0 as usize, "the gather of this stage");
        if stage.0 == self.count { Next::Done(Done(stage.0)) } else { Next::Stage(Stage(stage.0 + 1)) }
    }
}

// S48
#[tokio::test]
async fn a_loop_that_takes_its_gather_beside_its_event_ends_after_its_last_iteration() {
    let run = Scenario::new(Stages { count: 50 }).start(Begin(0)).await;
    run.assert_output(&Done(50));
    assert_eq!(["plan", "stage_done"].map(|step| run.executions(step)), [51, 51]);
}

// S48
#[test]
fn in_whichever_order_branches_end_a_loop_takes_the_gather_of_its_iteration() {
    let explored = explore(|| Scenario::new(Stages { count: 3 }).start(Begin(1))).assert(|run| {
        run.assert_output(&Done(3));
        run.assert_executions("stage_done", 3);
    });
    assert!(explored.is_exhaustive() && explored.tried() > 1);
}

// S48
#[tokio::test]
async fn an_explanation_names_the_execution_that_took_the_gather() {
    let run = Scenario::new(Stages { count: 2 }).start(Begin(1)).await;
    let explanation = run.explanation().unwrap().to_string();
    let taken =
        "not for #6 `Stage` of `stage_done`: its execution x4 took the latest gather, and each is taken once";
    assert!(explanation.contains(taken), "{explanation}");
}
