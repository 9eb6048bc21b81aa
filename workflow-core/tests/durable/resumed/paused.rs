//! Pauses across processes (S61): their records, and the work that begins after them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::report::WaitsFor;
use workflow_core::store::{EventStore, MemoryStore, Position, Record, RunQuery};
use workflow_core::{
    Clock as _, EngineBuilder, ErrorClass, Pause, RecordedRun, Retries, RetryPolicy, RunError, RunHandle,
    RunOptions, RunStatus,
};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note, Part, until};

const HOUR: Duration = Duration::from_hours(1);

/// All processes share the store, and the list of what their steps did.
#[derive(Debug, Clone, Default)]
struct World {
    store: Arc<MemoryStore>,
    seen: Arc<Mutex<Vec<String>>>,
    /// How long all processes have lived together.
    lived: Arc<Mutex<Duration>>,
}

impl World {
    fn saw(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    fn engine(&self, clock: VirtualClock) -> EngineBuilder {
        let engine =
            Engine::builder().store(Arc::clone(&self.store)).clock(clock).workflow(Pays(self.clone()));
        let engine = engine.workflow(Parent(self.clone())).workflow(Retried(self.clone()));
        engine.workflow(CleansUp(self.clone())).unload_waiting_after(Duration::MAX)
    }

    /// A process that resumes all runs, does this, and is killed.
    fn killed<F: Future<Output = ()>>(&self, work: impl FnOnce(Engine) -> F) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let engine = runtime.block_on(async {
            let (clock, lived) = (VirtualClock::new(), *self.lived.lock().unwrap());
            let began = clock.now();
            sleep(lived).await;
            let engine = self.engine(clock.clone()).build().unwrap();
            let resumed = engine.resume_open_runs().await.unwrap();
            assert!(resumed.refused.is_empty(), "{resumed:?}");
            a_second().await;
            work(engine.clone()).await;
            *self.lived.lock().unwrap() = clock.now().duration_since(began).unwrap();
            engine
        });
        drop(runtime);
        drop(engine);
    }

    fn journal(&self, run: &str) -> Vec<Record> {
        let read = self.store.read(&run.into(), Position(0), usize::MAX);
        futures::FutureExt::now_or_never(read).expect("a store in memory answers at once").unwrap()
    }

    fn recorded(&self, run: &str) -> RecordedRun {
        RecordedRun::of(&run.into(), &self.journal(run)).unwrap()
    }
}

async fn a_second() {
    sleep(Duration::from_secs(1)).await;
}

async fn start<W: Workflow>(engine: &Engine, number: u32) -> RunHandle<W> {
    let run = engine.start_with::<W>(Begin(number), RunOptions::new().id("r")).await.unwrap();
    a_second().await;
    run
}

async fn attach<W: Workflow>(engine: &Engine, run: &str) -> RunHandle<W> {
    let run = engine.attach::<W>(run).await.unwrap();
    a_second().await;
    run
}

async fn paused<W: Workflow>(run: &RunHandle<W>, how: Pause) {
    run.pause(how).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
}

/// Works for so many hours, and pays at most once for each note.
#[derive(Clone)]
struct Pays(World);

#[workflow]
impl Pays {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Item {
        self.0.saw(format!("work {}", info.may_have_begun()));
        sleep(begin.0 * HOUR).await;
        Item(begin.0)
    }

    #[step(at_most_once)]
    async fn pay(&self, note: &Note, info: &RunInfo) -> Part {
        self.0.saw(format!("pay {} {}", note.0, info.may_have_begun()));
        sleep(note.0 * HOUR).await;
        Part(note.0)
    }

    #[step(precondition = is_due)]
    async fn check(&self, note: &Note) -> Option<Part> {
        self.0.saw(format!("check {}", note.0));
        None
    }

    #[precondition]
    fn is_due(&self, note: &Note) -> bool {
        self.0.saw(format!("is {} due", note.0));
        note.0 > 9
    }

    #[step]
    async fn end(&self, item: &Item, part: &Part) -> Done {
        Done(item.0 + part.0)
    }
}

// S61
#[test]
fn a_pause_survives_restarts_and_what_was_deferred_has_not_begun() {
    let world = World::default();
    world.killed(async |engine| {
        let run = start::<Pays>(&engine, 0).await;
        paused(&run, Pause::AfterRunning).await;
        run.send(Note(1)).await.unwrap();
        world.take();
    });
    for _ in 0..3 {
        world.killed(async |engine| {
            let run = attach::<Pays>(&engine, "r").await;
            assert_eq!(run.settled().await, RunStatus::Paused);
            let waiting = run.report_so_far().await.unwrap().waiting.clone();
            assert!(waiting.len() == 1 && waiting[0].waits_for == WaitsFor::Pause, "{waiting:?}");
        });
    }
    assert!(world.take().is_empty(), "no process began anything");
    world.killed(async |engine| {
        let run = attach::<Pays>(&engine, "r").await;
        run.unpause().await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(1));
    });
    assert_eq!(
        world.take(),
        ["is 1 due", "pay 1 false"],
        "an execution that waited for a pause has not begun"
    );
}

// S61, S69
#[test]
fn an_execution_under_way_when_its_process_is_killed_in_a_pause_may_have_begun_and_is_interrupted_once() {
    let world = World::default();
    world.killed(async |engine| {
        let run = start::<Pays>(&engine, 2).await;
        run.pause(Pause::AfterRunning).await.unwrap();
        assert_eq!(run.status(), RunStatus::Running);
    });
    assert_eq!(world.recorded("r").status(), RunStatus::Running);
    for _ in 0..6 {
        world.killed(async |engine| {
            let run = attach::<Pays>(&engine, "r").await;
            let waiting = run.report_so_far().await.unwrap().waiting.clone();
            assert!(waiting.len() == 1 && waiting[0].waits_for == WaitsFor::Pause, "{waiting:?}");
        });
    }
    assert_eq!(world.take(), ["work false"]);
    world.killed(async |engine| {
        let run = attach::<Pays>(&engine, "r").await;
        run.unpause().await.unwrap();
        run.send(Note(1)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(3), "processes of paused runs interrupt nothing");
    });
    let seen = world.take();
    assert!(seen.contains(&"work true".to_owned()), "{seen:?}");
}

// S61
#[test]
fn now_drops_what_runs_unloads_the_run_and_unpausing_begins_it_again() {
    let world = World::default();
    world.killed(async |engine| {
        let run = start::<Pays>(&engine, 2).await;
        paused(&run, Pause::Now).await;
        until(async || engine.find(run.id()).is_some_and(|run| run.status() == RunStatus::Paused)).await;
        assert_eq!(engine.running(), ["r".into()]);
        let listed = engine.runs(&RunQuery::new().status(RunStatus::Paused)).await.unwrap();
        assert_eq!(listed.len(), 1);
        sleep(5 * HOUR).await;
        run.send(Note(0)).await.unwrap();
        assert_eq!(world.take(), ["work false"]);
        run.unpause().await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(2));
        assert_eq!(world.take(), ["is 0 due", "work true", "pay 0 false"]);
    });
    let dropped = |record: &Record| matches!(record, Record::RunPaused { dropped, .. } if dropped.len() == 1);
    assert_eq!(world.journal("r").iter().filter(|record| dropped(record)).count(), 1);
}

// S61, S69
#[test]
fn now_leaves_an_execution_that_happens_at_most_once_in_doubt() {
    for is_killed in [false, true] {
        let world = World::default();
        let is_in_doubt = async |run: RunHandle<Pays>| {
            run.unpause().await.unwrap();
            let outcome = run.outcome().await;
            assert!(
                matches!(outcome, Err(RunError::StepFailed { class: ErrorClass::InDoubt, .. })),
                "{outcome:?}"
            );
        };
        world.killed(async |engine| {
            let run = start::<Pays>(&engine, 0).await;
            run.send(Note(1)).await.unwrap();
            a_second().await;
            paused(&run, Pause::Now).await;
            if !is_killed {
                is_in_doubt(run).await;
            }
        });
        if is_killed {
            world.killed(async |engine| is_in_doubt(attach(&engine, "r").await).await);
        }
        let seen = world.take();
        assert_eq!(seen.iter().filter(|seen| seen.starts_with("pay")).count(), 1, "{seen:?}");
    }
}

// S61
#[test]
fn now_after_a_pause_drops_what_still_runs() {
    let world = World::default();
    world.killed(async |engine| {
        let run = start::<Pays>(&engine, 2).await;
        run.pause(Pause::AfterRunning).await.unwrap();
        a_second().await;
        assert_eq!(run.status(), RunStatus::Running);
        paused(&run, Pause::Now).await;
        paused(&run, Pause::Now).await;
        run.unpause().await.unwrap();
        a_second().await;
    });
    assert_eq!(world.take(), ["work false", "work true"]);
    let pauses = |record: &&Record| matches!(record, Record::RunPaused { .. });
    assert_eq!(world.journal("r").iter().filter(pauses).count(), 2, "a repeat leaves no record");
}

/// Fails at first.
#[derive(Clone)]
struct Retried(World);

fn an_hour_later() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(3, HOUR))
}

#[workflow]
impl Retried {
    #[step(retry = an_hour_later(), at_most_once)]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.0.saw(format!("attempt {} {}", info.attempt(), info.may_have_begun()));
        if info.attempt() == 1 { Err(StepError::tool("busy")) } else { Ok(Done(begin.0)) }
    }
}

// S53, S61
#[test]
fn a_retry_that_falls_due_in_a_pause_has_not_begun() {
    let world = World::default();
    world.killed(async |engine| {
        let run = start::<Retried>(&engine, 1).await;
        paused(&run, Pause::AfterRunning).await;
        sleep(2 * HOUR).await;
    });
    world.killed(async |engine| {
        let run = attach::<Retried>(&engine, "r").await;
        assert_eq!(run.settled().await, RunStatus::Paused);
        run.unpause().await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(1));
    });
    assert_eq!(world.take(), ["attempt 1 false", "attempt 2 false"]);
}

// S32, S61
#[test]
fn the_active_time_of_a_paused_run_stands_still_across_processes() {
    let world = World::default();
    world.killed(async |engine| {
        let options = RunOptions::new().id("r").timeout(3 * HOUR);
        let run = engine.start_with::<Pays>(Begin(1), options).await.unwrap();
        sleep(2 * HOUR).await;
        assert_eq!(run.settled().await, RunStatus::Waiting);
        run.send(Note(1)).await.unwrap();
        a_second().await;
        run.pause(Pause::AfterRunning).await.unwrap();
        sleep(9 * HOUR).await;
        assert_eq!(run.status(), RunStatus::Paused);
        run.send(Note(0)).await.unwrap();
        a_second().await;
    });
    world.killed(async |engine| {
        sleep(9 * HOUR).await;
        let run = attach::<Pays>(&engine, "r").await;
        assert_eq!(run.settled().await, RunStatus::Paused);
        run.unpause().await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(2), "two hours of three are used");
    });
}

/// Cleans up.
#[derive(Clone)]
struct CleansUp(World);

#[workflow]
impl CleansUp {
    #[step]
    async fn work(&self, _begin: &Begin, note: &Note) -> Result<Done, StepError> {
        self.0.saw("work");
        if note.0 == 0 { Err(StepError::permanent("no")) } else { Ok(Done(note.0)) }
    }

    #[step(on_end)]
    async fn undo(&self, _begin: &Begin) {
        self.0.saw("undo");
    }
}

// S31, S39, S61
#[test]
fn a_paused_run_that_is_cancelled_cleans_up_and_a_redriven_one_is_not_paused() {
    let world = World::default();
    world.killed(async |engine| {
        let run = start::<CleansUp>(&engine, 0).await;
        paused(&run, Pause::AfterRunning).await;
        run.send(Note(1)).await.unwrap();
    });
    world.killed(async |engine| {
        let run = attach::<CleansUp>(&engine, "r").await;
        run.cancel("enough").await.unwrap();
        assert_eq!(world.take(), ["undo"]);
        assert_eq!(run.report().await.unwrap().paused, None);
        let again = workflow_core::Redrive::new().despite_clean_up();
        let run = engine.redrive_with::<CleansUp>("r", again).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(1));
        assert_eq!(world.take(), ["work"]);
    });
}

// S61
#[test]
fn a_journal_shows_the_pause_of_its_run() {
    let world = World::default();
    world.killed(async |engine| {
        let run = start::<Pays>(&engine, 1).await;
        run.pause(Pause::AfterRunning).await.unwrap();
        run.send(Note(0)).await.unwrap();
        a_second().await;
        let recorded = world.recorded("r");
        assert_eq!((recorded.status(), recorded.report().paused.is_some()), (RunStatus::Running, true));
        sleep(HOUR).await;
        let live = run.report_so_far().await.unwrap();
        let recorded = world.recorded("r");
        assert_eq!((recorded.status(), run.status()), (RunStatus::Paused, RunStatus::Paused));
        assert_eq!(recorded.report().paused, live.paused);
        let waits = |report: &workflow_core::report::RunReport| {
            report.waiting.iter().map(|it| (it.execution, it.waits_for.clone())).collect::<Vec<_>>()
        };
        assert_eq!(waits(recorded.report()), waits(&live));
        assert!(!recorded.explain().to_string().contains("stalled"));
    });
}

/// Runs a child.
#[derive(Clone)]
struct Parent(World);

#[workflow]
impl Parent {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        self.0.saw("delegate");
        children.run_with::<Pays>(Begin(begin.0), RunOptions::new().id("c")).await
    }
}

const CHILD: &str = "r/delegate-x1.c";

// S61
#[test]
fn now_detaches_an_awaited_child_and_its_parent_finds_it_again_after_the_pause() {
    for is_killed in [false, true] {
        let world = World::default();
        let ends = async |engine: &Engine, run: RunHandle<Parent>| {
            run.unpause().await.unwrap();
            a_second().await;
            let child = attach::<Pays>(engine, CHILD).await;
            child.send(Note(0)).await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Done(2));
            let report = run.report().await.unwrap();
            let statuses: Vec<_> = report.children.iter().map(|child| child.status).collect();
            assert_eq!(statuses, [RunStatus::Completed]);
        };
        world.killed(async |engine| {
            let run = start::<Parent>(&engine, 2).await;
            let child = attach::<Pays>(&engine, CHILD).await;
            paused(&run, Pause::Now).await;
            assert!(matches!(child.outcome().await, Err(RunError::Detached)));
            assert_eq!(engine.running(), ["r".into()]);
            if !is_killed {
                ends(&engine, run).await;
            }
        });
        if is_killed {
            world.killed(async |engine| {
                let run = attach::<Parent>(&engine, "r").await;
                assert_eq!((run.status(), engine.running()), (RunStatus::Paused, vec!["r".into()]));
                ends(&engine, run).await;
            });
        }
        assert_eq!(
            world.take(),
            ["delegate", "work false", "delegate", "work true", "pay 0 false", "is 0 due"]
        );
    }
}

// S61
#[test]
fn a_child_that_was_paused_with_its_parent_continues_with_it_in_the_next_process() {
    let world = World::default();
    world.killed(async |engine| {
        let run = start::<Parent>(&engine, 0).await;
        let child = attach::<Pays>(&engine, CHILD).await;
        paused(&run, Pause::AfterRunning).await;
        child.send(Note(0)).await.unwrap();
        assert_eq!(child.settled().await, RunStatus::Paused);
        world.take();
    });
    world.killed(async |engine| {
        let run = attach::<Parent>(&engine, "r").await;
        assert_eq!((run.status(), engine.running()), (RunStatus::Paused, vec!["r".into()]));
        let child = attach::<Pays>(&engine, CHILD).await;
        assert_eq!(child.settled().await, RunStatus::Paused, "a handle does not unpause it");
        assert!(world.take().is_empty());
        run.unpause().await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(0));
    });
    assert_eq!(world.take(), ["delegate", "is 0 due", "pay 0 false"]);
}

// S61
#[test]
fn a_child_that_is_loaded_before_its_parent_pauses_with_it_once_the_parent_asks_for_it() {
    let world = World::default();
    world.killed(async |engine| {
        let run = start::<Parent>(&engine, 0).await;
        paused(&run, Pause::AfterRunning).await;
        world.take();
    });
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let engine = world.engine(VirtualClock::new()).build().unwrap();
        let child = attach::<Pays>(&engine, CHILD).await;
        assert_eq!(child.settled().await, RunStatus::Paused, "its parent is not here");
        let run = attach::<Parent>(&engine, "r").await;
        run.unpause().await.unwrap();
        a_second().await;
        assert_eq!((run.status(), child.status()), (RunStatus::Running, RunStatus::Waiting));
        paused(&run, Pause::AfterRunning).await;
        assert_eq!(child.status(), RunStatus::Paused);
        run.unpause().await.unwrap();
        child.send(Note(0)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(0));
    });
    assert_eq!(world.take(), ["delegate", "pay 0 false", "is 0 due"]);
}
