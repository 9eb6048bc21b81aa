//! Branches survive crashes: with each policy, nested, bounded, in loops, and gathered twice (S44–S51).

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Item, Note, Part, survive};

fn later(seconds: u32) -> tokio::time::Sleep {
    tokio::time::sleep(Duration::from_secs(u64::from(seconds)))
}

/// All run to their ends, and then any failure fails the group.
struct WaitsForAll;

#[workflow]
impl WaitsForAll {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().wait_all()
    }

    #[step]
    async fn work(&self, item: &Item) -> Result<Part, StepError> {
        later(item.0).await;
        if item.0 == 1 { Err(StepError::permanent("one")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn gather(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

/// Retries in branches, with two open at a time.
struct Retried;

#[workflow]
impl Retried {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(2).continue_others()
    }

    #[step]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Part, StepError> {
        match (item.0, info.attempt()) {
            (0, _) => Err(StepError::tool("never")),
            (odd, 1 | 2) if odd % 2 == 1 => Err(StepError::transient("busy")),
            (item, attempt) => Ok(Part(item * 10 + attempt)),
        }
    }

    #[step]
    async fn gather(&self, parts: &Gather<Part>) -> Done {
        Done(
            parts.ok().map(|part| part.0).sum::<u32>()
                + 1_000 * u32::try_from(parts.failed().count()).unwrap(),
        )
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Outer(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Joined(u32);

/// Branches in branches, some of them empty.
struct TwoLevels;

#[workflow]
impl TwoLevels {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Outer> {
        (0..begin.0).map(Outer).collect()
    }

    #[step]
    async fn again(&self, outer: &Outer) -> FanOut<Item> {
        (0..outer.0).map(Item).collect::<FanOut<_>>().concurrency(1)
    }

    #[step]
    async fn work(&self, outer: &Outer, item: &Item) -> Part {
        later(3 - item.0).await;
        Part(outer.0 * 10 + item.0)
    }

    #[step]
    async fn join(&self, outer: &Outer, parts: &Gather<Part>) -> Joined {
        later(outer.0).await;
        Joined(parts.ok().map(|part| part.0).sum())
    }

    #[step]
    async fn end(&self, joined: &Gather<Joined>) -> Done {
        Done(joined.ok().map(|joined| joined.0).sum())
    }
}

/// One fan-out, gathered by the branches' first results and by the results of those.
struct TwoGathers;

#[workflow]
impl TwoGathers {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step]
    async fn first(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step]
    async fn second(&self, part: &Part) -> Joined {
        later(part.0).await;
        Joined(part.0 * 100)
    }

    #[step]
    async fn parts(&self, parts: &Gather<Part>) -> Outer {
        Outer(parts.ok().map(|part| part.0).sum())
    }

    #[step]
    async fn end(&self, outer: &Outer, joined: &Gather<Joined>) -> Done {
        Done(outer.0 + joined.ok().map(|joined| joined.0).sum::<u32>())
    }
}

/// Two fan-outs of one execution, one of them empty, and an event between them.
struct Several;

#[workflow]
impl Several {
    #[step]
    async fn split(&self, begin: &Begin) -> (FanOut<Outer>, Joined, FanOut<Item>) {
        let none = std::iter::empty::<Outer>().collect();
        (none, Joined(begin.0), (0..begin.0).map(Item).collect())
    }

    #[step]
    async fn outer(&self, outer: &Outer) -> Part {
        Part(outer.0)
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[step(precondition = both)]
    async fn end(&self, joined: &Joined, parts: &List<Sum>) -> Done {
        Done(joined.0 + parts.iter().map(|sum| sum.0).sum::<u32>())
    }

    #[precondition]
    fn both(parts: &List<Sum>) -> bool {
        parts.len() == 2
    }

    #[step(reruns)]
    async fn none(&self, parts: &Gather<Part, Outer>) -> Sum {
        assert!(parts.is_empty());
        Sum(100)
    }

    #[step]
    async fn sum(&self, parts: &Gather<Part, Item>) -> Sum {
        Sum(parts.ok().map(|part| part.0).sum::<u32>() + 100)
    }
}

/// Stages that each begin once everything of the one before is gathered.
struct Stages;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Stage(u32);

#[derive(Debug, Clone, EventSet)]
enum Next {
    Stage(Stage),
    Done(Done),
}

#[workflow]
impl Stages {
    #[step]
    async fn begin(&self, _begin: &Begin) -> Stage {
        Stage(1)
    }

    #[step]
    async fn plan(&self, stage: &Stage) -> FanOut<Item> {
        (0..stage.0).map(Item).collect()
    }

    #[step]
    async fn work(&self, item: &Item) -> Part {
        later(3 - item.0).await;
        Part(item.0)
    }

    #[step(loops)]
    async fn stage_done(&self, begin: &Begin, stage: &Stage, parts: &Gather<Part>) -> Next {
        assert_eq!(parts.len(), stage.0 as usize);
        if stage.0 == begin.0 { Next::Done(Done(stage.0)) } else { Next::Stage(Stage(stage.0 + 1)) }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Sum(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct Ask(u32);

/// Each branch makes a request, and an outside event arrives while it is open.
struct AsksInBranches;

#[workflow]
impl AsksInBranches {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(2)
    }

    #[step]
    async fn ask(&self, item: &Item) -> Ask {
        Ask(item.0)
    }

    #[step]
    async fn take(&self, item: &Item, reply: &Reply<Ask>) -> Part {
        Part(item.0 * 10 + **reply)
    }

    #[step]
    async fn note(&self, item: &Item, note: &Note) -> Outer {
        Outer(item.0 + note.0)
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

survive! {
    all_are_waited_for: Scenario::new(WaitsForAll), 4;
    retries_in_branches: Scenario::new(Retried), 4;
    branches_in_branches: Scenario::new(TwoLevels), 3;
    two_gathers_of_one_fan_out: Scenario::new(TwoGathers), 3;
    stages_in_a_loop: Scenario::new(Stages), 3;
    several_fan_outs_of_one_execution: Scenario::new(Several), 3;
    requests_in_branches: Scenario::new(AsksInBranches).reply_after(Duration::from_secs(7), |ask: &Ask| ask.0 + 1), 3;
}
