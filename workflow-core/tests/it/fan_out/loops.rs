//! Loops around fan-outs, in branches, and both (S44, S48).

use workflow_core::RunStatus;
use workflow_core::prelude::*;

use super::{Gates, Random};
use crate::fixtures::{Begin, Done, Item, Part, Seen, log_of, report_of, started};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Round(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Finished(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Text(u32);

/// So many rounds, each with a fan-out of its own: round n has n % 4 items.
struct Rounds(Seen);

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

    /// It does not take the round: a later one would join the gather of the one before.
    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Finished {
        self.0.note(format!("{:?}", parts.ok().map(|part| part.0).collect::<Vec<_>>()));
        Finished(u32::try_from(parts.len()).unwrap())
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
    let seen = Seen::default();
    let report = report_of(Rounds(seen.clone()), 50).await;
    assert_eq!(report.status, RunStatus::Completed);
    assert_eq!(report.executions("join"), 50);
    let expected = (0..50_u32)
        .map(|round| format!("{:?}", (0..round % 4).map(|item| 100 * round + item).collect::<Vec<_>>()));
    assert_eq!(seen.lines(), expected.collect::<Vec<_>>());
    assert_eq!(report.branches.len(), (0..50).map(|round| round % 4).sum::<usize>());
}

/// Rounds that do not wait for each other: all fan-outs are open at the same time.
struct Overlapping {
    gates: Gates,
    seen: Seen,
}

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
        self.gates.pass(item.0).await;
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Finished {
        let items: Vec<u32> = parts.branches().map(|branch| branch.item::<Item>().unwrap().0).collect();
        let parts: Vec<u32> = parts.ok().map(|part| part.0).collect();
        assert_eq!(items, parts);
        self.seen.note(format!("{parts:?}"));
        Finished(parts[0] / 4)
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
#[tokio::test]
async fn iterations_that_overlap_are_gathered_each_by_itself_in_any_order() {
    for seed in 0..10 {
        let (gates, seen) = (Gates::closed(40), Seen::default());
        let run = started(Overlapping { gates: gates.clone(), seen: seen.clone() }, 10).await;
        for place in Random::seeded(seed).order_of(40) {
            gates.open(place);
            tokio::task::yield_now().await;
        }
        assert_eq!(run.outcome().await.unwrap(), Done(45), "seed {seed}");
        let mut lines = seen.lines();
        lines.sort();
        let expected = (0..10).map(|round| format!("{:?}", [0, 1, 2, 3].map(|item| 4 * round + item)));
        let mut expected: Vec<String> = expected.collect();
        expected.sort();
        assert_eq!(lines, expected, "seed {seed}");
    }
}

/// In each branch a draft is worked over as often as the item says.
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
    let report = report_of(LoopInside, 10).await;
    assert_eq!(report.status, RunStatus::Completed);
    assert_eq!(report.executions("improve"), 55);
    assert_eq!(log_of(&report).iter().filter(|event| **event == "Draft").count(), 55);
}

/// In each branch rounds, each with a fan-out of its own.
struct LoopOfFanOutsInside {
    gates: Gates,
    seen: Seen,
}

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
        self.gates.pass(item.0).await;
        Part(item.0)
    }

    #[step]
    async fn join(&self, outer: &Outer, parts: &Gather<Part>) -> Finished {
        let numbers: Vec<u32> = parts.ok().map(|part| part.0 - 100 * outer.0).collect();
        self.seen.note(format!("{} {numbers:?}", outer.0));
        Finished(u32::try_from(parts.len()).unwrap())
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
#[tokio::test]
async fn each_branch_may_loop_over_fan_outs_of_its_own() {
    for seed in 0..5 {
        let (gates, seen) = (Gates::closed(400), Seen::default());
        let run = started(LoopOfFanOutsInside { gates: gates.clone(), seen: seen.clone() }, 4).await;
        for place in Random::seeded(seed).order_of(400) {
            gates.open(place);
            tokio::task::yield_now().await;
        }
        assert_eq!(run.outcome().await.unwrap(), Done(4), "seed {seed}");
        let report = run.report().await.unwrap();
        assert_eq!((report.executions("join"), report.executions("end")), (20, 1));
        for outer in 0..4 {
            let of_outer = seen.lines().into_iter().filter(|line| line.starts_with(&outer.to_string()));
            let items = |round: u32| (0..round).map(|item| 10 * round + item).collect::<Vec<_>>();
            let expected: Vec<String> =
                (0..ROUNDS).map(|round| format!("{outer} {:?}", items(round))).collect();
            assert_eq!(of_outer.collect::<Vec<_>>(), expected, "seed {seed}");
        }
    }
}
