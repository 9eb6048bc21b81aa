//! Pauses survive crashes at every write (S61): the run ends as without a crash.

use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::{ErrorClass, Pause, Retries, RetryPolicy, RunOptions};
use workflow_testkit::{Scenario, ScenarioOf, crash_everywhere};

use crate::fixtures::{Begin, Done, Item, Note, Part};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Branches that work for ten seconds each, fail at first, and rest.
struct Branches;

fn later() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(3, seconds(7)))
}

#[workflow]
impl Branches {
    #[step]
    async fn open(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect::<FanOut<_>>().concurrency(2)
    }

    #[step(precondition = is_wanted, retry = later())]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Timer<Part>, StepError> {
        tokio::time::sleep(seconds(10)).await;
        if info.attempt() == 1 && item.0.is_multiple_of(2) {
            return Err(StepError::tool("busy"));
        }
        Ok(Timer::after(seconds(5), Part(item.0)))
    }

    #[precondition]
    async fn is_wanted(&self, item: &Item) -> bool {
        tokio::time::sleep(seconds(1)).await;
        item.0 < 9
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>, note: &Note) -> Done {
        Done(note.0 + parts.ok().map(|part| part.0).sum::<u32>())
    }
}

fn branches(pauses: &[(u64, u64)], how: Pause) -> ScenarioOf<Branches> {
    let mut scenario = Scenario::new(Branches).send_after(seconds(14), Note(100));
    for (pause, unpause) in pauses {
        scenario = scenario.pause_after(seconds(*pause), how).unpause_after(seconds(*unpause));
    }
    scenario
}

async fn survives<W: Workflow>(scenario: impl Fn() -> ScenarioOf<W> + Send + 'static) {
    let scenario = move |store| scenario().engine(|engine| engine.store(store)).start(Begin(3));
    let survived = crash_everywhere(scenario).await;
    assert!(survived.appends() >= 2, "{survived}");
}

// S61
#[tokio::test]
async fn a_run_that_is_paused_at_any_time_survives_crashes() {
    for pauses in [&[(0, 5)][..], &[(5, 40)], &[(12, 16), (17, 60)], &[(13, 13)]] {
        survives(move || branches(pauses, Pause::AfterRunning)).await;
    }
}

// S61
#[tokio::test]
async fn a_run_that_drops_what_runs_at_any_time_survives_crashes() {
    for pauses in [&[(0, 5)][..], &[(5, 40)], &[(12, 16), (17, 60)], &[(13, 13)]] {
        survives(move || branches(pauses, Pause::Now)).await;
    }
}

/// Awaits a child.
struct Delegates;

#[workflow]
impl Delegates {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Item, RunError> {
        let Done(done) = children.run_with::<Child>(Begin(begin.0), RunOptions::new().id("c")).await?;
        Ok(Item(done))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

struct Child;

#[workflow]
impl Child {
    #[step]
    async fn work(&self, begin: &Begin) -> Timer<Part> {
        tokio::time::sleep(seconds(10)).await;
        Timer::after(seconds(10), Part(begin.0))
    }

    #[step]
    async fn end(&self, part: &Part) -> Done {
        tokio::time::sleep(seconds(10)).await;
        Done(part.0)
    }
}

// S61
#[tokio::test]
async fn a_family_that_is_paused_survives_crashes() {
    for how in [Pause::AfterRunning, Pause::Now] {
        for (pause, unpause) in [(0, 3), (5, 15), (15, 50), (25, 26)] {
            survives(move || {
                let family = Scenario::new(Delegates).engine(|engine| engine.workflow(Child));
                family.pause_after(seconds(pause), how).unpause_after(seconds(unpause))
            })
            .await;
        }
    }
}

/// Cleans up.
struct CleansUp;

#[workflow]
impl CleansUp {
    #[step]
    async fn work(&self, begin: &Begin) -> Item {
        tokio::time::sleep(seconds(10)).await;
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }

    #[step(on_end)]
    async fn undo(&self, _begin: &Begin) {
        tokio::time::sleep(seconds(1)).await;
    }
}

// S31, S61
#[tokio::test]
async fn a_paused_run_that_is_cancelled_survives_crashes() {
    for how in [Pause::AfterRunning, Pause::Now] {
        let scenario = move |store| {
            let paused = Scenario::new(CleansUp).pause_after(seconds(5), how);
            let cancelled = paused.cancel_after(seconds(20), "enough");
            cancelled.engine(|engine| engine.store(store)).start(Begin(3))
        };
        // After a crash in the pause, what was under way begins no more.
        let survived = crash_everywhere(scenario).comparing_outcomes();
        survived.assert(|run| run.assert_cleaned_up(&["undo"])).await;
    }
}
