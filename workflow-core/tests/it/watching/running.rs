//! For how long a running step has been running, and when it was last heard of (S34).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use tokio::task::yield_now;
use tokio::time::{advance, sleep};
use workflow_core::prelude::*;
use workflow_core::{AnyRun, Clock, ErrorClass, Retries, RetryPolicy, RunOptions};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Progress(u32);

/// Is polled again after some seconds, lets another task show an item after as many more, and never returns.
struct Slow {
    /// Whether the first attempt fails instead, with a delay of a minute.
    fails: bool,
}

impl Slow {
    fn policy() -> RetryPolicy {
        RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(1, Duration::from_mins(1)))
    }
}

#[workflow]
impl Slow {
    #[step(retry = Self::policy())]
    async fn wait(&self, begin: &Begin, info: &RunInfo, display: &Display) -> Result<Item, StepError> {
        let (seconds, display) = (Duration::from_secs(begin.0.into()), display.clone());
        if self.fails && info.attempt() == 1 {
            sleep(seconds).await;
            display.show(Progress(1));
            return Err(StepError::tool("not yet"));
        }
        sleep(seconds).await;
        tokio::spawn(async move {
            sleep(seconds).await;
            display.show(Progress(0));
        });
        std::future::pending().await
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// Waits in a task of its own.
struct Spawned;

#[workflow]
impl Spawned {
    #[step(spawn)]
    async fn wait(&self, begin: &Begin) -> Done {
        sleep(Duration::from_secs(begin.0.into())).await;
        std::future::pending().await
    }
}

/// Waits for a child that waits.
struct Parent;

#[workflow]
impl Parent {
    #[step]
    async fn wait(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        Ok(children.run::<Slow>(begin.clone()).await?)
    }
}

/// Shows what a test says, from a thousand seconds on.
#[derive(Clone)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, _: SystemTime) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Computes for a minute by this clock, and then waits.
struct Computes(Hand);

#[workflow]
impl Computes {
    #[step]
    async fn wait(&self, _begin: &Begin) -> Done {
        self.0.0.fetch_add(60, Ordering::Relaxed);
        std::future::pending().await
    }
}

async fn started<W: Workflow>(workflow: W, begin: u32) -> AnyRun {
    let builder = Engine::builder().clock(VirtualClock::new()).workflow(Spawned).workflow(Parent);
    let engine = builder.workflow(Slow { fails: false }).workflow_named("tried", workflow).build().unwrap();
    let options = RunOptions::new().workflow("tried");
    engine.start_with::<W>(Begin(begin), options).await.unwrap().any().clone()
}

/// What the explanation says of the first execution, and of the event that the next step lacks.
async fn told(run: &AnyRun) -> (String, String) {
    let explained = run.explain().await.unwrap().to_string();
    let line = |found: &str| explained.lines().find(|line| line.contains(found)).unwrap_or_default().trim();
    (line("x1, triggered").to_owned(), line("`wait` is").to_owned())
}

/// Lets time pass, so that every timer on the way fires at its time.
async fn pass(seconds: u64) {
    settle().await;
    for _ in 0..seconds {
        advance(Duration::from_secs(1)).await;
        settle().await;
    }
}

/// Lets all tasks do what they can.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

// S34
#[tokio::test(start_paused = true)]
async fn an_explanation_says_for_how_long_a_step_has_been_running_and_when_it_was_last_heard_of() {
    let run = started(Slow { fails: false }, 10).await;
    pass(0).await;
    assert_eq!(told(&run).await.1, "`wait` is still running");
    let mut texts = Vec::new();
    for seconds in [5, 5, 5, 5, 3] {
        pass(seconds).await;
        let (of_execution, missing) = told(&run).await;
        let (_, state) = of_execution.split_once("`Begin`: ").unwrap();
        assert_eq!(missing, format!("`wait` is {state}"));
        texts.push(state.to_owned());
    }
    let expected = [
        "running for 5s, not heard of since it began",
        // It was polled just now.
        "running for 10s, last heard of less than a second ago",
        "running for 15s, last heard of 5s ago",
        // It showed something just now.
        "running for 20s, last heard of less than a second ago",
        "running for 23s, last heard of 3s ago",
    ];
    assert_eq!(texts, expected);
    run.cancel("enough").await.unwrap();
    let ended = run.report().await.unwrap();
    assert_eq!(ended.trace[0].running, None);
}

// S34
#[tokio::test(start_paused = true)]
async fn each_attempt_counts_from_its_own_begin_and_a_delay_is_no_running_attempt() {
    let run = started(Slow { fails: true }, 10).await;
    pass(15).await;
    assert_eq!(run.report_so_far().await.unwrap().trace[0].running, None);
    assert!(told(&run).await.0.contains("waits for its next attempt"));
    // The item that the first attempt showed is retracted, and no sign of the second.
    pass(60).await;
    let running = run.report_so_far().await.unwrap().trace[0].running.unwrap();
    assert_eq!(running.running_for, Duration::from_secs(5));
    assert!(told(&run).await.0.ends_with("running for 5s, not heard of since it began"));
}

// S34
#[tokio::test(start_paused = true)]
async fn a_step_in_a_task_of_its_own_and_one_that_waits_for_a_child_are_heard_of_too() {
    let spawned = started(Spawned, 10).await;
    pass(14).await;
    let (told_of_spawned, _) = told(&spawned).await;
    assert!(told_of_spawned.ends_with("running for 14s, last heard of 4s ago"), "{told_of_spawned}");
    spawned.cancel("enough").await.unwrap();
    let parent = started(Parent, 4).await;
    pass(14).await;
    let (told_of_parent, _) = told(&parent).await;
    // The child shows an item after eight seconds.
    assert!(told_of_parent.ends_with("running for 14s, last heard of 6s ago"), "{told_of_parent}");
    parent.cancel("enough").await.unwrap();
}

// S34
#[tokio::test]
async fn a_first_poll_counts_and_a_clock_that_is_set_back_makes_nothing_longer() {
    let hand = Hand(Arc::new(1_000.into()));
    let engine = Engine::builder().clock(hand.clone()).workflow(Computes(hand.clone())).build().unwrap();
    let run = engine.start::<Computes>(Begin(0)).await.unwrap();
    while hand.0.load(Ordering::Relaxed) == 1_000 {
        yield_now().await;
    }
    hand.0.fetch_add(13, Ordering::Relaxed);
    assert!(told(&run).await.0.ends_with("running for 73s, last heard of 13s ago"));
    hand.0.store(900, Ordering::Relaxed);
    let running = run.report_so_far().await.unwrap().trace[0].running.unwrap();
    assert!(running.silent_for <= running.running_for, "{running:?}");
    hand.0.store(1_100, Ordering::Relaxed);
    assert!(told(&run).await.0.ends_with("running for 100s, last heard of 40s ago"));
}
