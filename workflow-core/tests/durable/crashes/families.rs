//! Child runs survive crashes with their parents: awaited, started, in branches, failed and retried (S31, S39).

use std::time::Duration;

use workflow_core::RunOptions;
use workflow_core::prelude::*;
use workflow_testkit::Scenario;

use crate::fixtures::{Begin, Done, Item, Note, Part, survive};
use crate::shapes::{Asks, Branches, Fails, Joins, Loops, Retries};

/// Waits for a started child.
struct Starts;

#[workflow]
impl Starts {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Result<Item, StepError> {
        let child = children.start::<Joins>(Begin(begin.0)).await?;
        Ok(Item(child.outcome().await?.0))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// Ends before its started child does.
struct Leaves;

#[workflow]
impl Leaves {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Result<Item, StepError> {
        children.start_with::<Joins>(Begin(begin.0), RunOptions::new().id("left")).await?;
        Ok(Item(begin.0))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// Nests to the given depth.
struct Nests;

#[workflow]
impl Nests {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        match begin.0 {
            0 => Ok(Item(children.run::<Joins>(Begin(2)).await?.0)),
            depth => Ok(Item(1 + children.run::<Self>(Begin(depth - 1)).await?.0)),
        }
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// One child in each branch, and two concurrent ones of one execution.
struct InBranches;

#[workflow]
impl InBranches {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (1..=begin.0).map(Item).collect::<FanOut<_>>().concurrency(2)
    }

    #[step]
    async fn work(&self, item: &Item, children: &Children) -> Result<Part, RunError> {
        let (joined, looped) =
            futures::future::join(children.run::<Joins>(Begin(item.0)), children.run::<Loops>(Begin(1)))
                .await;
        Ok(Part(joined?.0 + looped?.0))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>) -> Done {
        Done(parts.ok().map(|part| part.0).sum())
    }
}

/// Its child fails, and it uses the failure.
struct Copes;

#[workflow]
impl Copes {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Item {
        match children.run::<Fails>(Begin(begin.0)).await {
            Ok(_) => Item(0),
            Err(error) => Item(u32::try_from(error.to_string().len()).unwrap()),
        }
    }

    #[step]
    async fn second(&self, item: &Item, children: &Children) -> Result<Part, RunError> {
        Ok(Part(
            item.0 + children.run::<Retries>(Begin(1)).await?.0 + children.run::<Branches>(Begin(2)).await?.0,
        ))
    }

    #[step]
    async fn end(&self, part: &Part) -> Done {
        Done(part.0)
    }
}

/// Fails after its child has ended, and is retried with another child.
struct Again;

#[workflow]
impl Again {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children, info: &RunInfo) -> Result<Item, StepError> {
        let child = children.run::<Loops>(Begin(begin.0)).await?;
        if info.attempt() < 3 { Err(StepError::transient("busy")) } else { Ok(Item(child.0)) }
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// Starts its child with its second attempt.
struct SecondTry;

#[workflow]
impl SecondTry {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children, info: &RunInfo) -> Result<Item, StepError> {
        match info.attempt() {
            1 => Err(StepError::transient("busy")),
            _ => Ok(Item(children.run::<Loops>(Begin(begin.0)).await?.0)),
        }
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// Has a precondition on each step, sync and async, and starts children behind them.
struct Careful;

#[workflow]
impl Careful {
    #[precondition]
    fn at_once(begin: &Begin) -> bool {
        begin.0 > 0
    }

    #[precondition]
    async fn later(&self, item: &Item) -> bool {
        tokio::time::sleep(Duration::from_secs(1)).await;
        item.0 > 0
    }

    #[step(precondition = at_once)]
    async fn first(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        Ok(Item(children.run::<Loops>(Begin(begin.0)).await?.0))
    }

    /// Runs for the same event without a precondition, so that executions and evaluations have different numbers.
    #[step]
    async fn beside(&self, begin: &Begin) -> Part {
        Part(begin.0)
    }

    #[step(precondition = later)]
    async fn second(&self, item: &Item, part: &Part, children: &Children) -> Result<Done, RunError> {
        let joined = children.run::<Joins>(Begin(part.0)).await?;
        Ok(Done(item.0 + joined.0))
    }
}

/// Ends while its child still runs.
struct Hurries;

#[workflow]
impl Hurries {
    #[step]
    async fn slow(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        Ok(Item(children.run::<Asks>(Begin(begin.0)).await?.0))
    }

    #[step]
    async fn stop(&self, _begin: &Begin) -> Done {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Done(1)
    }
}

/// Its child waits for its own timer, and it waits for a note.
struct WaitsLong;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Rang(u32);

struct Rings;

#[workflow]
impl Rings {
    #[step]
    async fn set(&self, begin: &Begin) -> Timer<Rang> {
        Timer::after(Duration::from_secs(20), Rang(begin.0))
    }

    #[step]
    async fn end(&self, rang: &Rang) -> Done {
        Done(rang.0)
    }
}

#[workflow]
impl WaitsLong {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        Ok(Item(children.run::<Rings>(Begin(begin.0)).await?.0))
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note) -> Done {
        Done(item.0 + note.0)
    }
}

/// Starts a child that waits for its own timer, and waits for a note.
struct StartsOne;

#[workflow]
impl StartsOne {
    #[step]
    async fn first(&self, begin: &Begin, children: &Children) -> Result<Item, StepError> {
        children.start::<Rings>(Begin(begin.0)).await?;
        Ok(Item(begin.0))
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note) -> Done {
        Done(item.0 + note.0)
    }
}

/// After one crash, all of the child is compared too.
#[tokio::test]
async fn children_that_nobody_wants_any_more_end_as_without_a_crash() {
    let scenario =
        |store| Scenario::new(Hurries).host(Asks).engine(|engine| engine.store(store)).start(Begin(2));
    let survived = workflow_testkit::crash_everywhere(scenario).pairs(0).await;
    assert_eq!(survived.once(), 2 * survived.appends(), "{survived}");
}

survive! {
    started_by_a_run_that_is_cancelled:
        Scenario::new(StartsOne).host(Rings).cancel_after(Duration::from_secs(5), "enough"), 2;
    started_by_a_run_that_waits: Scenario::new(StartsOne).host(Rings), 2;
    started_and_waited_for: Scenario::new(Starts).host(Joins), 3;
    started_and_left_alone: Scenario::new(Leaves).host(Joins), 3;
    children_of_children: Scenario::new(Nests).host(Joins), 2;
    children_in_branches: Scenario::new(InBranches).host(Joins).host(Loops), 3;
    children_that_fail: Scenario::new(Copes).host(Fails).host(Retries).host(Branches), 3;
    children_of_attempts: Scenario::new(Again).host(Loops), 2;
    a_child_of_a_second_attempt: Scenario::new(SecondTry).host(Loops), 2,
        assert(|run| run.report().children.len() == 1);
    children_behind_preconditions: Scenario::new(Careful).host(Loops).host(Joins), 2,
        assert(|run| run.report().children.len() == 2);
    // After two crashes one of its executions runs at a time, and the child may begin too late to ask.
    children_that_nobody_wants_any_more: Scenario::new(Hurries).host(Asks), 2,
        comparing_outcomes();
    children_that_wait: Scenario::new(WaitsLong).host(Rings).send(Note(5)), 2;
    children_of_a_run_that_is_cancelled:
        Scenario::new(WaitsLong).host(Rings).cancel_after(Duration::from_secs(5), "enough"), 2;
}
