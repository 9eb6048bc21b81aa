//! The deadline of a run by the wall clock (S73).

use std::time::{Duration, SystemTime};

use expect_test::expect;
use serde_json::json;
use workflow_core::prelude::*;
use workflow_core::report::{ExecutionOutcome, Quality};
use workflow_core::{Clock as _, Pause, RunError, RunOptions, RunStatus, StartError};
use workflow_testkit::{Scenario, ScenarioOf, TestRun, VirtualClock, explore};

use crate::fixtures::{Alive, Alpha, Begin, Close, Done, Item, Part, Seen, log_of, outcomes_of};

const HOUR: Duration = Duration::from_hours(1);

fn at(hours: u32) -> SystemTime {
    VirtualClock::beginning() + hours * HOUR
}

fn until(hours: u32) -> RunOptions {
    RunOptions::new().deadline(at(hours))
}

/// Works for as many hours as its start says, and then waits.
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

fn works(hours: u32) -> ScenarioOf<Works> {
    Scenario::new(Works(Alive::default())).options(until(hours))
}

fn assert_ended_at<W: Workflow>(run: &TestRun<W>, hours: u32) {
    assert_eq!((run.status(), run.elapsed()), (RunStatus::TimedOut, hours * HOUR));
    assert!(matches!(run.outcome(), Err(RunError::DeadlinePassed { deadline }) if *deadline == at(hours)));
    let deadline = run.report().deadline.unwrap();
    assert!(deadline.ended_run && deadline.at == at(hours));
    run.assert_quality(Quality::Failed);
}

// S73
#[tokio::test]
async fn a_run_ends_at_its_deadline_while_a_step_runs_and_while_it_waits() {
    let alive = Alive::default();
    let run = Scenario::new(Works(alive.clone())).options(until(2)).start(Begin(3)).await;
    assert_ended_at(&run, 2);
    assert_eq!(alive.count(), 0);
    expect![[r"
        #1 Begin from outside: 3
        x1 begin by #1: dropped
        timed out: the run's deadline, 2000-01-01T02:00:00Z, has passed: see `RunOptions::deadline`
    "]]
    .assert_eq(&run.transcript());
    let printed = run.report().to_string();
    assert!(printed.contains("its deadline, 2000-01-01T02:00:00Z, ended it"), "{printed}");

    let run = works(5).send_after(2 * HOUR, Alpha(1)).start(Begin(1)).await;
    assert_ended_at(&run, 5);
    assert_eq!(log_of(run.report()), ["Begin", "Item", "Alpha", "Item"]);
}

// S73, S32
#[tokio::test]
async fn the_earlier_one_of_deadline_and_active_time_ends_a_run_and_says_so() {
    let both = |active: u32| {
        let options = until(5).timeout(active * HOUR);
        Scenario::new(Works(Alive::default())).options(options).start(Begin(9))
    };
    assert_ended_at(&both(6).await, 5);
    let run = both(4).await;
    assert!(matches!(run.outcome(), Err(RunError::TimedOut { after, .. }) if *after == 4 * HOUR));
    let deadline = run.report().deadline.unwrap();
    assert!(!deadline.ended_run && deadline.to_string() == "its deadline is 2000-01-01T05:00:00Z");
}

// S73
#[tokio::test]
async fn a_run_that_ends_before_its_deadline_ends_as_ever() {
    let run = works(5).send_after(2 * HOUR, Close).start(Begin(1)).await;
    run.assert_output(&Done(1));
    assert!(run.report().deadline.is_some_and(|deadline| !deadline.ended_run));
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Tick(u32);

/// Sets timers, one for each hour.
struct Ticks;

#[workflow]
impl Ticks {
    #[step]
    async fn set(&self, begin: &Begin) -> Vec<Timer<Tick>> {
        (1..=begin.0).map(|hours| Timer::after(hours * HOUR, Tick(hours))).collect()
    }

    #[step]
    async fn tick(&self, tick: &Tick) -> Option<Done> {
        (tick.0 == 9).then_some(Done(9))
    }
}

// S73, S32
#[tokio::test]
async fn a_timer_that_is_due_at_the_deadline_comes_before_it() {
    let run = Scenario::new(Ticks).options(until(3)).start(Begin(9)).await;
    assert_ended_at(&run, 3);
    assert_eq!(log_of(run.report()), ["Begin", "Tick", "Tick", "Tick"]);
}

// S73, S32: an outside event may come at the very moment of the deadline.
#[test]
fn a_run_ends_in_time_or_at_its_deadline_in_any_order() {
    let explored = explore(|| works(3).send_after(2 * HOUR, Alpha(1)).start(Begin(1)));
    explored.assert(|run| {
        assert!(matches!(run.outcome(), Err(RunError::DeadlinePassed { .. })), "{:?}", run.outcome());
    });
    let explored = explore(|| works(2).send_after(2 * HOUR, Close).start(Begin(1)));
    let explored = explored.assert(|run| match run.outcome() {
        Ok(done) => assert_eq!(*done, Done(1)),
        Err(error) => assert!(matches!(error, RunError::DeadlinePassed { .. }), "{error}"),
    });
    assert!(explored.outcomes().count() > 0, "{explored}");
}

// S73, S61
#[tokio::test(start_paused = true)]
async fn a_paused_run_ends_at_its_deadline() {
    let engine = Engine::builder().workflow(Works(Alive::default())).clock(VirtualClock::new());
    let engine = engine.build().unwrap();
    let run = engine.start_with::<Works>(Begin(1), until(4)).await.unwrap();
    run.pause(Pause::AfterRunning).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
    assert!(matches!(run.outcome().await, Err(RunError::DeadlinePassed { .. })));
    let report = run.report().await.unwrap();
    assert!(report.paused.is_none() && report.deadline.unwrap().ended_run);
    let explained = run.explain().await.unwrap().to_string();
    assert!(explained.contains("- its deadline, 2000-01-01T04:00:00Z, ended it"), "{explained}");
}

// S73
#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_permit_ends_at_its_deadline() {
    let clock = VirtualClock::new();
    let engine = Engine::builder().workflow(Works(Alive::default())).clock(clock.clone());
    let engine = engine.max_concurrent_runs(1).build().unwrap();
    let waits = engine.start_with::<Works>(Begin(0), until(3)).await.unwrap();
    assert_eq!(waits.settled().await, RunStatus::Waiting);
    let busy = engine.start::<Works>(Begin(9)).await.unwrap();
    // It queues for its permit again, and another start queues for its first one.
    waits.send(Alpha(1)).await.unwrap();
    let refused = engine.start_with::<Works>(Begin(0), until(2)).await.unwrap_err();
    assert!(matches!(refused, StartError::DeadlinePassed { deadline } if deadline == at(2)), "{refused}");
    assert_eq!(clock.now(), at(2));
    assert!(matches!(waits.outcome().await, Err(RunError::DeadlinePassed { .. })));
    assert_eq!(clock.now(), at(3));
    let report = waits.report().await.unwrap();
    assert_eq!(outcomes_of(&report, "again"), [&ExecutionOutcome::Dropped], "it never began");
    assert_eq!(engine.queued(), []);
    busy.cancel("enough").await.unwrap();
}

// S73
#[tokio::test(start_paused = true)]
async fn a_start_behind_its_deadline_is_refused_and_json_starts_have_one_too() {
    let clock = VirtualClock::new();
    let engine = Engine::builder().workflow(Works(Alive::default())).clock(clock.clone()).build().unwrap();
    let refused = engine.start_with::<Works>(Begin(0), until(0)).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.starts_with("the deadline of the run, 2000-01-01T00:00:00Z, has passed"), "{text}");
    assert!(engine.running().is_empty());
    let run = engine.start_json("Works", "Begin", json!(9), until(1)).await.unwrap();
    assert!(matches!(run.outcome_any().await, Err(RunError::DeadlinePassed { .. })));
    assert_eq!(clock.now(), at(1));
}

struct Parent {
    of_child: u32,
    seen: Seen,
}

#[workflow]
impl Parent {
    #[step]
    async fn ask(&self, begin: &Begin, children: &Children) -> Part {
        let outcome = children.run_with::<Works>(begin.clone(), until(self.of_child)).await;
        self.seen.note(outcome.unwrap_err().to_string());
        Part(0)
    }

    #[step]
    async fn end(&self, part: &Part) -> Done {
        Done(part.0)
    }
}

fn parent(of_child: u32) -> (Seen, ScenarioOf<Parent>) {
    let seen = Seen::default();
    let parent = Scenario::new(Parent { of_child, seen: seen.clone() });
    (seen, parent.host(Works(Alive::default())))
}

// S73
#[tokio::test]
async fn a_child_ends_at_its_own_deadline_or_with_its_parent() {
    let (seen, scenario) = parent(2);
    let run = scenario.start(Begin(9)).await;
    run.assert_output(&Done(0));
    assert_eq!(run.elapsed(), 2 * HOUR);
    assert!(seen.lines()[0].contains("2000-01-01T02:00:00Z"), "{:?}", seen.lines());
    let child = run.report().children[0].report.as_ref().unwrap();
    assert!(child.status == RunStatus::TimedOut && child.deadline.unwrap().ended_run);

    let (seen, scenario) = parent(5);
    let run = scenario.options(until(3)).start(Begin(9)).await;
    assert_ended_at(&run, 3);
    assert_eq!(run.report().children[0].status, RunStatus::Cancelled);
    assert!(seen.lines().is_empty());

    // Its deadline has passed before it begins.
    let (seen, scenario) = parent(0);
    scenario.start(Begin(9)).await.assert_output(&Done(0));
    assert!(seen.lines()[0].contains("2000-01-01T00:00:00Z, has passed"), "{:?}", seen.lines());
}

struct Undoes(Seen);

#[workflow]
impl Undoes {
    #[step]
    async fn act(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item, _: &Close) -> Done {
        Done(item.0)
    }

    #[step(on_end = "timed_out")]
    async fn undo(&self, _item: &Item, info: &RunInfo) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.note(info.ending().unwrap().to_string());
    }
}

// S73, S31
#[tokio::test]
async fn clean_up_steps_run_after_a_deadline_and_learn_which() {
    let seen = Seen::default();
    let run = Scenario::new(Undoes(seen.clone())).options(until(1)).start(Begin(1)).await;
    assert_eq!(seen.lines(), ["timed out at its deadline, 2000-01-01T01:00:00Z"]);
    assert_eq!(run.elapsed(), HOUR + Duration::from_secs(1));
    assert!(matches!(run.outcome(), Err(RunError::DeadlinePassed { .. })));
    let clean_up = run.report().clean_up.as_ref().unwrap();
    assert_eq!(clean_up.ending.status(), RunStatus::TimedOut);
}

/// A clock that a step sets as it computes.
#[derive(Clone, Default)]
struct Computed(std::sync::Arc<std::sync::atomic::AtomicU32>);

impl workflow_core::Clock for Computed {
    fn now(&self) -> SystemTime {
        at(self.0.load(std::sync::atomic::Ordering::SeqCst))
    }

    fn sleep_until(&self, _: SystemTime) -> futures::future::BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Two steps that compute for an hour each, without an `.await`.
struct Computes(Computed);

#[workflow]
impl Computes {
    #[step(spawn = false)]
    async fn first(&self, begin: &Begin) -> Item {
        self.0.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Item(begin.0)
    }

    #[step(spawn = false)]
    async fn second(&self, item: &Item) -> Part {
        self.0.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Part(item.0)
    }

    #[step(spawn = false)]
    async fn third(&self, part: &Part) -> Done {
        Done(part.0)
    }
}

// S73
#[tokio::test]
async fn nothing_begins_after_the_deadline_also_between_steps_that_compute_without_a_store() {
    let clock = Computed::default();
    let engine = Engine::builder().workflow(Computes(clock.clone())).clock(clock.clone()).build().unwrap();
    let run = engine.start_with::<Computes>(Begin(1), until(2)).await.unwrap();
    assert!(matches!(run.outcome().await, Err(RunError::DeadlinePassed { .. })));
    assert_eq!(log_of(&run.report().await.unwrap()), ["Begin", "Item"]);
}
