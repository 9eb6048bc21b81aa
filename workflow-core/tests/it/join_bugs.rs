//! The bugs that joins after fan-outs are known for, each named after its symptom (S44–S50).

use workflow_core::RunStatus;
use workflow_core::prelude::*;

use crate::fan_out::{Gates, Level, Random};
use crate::fixtures::{
    Begin, Done, Item, Part, Seen, everyone_else, log_of, outcomes_of, report_of, started,
};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Round(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// The plain case: items, a part of each unless it is told otherwise, and one join.
#[derive(Clone)]
struct Plain {
    gates: Gates,
    seen: Seen,
    level: Level,
    without: Option<u32>,
    failing: Option<u32>,
    most: u32,
}

impl Plain {
    fn with(gates: &Gates) -> Self {
        let (seen, level) = Default::default();
        Self { gates: gates.clone(), seen, level, without: None, failing: None, most: u32::MAX }
    }

    fn open() -> Self {
        Self::with(&Gates::open_all(100))
    }
}

#[workflow]
impl Plain {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(self.most).continue_others()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Option<Part>, StepError> {
        self.level.rise();
        self.gates.pass(item.0).await;
        self.level.fall();
        if self.failing == Some(item.0) {
            return Err(StepError::permanent("broken"));
        }
        Ok((self.without != Some(item.0)).then_some(Part(item.0)))
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> Done {
        let all = parts.branches().map(|branch| match (branch.event(), branch.failure()) {
            (Some(part), _) => part.0.to_string(),
            (None, Some(_)) => "failed".into(),
            (None, None) => "none".into(),
        });
        self.seen.note(all.collect::<Vec<_>>().join(" "));
        Done(u32::try_from(parts.len()).unwrap())
    }
}

// S48
#[tokio::test]
async fn fires_per_arrival() {
    let gates = Gates::closed(5);
    let workflow = Plain::with(&gates);
    let run = started(workflow.clone(), 5).await;
    for place in 0..5 {
        gates.open(place);
        everyone_else().await;
    }
    run.outcome().await.unwrap();
    assert_eq!(workflow.seen.lines(), ["0 1 2 3 4"]);
    assert_eq!(run.report().await.unwrap().executions("join"), 1);
}

// S47, S48
#[tokio::test]
async fn fires_early_on_partial_results() {
    let gates = Gates::closed(3);
    let workflow = Plain::with(&gates);
    let run = started(workflow.clone(), 3).await;
    for place in [2, 0] {
        gates.open(place);
        everyone_else().await;
        assert!(workflow.seen.lines().is_empty());
        assert_eq!(run.status(), RunStatus::Running);
    }
    gates.open(1);
    assert_eq!(run.outcome().await.unwrap(), Done(3));
    assert_eq!(workflow.seen.lines(), ["0 1 2"]);
}

// S48
#[tokio::test]
async fn never_fires_when_one_branch_yields_nothing() {
    for without in 0..3 {
        let workflow = Plain { without: Some(without), ..Plain::open() };
        assert_eq!(workflow.clone().run(Begin(3)).await.unwrap(), Done(3));
        let expected = ["none 1 2", "0 none 2", "0 1 none"][without as usize];
        assert_eq!(workflow.seen.lines(), [expected]);
    }
}

// S48
#[tokio::test]
async fn hangs_on_zero_items() {
    assert_eq!(Plain::open().run(Begin(0)).await.unwrap(), Done(0));
}

struct Paired(Gates);

#[workflow]
impl Paired {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        self.0.pass(item.0).await;
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
#[tokio::test]
async fn pairs_items_across_branches() {
    for seed in 0..20 {
        let gates = Gates::closed(10);
        let run = started(Paired(gates.clone()), 10).await;
        for place in Random::seeded(seed).order_of(10) {
            gates.open(place);
            tokio::task::yield_now().await;
        }
        assert_eq!(run.outcome().await.unwrap(), Done(10), "seed {seed}");
    }
}

/// Rounds with a fan-out each.
struct Looping {
    gates: Gates,
    seen: Seen,
    /// Whether a round begins before the fan-out of the one before is gathered.
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
        self.gates.pass(item.0).await;
        Part(item.0)
    }

    #[step]
    async fn join(&self, parts: &Gather<Part>) -> (Option<Round>, Joined) {
        let numbers: Vec<u32> = parts.ok().map(|part| part.0).collect();
        self.seen.note(format!("{numbers:?}"));
        let round = numbers[0] / PER_ROUND;
        ((round == 0 && !self.overlaps).then_some(Round(1)), Joined(round))
    }

    #[step]
    async fn end(&self, _joined: &FixedList<Joined, 2>) -> Done {
        Done(2)
    }
}

// S44, S48
#[tokio::test]
async fn second_loop_iteration_hangs() {
    let seen = Seen::default();
    let workflow = Looping { gates: Gates::open_all(6), seen: seen.clone(), overlaps: false };
    assert_eq!(workflow.run(Begin(0)).await.unwrap(), Done(2));
    assert_eq!(seen.lines(), ["[0, 1, 2]", "[3, 4, 5]"]);
}

// S44, S48
#[tokio::test]
async fn gather_sees_a_later_iterations_items() {
    let (gates, seen) = (Gates::closed(6), Seen::default());
    let workflow = Looping { gates: gates.clone(), seen: seen.clone(), overlaps: true };
    let run = started(workflow, 0).await;
    // The later iteration ends before the last branch of the first one.
    for place in [0, 3, 4, 1, 5, 2] {
        everyone_else().await;
        gates.open(place);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    assert_eq!(seen.lines(), ["[3, 4, 5]", "[0, 1, 2]"]);
}

// S49
#[tokio::test]
async fn loses_a_branch_that_fails() {
    for failing in 0..3 {
        let workflow = Plain { failing: Some(failing), ..Plain::open() };
        assert_eq!(workflow.clone().run(Begin(3)).await.unwrap(), Done(3));
        let expected = ["failed 1 2", "0 failed 2", "0 1 failed"][failing as usize];
        assert_eq!(workflow.seen.lines(), [expected]);
    }
}

struct Nested(Seen);

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
    async fn join(&self, outer: &Outer, parts: &Gather<Part>) -> Joined {
        self.0.note(format!("inner {}", parts.len()));
        Joined(outer.0)
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        self.0.note(format!("outer {}", joined.len()));
        Done(0)
    }
}

// S48
#[tokio::test]
async fn nested_join_fires_for_the_inner_count() {
    let seen = Seen::default();
    let report = report_of(Nested(seen.clone()), 2).await;
    assert_eq!(seen.lines(), ["inner 5", "inner 5", "outer 2"]);
    assert_eq!(report.executions("end"), 1);
}

// S48
#[tokio::test]
async fn order_of_results_differs_from_order_of_items() {
    for seed in 0..20 {
        let gates = Gates::closed(6);
        let workflow = Plain::with(&gates);
        let run = started(workflow.clone(), 6).await;
        for place in Random::seeded(seed).order_of(6) {
            gates.open(place);
            everyone_else().await;
        }
        run.outcome().await.unwrap();
        assert_eq!(workflow.seen.lines(), ["0 1 2 3 4 5"], "seed {seed}");
    }
}

/// The first of the inner branches fails, which drops the others; the outer branch goes on.
struct Cancelling {
    gates: Gates,
    seen: Seen,
}

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
        self.gates.pass(item.0).await;
        if item.0 == 0 { Err(StepError::permanent("broken")) } else { Ok(Part(item.0)) }
    }

    #[step(reruns)]
    async fn watch(&self, parts: &List<Part>) {
        self.seen.note(format!("{:?}", parts.iter().map(|part| part.0).collect::<Vec<_>>()));
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
#[tokio::test]
async fn result_of_a_cancelled_branch_leaks() {
    let (gates, seen) = (Gates::closed(4), Seen::default());
    let run = started(Cancelling { gates: gates.clone(), seen: seen.clone() }, 2).await;
    for place in 0..4 {
        everyone_else().await;
        gates.open(place);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(5));
    assert_eq!(seen.lines(), ["[2]", "[3]"]);
    let report = run.report().await.unwrap();
    assert_eq!(log_of(&report).iter().filter(|event| **event == "Part").count(), 2);
    let dropped = workflow_core::ExecutionOutcome::Dropped;
    assert_eq!(outcomes_of(&report, "work").iter().filter(|outcome| ***outcome == dropped).count(), 1);
}

// S50
#[tokio::test]
async fn unbounded_parallelism() {
    let workflow = Plain { most: 4, ..Plain::open() };
    assert_eq!(workflow.clone().run(Begin(100)).await.unwrap(), Done(100));
    assert_eq!(workflow.level.highest(), 1);

    let gates = Gates::closed(100);
    let workflow = Plain { most: 4, ..Plain::with(&gates) };
    let run = started(workflow.clone(), 100).await;
    for place in Random::seeded(4).order_of(100) {
        everyone_else().await;
        gates.open(place);
    }
    assert_eq!(run.outcome().await.unwrap(), Done(100));
    assert_eq!(workflow.level.highest(), 4);
}
