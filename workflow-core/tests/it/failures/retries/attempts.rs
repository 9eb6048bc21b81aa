//! The inputs of attempts, and the remains of failed ones.

use std::time::Duration;

use expect_test::expect;
use futures::StreamExt as _;
use workflow_core::DisplayItem;
use workflow_core::middleware::{Middleware, Next};
use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::signature::{Emitted, StepCall};
use workflow_testkit::{Scenario, VirtualClock};

use crate::fixtures::{Alive, Alpha, Begin, Done, Item, Part, Seen};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Trying(u32);

/// Displays and emits in each attempt; only the third succeeds.
struct Messy;

#[workflow]
impl Messy {
    #[step]
    async fn work(
        &self,
        _begin: &Begin,
        items: &Emitter<Item>,
        display: &Display,
        info: &RunInfo,
    ) -> Result<Part, StepError> {
        items.emit(Item(info.attempt()))?;
        display.show(Trying(info.attempt()));
        tokio::task::yield_now().await;
        if info.attempt() < 3 { Err(StepError::tool("torn")) } else { Ok(Part(info.attempt())) }
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

// S23, S25
#[tokio::test]
async fn a_failed_attempt_leaves_nothing_in_the_log_and_its_items_are_retracted() {
    let run = Scenario::new(Messy).start(Begin(1)).await;
    run.assert_quality(Quality::Clean);
    expect![[r"
        #1 Begin from outside: 1
        x1 work by #1: succeeded
           showed Trying: 1
           took back what it showed
           attempt 1 failed (tool): torn; retried at once
           showed Trying: 2
           took back what it showed
           attempt 2 failed (tool): torn; retried at once
           showed Trying: 3
        #2 Item of x1: 3
        #3 Part of x1: 3
        x2 end by #3 with #2: succeeded
        #4 Done of x2: 6
        completed with #4
    "]]
    .assert_eq(&run.transcript());
}

// S25
#[tokio::test]
async fn displayed_items_and_retractions_name_their_attempt() {
    let run = Scenario::new(Messy).start(Begin(1)).await;
    let items: Vec<DisplayItem> = run.handle().display().collect().await;
    let told = items.iter().filter_map(|item| match item {
        DisplayItem::Shown { attempt, .. } => Some((*attempt, true)),
        DisplayItem::Retracted { attempt, .. } => Some((*attempt, false)),
        _ => None,
    });
    let told: Vec<(u32, bool)> = told.collect();
    assert_eq!(told, [(1, true), (1, false), (2, true), (2, false), (3, true)]);
}

/// Records the input of each attempt, and waits for its retry while more events arrive.
struct Watchful(Seen);

#[workflow]
impl Watchful {
    #[step(reruns)]
    async fn work(
        &self,
        begin: &Begin,
        alphas: &List<Alpha>,
        latest: &Alpha,
        info: &RunInfo,
    ) -> Result<Option<Done>, StepError> {
        let key = info.idempotency_key();
        let (execution, attempt) = (info.execution(), info.attempt());
        self.0.note(format!("{execution}/{attempt}: {} of {}, {key}", latest.0, alphas.len()));
        if execution.0 == 1 && attempt < 3 {
            return Err(StepError::transient("busy"));
        }
        Ok((latest.0 == 3).then_some(Done(begin.0)))
    }
}

// S20, S37
#[tokio::test]
async fn every_attempt_is_given_the_same_and_is_the_same_execution() {
    let seen = Seen::default();
    let scenario =
        Scenario::new(Watchful(seen.clone())).send(Alpha(1)).send_after(Duration::from_secs(5), Alpha(2));
    let run = scenario.send_after(Duration::from_mins(1), Alpha(3)).start(Begin(7)).await;
    run.assert_output(&Done(7));
    assert_eq!(
        seen.lines(),
        [
            "x1/1: 1 of 1, scenario/0/work/1.1e.2",
            "x2/1: 2 of 2, scenario/0/work/1.2e.3",
            "x1/2: 1 of 1, scenario/0/work/1.1e.2",
            "x1/3: 1 of 1, scenario/0/work/1.1e.2",
            "x3/1: 3 of 3, scenario/0/work/1.3e.4",
        ]
    );
}

/// One at a time, and the first needs two attempts.
struct Narrow(Seen);

#[workflow]
impl Narrow {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (1..=begin.0).map(Item).collect()
    }

    #[step(concurrency = 1)]
    async fn work(&self, item: &Item, info: &RunInfo) -> Result<Option<Done>, StepError> {
        self.0.note(format!("{}/{}", item.0, info.attempt()));
        if item.0 == 1 && info.attempt() == 1 {
            return Err(StepError::transient("busy"));
        }
        Ok((item.0 == 3).then_some(Done(0)))
    }
}

// S21
#[tokio::test]
async fn an_execution_that_waits_for_its_retry_keeps_its_permit() {
    let seen = Seen::default();
    let run = Scenario::new(Narrow(seen.clone())).start(Begin(3)).await;
    assert_eq!(seen.lines(), ["1/1", "1/2", "2/1", "3/1"]);
    assert_eq!(run.elapsed(), Duration::from_secs(10));
}

/// The first attempt panics in a task of its own, the second fails.
struct Spawned(Alive);

#[workflow]
impl Spawned {
    #[step(spawn)]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        let _guard = self.0.guard();
        assert_eq!(self.0.count(), 1, "of two attempts only one is alive");
        tokio::time::sleep(Duration::from_secs(1)).await;
        if info.attempt() == 1 { Err(StepError::model("not JSON")) } else { Ok(Done(begin.0)) }
    }
}

#[tokio::test]
async fn an_attempt_that_is_a_task_of_its_own_is_followed_by_another_task() {
    let alive = Alive::default();
    let run = Scenario::new(Spawned(alive.clone())).start(Begin(4)).await;
    run.assert_output(&Done(4));
    assert_eq!((run.elapsed(), alive.count()), (Duration::from_secs(12), 0));
}

/// Records the calls.
struct Noting(Seen);

impl Middleware for Noting {
    fn call(
        &self,
        call: StepCall,
        next: Next,
    ) -> futures::future::BoxFuture<'static, Result<Emitted, StepError>> {
        self.0.note(format!("{} attempt {}", call.step(), call.attempt()));
        next.call(call)
    }
}

#[tokio::test(start_paused = true)]
async fn middleware_stands_around_every_attempt() {
    let seen = Seen::default();
    let engine =
        Engine::builder().workflow(Messy).middleware(Noting(seen.clone())).clock(VirtualClock::new());
    let run = engine.build().unwrap().start::<Messy>(Begin(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(6));
    assert_eq!(seen.lines(), ["work attempt 1", "work attempt 2", "work attempt 3", "end attempt 1"]);
}
