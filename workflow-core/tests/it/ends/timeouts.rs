//! The limit of a run's active time (S32).

use std::time::Duration;

use expect_test::expect;
use workflow_core::errors::BuildProblem;
use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Quality};
use workflow_core::store::{EventStore, MemoryStore, Position, Record};
use workflow_core::{RunError, RunId, RunOptions, RunStatus, SendError, StartError};
use workflow_testkit::{Scenario, VirtualClock, explore};

use crate::fixtures::{Alive, Alpha, Begin, Close, Done, Item, log_of, outcomes_of};

const HOUR: Duration = Duration::from_hours(1);

/// Works for as many hours as each event says.
struct Works(Alive);

#[workflow]
impl Works {
    #[step]
    async fn begin(&self, begin: &Begin) -> Item {
        let _alive = self.0.guard();
        tokio::time::sleep(begin.0 * HOUR).await;
        Item(begin.0)
    }

    #[step]
    async fn again(&self, alpha: &Alpha) -> Item {
        tokio::time::sleep(alpha.0 * HOUR).await;
        Item(alpha.0)
    }

    #[step]
    async fn end(&self, item: &Item, _: &Close) -> Done {
        Done(item.0)
    }
}

fn at_most(hours: u32) -> RunOptions {
    RunOptions::new().timeout(hours * HOUR)
}

// S32
#[tokio::test]
async fn a_run_that_is_active_for_too_long_ends() {
    let alive = Alive::default();
    let run = Scenario::new(Works(alive.clone())).options(at_most(2)).start(Begin(3)).await;
    assert_eq!(run.status(), RunStatus::TimedOut);
    assert!(matches!(run.outcome(), Err(RunError::TimedOut { after, .. }) if *after == 2 * HOUR));
    assert_eq!(run.elapsed(), 2 * HOUR);
    assert_eq!(outcomes_of(run.report(), "begin"), [&ExecutionOutcome::Dropped]);
    run.assert_quality(Quality::Failed);
    assert_eq!(alive.count(), 0);
    expect![[r"
        #1 Begin from outside: 3
        x1 begin by #1: dropped
        timed out: the run was active for 7200s, which is as long as it may: see `RunOptions::timeout`
    "]]
    .assert_eq(&run.transcript());
}

// S32
#[tokio::test]
async fn time_spent_waiting_does_not_count() {
    let works = || Scenario::new(Works(Alive::default())).options(at_most(3));
    let run = works().send_after(20 * HOUR, Alpha(1)).send_after(40 * HOUR, Close).start(Begin(1)).await;
    run.assert_output(&Done(1));
    assert_eq!(run.elapsed(), 40 * HOUR);
}

// S32
#[tokio::test(start_paused = true)]
async fn time_in_a_queue_for_a_permit_does_not_count() {
    let engine = Engine::builder().workflow(Works(Alive::default())).clock(VirtualClock::new());
    let engine = engine.max_concurrent_runs(1).build().unwrap();
    let queued = engine.start_with::<Works>(Begin(0), at_most(2)).await.unwrap();
    assert_eq!(queued.settled().await, RunStatus::Waiting);
    let busy = engine.start::<Works>(Begin(5)).await.unwrap();
    queued.send(Alpha(1)).await.unwrap();
    assert_eq!(busy.settled().await, RunStatus::Waiting);
    assert_eq!(queued.settled().await, RunStatus::Waiting, "it has worked for an hour of its two");
    assert_eq!(queued.report_so_far().await.unwrap().executions("again"), 1);
    queued.send(Close).await.unwrap();
    assert_eq!(queued.outcome().await.unwrap(), Done(1));
}

/// Runs children concurrently, each for an hour.
struct Crowded;

#[workflow]
impl Crowded {
    #[step]
    async fn all(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let all = (0..begin.0).map(|_| children.run_with::<Hourly>(Begin(1), at_most(2)));
        let done = futures::future::try_join_all(all).await?;
        Ok(Done(done.iter().map(|done| done.0).sum()))
    }
}

struct Hourly;

#[workflow]
impl Hourly {
    #[step]
    async fn work(&self, begin: &Begin) -> Done {
        tokio::time::sleep(begin.0 * HOUR).await;
        Done(begin.0)
    }
}

// S32
#[tokio::test]
async fn neither_does_that_of_children_in_the_queue_for_theirs() {
    let crowded = Scenario::new(Crowded).host(Hourly).engine(|engine| engine.max_concurrent_children(1));
    let run = crowded.start(Begin(6)).await;
    run.assert_output(&Done(6));
    assert_eq!(run.elapsed(), 6 * HOUR);
}

// S32, S34
#[tokio::test]
async fn a_parent_that_completes_without_a_timed_out_child_is_degraded() {
    let run = Scenario::new(Lenient).host(Hourly).start(Begin(3)).await;
    run.assert_output(&Done(0));
    run.assert_quality(Quality::Degraded);
    assert_eq!(run.report().children[0].status, RunStatus::TimedOut);
}

/// Continues without its child.
struct Lenient;

#[workflow]
impl Lenient {
    #[step]
    async fn ask(&self, begin: &Begin, children: &Children) -> Done {
        children.run_with::<Hourly>(begin.clone(), at_most(2)).await.unwrap_or(Done(0))
    }
}

// S30, S32, S33: an outside event may come at the very moment of the timeout.
#[test]
fn a_run_ends_in_time_or_out_of_time_in_any_order() {
    let works = || {
        let works = Scenario::new(Works(Alive::default())).options(at_most(2));
        works.send_after(HOUR, Alpha(1)).send_after(2 * HOUR, Close).start(Begin(1))
    };
    let explored = explore(works).assert(|run| match run.status() {
        RunStatus::Completed => assert_eq!(log_of(run.report()).last(), Some(&"Done")),
        RunStatus::TimedOut => assert!(!log_of(run.report()).contains(&"Done")),
        other => panic!("{other}"),
    });
    let completed = explored.outcomes().filter(|outcome| outcome.output().is_some()).count();
    assert!(completed > 0 && explored.outcomes().count() > completed, "{explored}");
}

// S32: one hour of work before the wait, and then two more.
#[tokio::test]
async fn the_times_between_two_waits_add_up() {
    let works = Scenario::new(Works(Alive::default())).options(at_most(3));
    let run = works.send_after(20 * HOUR, Alpha(9)).start(Begin(1)).await;
    assert_eq!(run.status(), RunStatus::TimedOut);
    assert_eq!(run.elapsed(), 22 * HOUR);
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tick;

/// Waits for a timer.
struct Sleeps;

#[workflow]
impl Sleeps {
    #[step]
    async fn set(&self, begin: &Begin) -> Timer<Tick> {
        Timer::after(begin.0 * HOUR, Tick)
    }

    #[step]
    async fn work(&self, _: &Tick) -> Done {
        tokio::time::sleep(2 * HOUR).await;
        Done(1)
    }
}

// S30, S32
#[tokio::test]
async fn to_wait_for_a_timer_is_to_wait() {
    let run = Scenario::new(Sleeps).options(at_most(3)).start(Begin(100)).await;
    run.assert_output(&Done(1));
    let run = Scenario::new(Sleeps).options(at_most(1)).start(Begin(100)).await;
    assert_eq!((run.status(), run.elapsed()), (RunStatus::TimedOut, 101 * HOUR));
}

/// Consecutive steps, each of which returns at once.
struct Hurries;

#[workflow]
impl Hurries {
    #[step]
    async fn begin(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step(reruns)]
    async fn end(&self, item: &Item, more: Option<&Alpha>) -> Done {
        Done(item.0 + more.map_or(0, |more| more.0))
    }
}

// S75
#[tokio::test]
async fn a_run_without_time_does_not_start() {
    let engine = Engine::builder().workflow(Hurries).build().unwrap();
    let start = engine.start_with::<Hurries>(Begin(1), RunOptions::new().timeout(Duration::ZERO)).await;
    assert!(matches!(start, Err(StartError::NoTime)), "{:?}", start.map(|_| ()));
    let error = Engine::builder().workflow(Hurries).run_timeout(Duration::ZERO).build().unwrap_err();
    assert!(matches!(error.problems[..], [BuildProblem::NoTime { workflow: None }]), "{error}");
    let run = engine.start::<Hurries>(Begin(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}

// S31
#[tokio::test]
async fn messages_before_the_first_step_are_handled_before_it() {
    let engine = Engine::builder().workflow(Hurries).build().unwrap();
    let run = engine.start::<Hurries>(Begin(1)).await.unwrap();
    let (cancelled, outcome) = tokio::join!(run.cancel("early"), run.outcome());
    cancelled.unwrap();
    assert!(matches!(outcome, Err(RunError::Cancelled { .. })));
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin"]);
    let run = engine.start::<Hurries>(Begin(1)).await.unwrap();
    let (sent, outcome) = tokio::join!(run.send(Alpha(7)), run.outcome());
    sent.unwrap();
    assert_eq!(outcome.unwrap(), Done(8));
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin", "Alpha", "Item", "Done"]);
}

// S32, S33
#[tokio::test(start_paused = true)]
async fn the_engine_sets_a_timeout_for_every_run_and_a_run_for_itself() {
    let engine = Engine::builder().workflow(Works(Alive::default())).clock(VirtualClock::new());
    let engine = engine.run_timeout(2 * HOUR).build().unwrap();
    let short = engine.start::<Works>(Begin(5)).await.unwrap();
    let long = engine.start_with::<Works>(Begin(5), at_most(9)).await.unwrap();
    assert!(matches!(short.outcome().await, Err(RunError::TimedOut { .. })));
    let late = short.send(Close).await.unwrap_err();
    assert!(matches!(late, SendError::Ended { status: RunStatus::TimedOut, .. }));
    long.send(Close).await.unwrap();
    assert_eq!(long.outcome().await.unwrap(), Done(5));
}

// S32, S38
#[tokio::test(start_paused = true)]
async fn the_journal_ends_with_the_timeout() {
    let store = std::sync::Arc::new(MemoryStore::default());
    let engine = Engine::builder().workflow(Works(Alive::default())).clock(VirtualClock::new());
    let engine = engine.store(std::sync::Arc::clone(&store)).build().unwrap();
    let run = engine.start_with::<Works>(Begin(5), at_most(1).id("works")).await.unwrap();
    let report = run.report().await.unwrap();
    assert_eq!(log_of(&report), ["Begin"]);
    let records = EventStore::read(&*store, &RunId::new("works"), Position(0), 100).await.unwrap();
    assert!(matches!(records.last(), Some(Record::RunEnded { status: RunStatus::TimedOut, .. })));
}

// S28
#[tokio::test]
async fn a_run_that_ends_in_time_ends_as_ever() {
    let works = Scenario::new(Works(Alive::default())).options(at_most(1)).send_after(Duration::ZERO, Close);
    works.start(Begin(0)).await.assert_output(&Done(0));
}
