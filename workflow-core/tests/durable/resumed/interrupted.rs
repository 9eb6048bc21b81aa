//! Executions under which processes end (S35), and attempts that may have begun before (S53).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use workflow_core::errors::Interrupted;
use workflow_core::prelude::*;
use workflow_core::report::WaitsFor;
use workflow_core::store::{EventStore, MemoryStore, Position, Record};
use workflow_core::{
    Clock as _, EngineBuilder, ErrorClass, Retries, RetryPolicy, RunOptions, RunStatus, StepFailed,
};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note, Part};

/// What all processes share: the store, and what their steps did.
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

    fn count(&self, what: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| **seen == what).count()
    }

    /// A process that resumes all runs, does this, and is killed.
    fn killed<F: Future<Output = ()>>(
        &self,
        change: impl FnOnce(EngineBuilder) -> EngineBuilder,
        work: impl FnOnce(Engine) -> F,
    ) {
        let runtime = runtime();
        let engine = runtime.block_on(async {
            let (clock, lived) = (VirtualClock::new(), *self.lived.lock().unwrap());
            let began = clock.now();
            sleep(lived).await;
            let engine = Engine::builder().store(Arc::clone(&self.store)).clock(clock.clone());
            let engine = change(engine).build().unwrap();
            engine.resume_open_runs().await.unwrap();
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

    fn records(&self, run: &str, is: impl Fn(&Record) -> bool) -> usize {
        self.journal(run).iter().filter(|record| is(record)).count()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

fn began(record: &Record) -> bool {
    matches!(record, Record::AttemptBegan { .. })
}

async fn start<W: Workflow>(engine: &Engine, run: &str, number: u32) {
    engine.start_with::<W>(Begin(number), RunOptions::new().id(run)).await.unwrap();
}

async fn a_second() {
    sleep(Duration::from_secs(1)).await;
}

/// Works for so many seconds: for ever, if it is about to be killed.
#[derive(Clone)]
struct Works(World);

#[workflow]
impl Works {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Item {
        self.0.saw(format!("{} begins", info.run()));
        sleep(Duration::from_secs(u64::from(begin.0))).await;
        Item(begin.0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

const FOR_EVER: u32 = 1_000_000;

// S35
#[test]
fn an_execution_under_which_five_processes_end_fails_as_interrupted() {
    let world = World::default();
    let hosts = |engine: EngineBuilder| engine.workflow(Works(world.clone()));
    world.killed(hosts, async |engine| {
        start::<Works>(&engine, "r", FOR_EVER).await;
        a_second().await;
    });
    for _ in 0..4 {
        world.killed(hosts, async |_| a_second().await);
    }
    assert_eq!((world.count("r begins"), world.records("r", began)), (5, 3));
    world.killed(hosts, async |engine| {
        let outcome = engine.attach::<Works>("r").await.unwrap().outcome().await;
        let Err(RunError::StepFailed { class: ErrorClass::Interrupted, source, .. }) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(source.downcast_ref::<Interrupted>().unwrap().attempts, 5);
        assert_eq!(
            source.to_string(),
            "the process ended under 5 of its attempts (`max_interrupted_attempts`)"
        );
    });
    assert_eq!(world.count("r begins"), 5);
}

// S35
#[test]
fn the_number_of_interrupted_attempts_is_set_on_the_engine_and_is_no_part_of_the_journal() {
    let world = World::default();
    let hosts = |engine: EngineBuilder| engine.workflow(Works(world.clone()));
    world.killed(hosts, async |engine| {
        start::<Works>(&engine, "r", FOR_EVER).await;
        a_second().await;
    });
    world.killed(hosts, async |_| a_second().await);
    world.killed(
        |engine| hosts(engine).max_interrupted_attempts(2),
        async |engine| {
            let outcome = engine.attach::<Works>("r").await.unwrap().outcome().await;
            assert!(
                matches!(outcome, Err(RunError::StepFailed { class: ErrorClass::Interrupted, .. })),
                "{outcome:?}"
            );
        },
    );
}

// S35
#[test]
fn one_that_kills_its_process_takes_no_neighbour_with_it() {
    for (kills, works) in [("a", "b"), ("b", "a")] {
        let world = World::default();
        let hosts = |engine: EngineBuilder| engine.workflow(Works(world.clone()));
        world.killed(hosts, async |engine| {
            start::<Works>(&engine, kills, FOR_EVER).await;
            start::<Works>(&engine, works, 10).await;
            a_second().await;
        });
        world.killed(hosts, async |_| a_second().await);
        assert_eq!((world.count("a begins"), world.count("b begins")), (2, 2));
        // Each process is killed a second after the killer began, so the other one ends only if it is alone.
        for process in 3..=5 {
            world.killed(hosts, async |engine| {
                while world.count(&format!("{kills} begins")) < process {
                    a_second().await;
                }
                if kills == "a" {
                    let waits = engine.attach::<Works>(works).await.unwrap();
                    let report = waits.report_so_far().await.unwrap();
                    let [waiting] = &report.waiting[..] else { panic!("{report:?}") };
                    assert!(
                        matches!(&waiting.waits_for, WaitsFor::Interrupted { attempts: 2, run: Some(run), .. }
                            if run.as_str() == kills),
                        "{waiting:?}"
                    );
                    let text = waits.explain().await.unwrap().to_string();
                    assert!(text.contains("one such execution runs at a time: x1 of run `a`"), "{text}");
                }
            });
        }
        world.killed(hosts, async |engine| {
            let killed = engine.attach::<Works>(kills).await.unwrap().outcome().await;
            assert!(matches!(killed, Err(RunError::StepFailed { class: ErrorClass::Interrupted, .. })));
            let worked = engine.attach::<Works>(works).await.unwrap().outcome().await;
            assert_eq!(worked.unwrap(), Done(10));
        });
        assert_eq!(world.count(&format!("{kills} begins")), 5);
        assert_eq!(world.count(&format!("{works} begins")), 3);
    }
}

// S35
#[test]
fn a_run_that_is_detached_on_purpose_is_not_interrupted() {
    let world = World::default();
    let hosts = |engine: EngineBuilder| engine.workflow(Works(world.clone()));
    world.killed(hosts, async |engine| {
        start::<Works>(&engine, "r", 10).await;
        a_second().await;
        engine.shut_down(Duration::ZERO).await;
    });
    for _ in 0..9 {
        world.killed(hosts, async |engine| {
            a_second().await;
            engine.shut_down(Duration::ZERO).await;
        });
    }
    let detached =
        |record: &Record| matches!(record, Record::RunDetached { dropped, .. } if dropped.len() == 1);
    assert_eq!((world.count("r begins"), world.records("r", detached)), (10, 10));
    world.killed(hosts, async |engine| {
        assert_eq!(engine.attach::<Works>("r").await.unwrap().outcome().await.unwrap(), Done(10));
    });
    assert_eq!(world.records("r", began), 0);
}

// S42
#[test]
fn a_waiting_run_is_detached_without_a_record() {
    let world = World::default();
    let hosts = |engine: EngineBuilder| engine.workflow(Tells(world.clone()));
    world.killed(hosts, async |engine| {
        start::<Tells>(&engine, "r", 2).await;
        assert_eq!(engine.attach::<Tells>("r").await.unwrap().settled().await, RunStatus::Waiting);
        engine.shut_down(Duration::ZERO).await;
    });
    assert!(matches!(world.journal("r").last(), Some(Record::RunWaiting { .. })));
}

/// Its steps say whether their attempts may have begun before.
#[derive(Clone)]
struct Tells(World);

#[workflow]
impl Tells {
    #[step]
    async fn spread(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(concurrency = 1)]
    async fn work(&self, item: &Item, info: &RunInfo) -> Part {
        self.0.saw(format!("work {} {}", item.0, info.may_have_begun()));
        sleep(Duration::from_secs(10)).await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &FixedList<Part, 2>, note: &Note) -> Done {
        Done(note.0 + parts.iter().map(|part| part.0).sum::<u32>())
    }
}

// S21, S35, S53
#[test]
fn an_attempt_that_waited_for_the_concurrency_of_its_step_has_not_begun() {
    let world = World::default();
    let hosts = |engine: EngineBuilder| engine.workflow(Tells(world.clone()));
    world.killed(hosts, async |engine| {
        start::<Tells>(&engine, "r", 2).await;
        a_second().await;
    });
    world.killed(hosts, async |engine| {
        let run = engine.attach::<Tells>("r").await.unwrap();
        run.send(Note(1)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(2));
    });
    assert_eq!(*world.seen.lock().unwrap(), ["work 0 false", "work 0 true", "work 1 false"]);
}

/// The same steps with room for two.
#[derive(Clone)]
struct Roomy(World);

#[workflow(name = "Tells")]
impl Roomy {
    #[step]
    async fn spread(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(concurrency = 2)]
    async fn work(&self, item: &Item, info: &RunInfo) -> Part {
        self.0.saw(format!("work {} {}", item.0, info.may_have_begun()));
        sleep(Duration::from_secs(10)).await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, parts: &FixedList<Part, 2>, note: &Note) -> Done {
        Done(note.0 + parts.iter().map(|part| part.0).sum::<u32>())
    }
}

// S41, S53
#[test]
fn the_concurrency_of_the_table_under_which_a_process_ran_decides_which_attempts_it_may_have_begun() {
    let world = World::default();
    let tells = |engine: EngineBuilder| engine.workflow(Tells(world.clone()));
    let roomy = |engine: EngineBuilder| engine.workflow(Roomy(world.clone()));
    world.killed(tells, async |engine| {
        start::<Tells>(&engine, "more", 2).await;
        a_second().await;
    });
    world.killed(roomy, async |engine| {
        start::<Roomy>(&engine, "less", 2).await;
        a_second().await;
    });
    world.killed(tells, async |engine| {
        for run in ["less", "more"] {
            let run = engine.attach::<Tells>(run).await.unwrap();
            run.send(Note(1)).await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Done(2));
        }
    });
    let seen = world.seen.lock().unwrap().clone();
    let first: Vec<_> = seen[..5].iter().map(String::as_str).collect();
    assert_eq!(first[0], "work 0 false", "{seen:?}");
    // The second process resumed `more`, whose second execution had waited, and began both of `less`.
    let mut second = first[1..].to_vec();
    second.sort_unstable();
    assert_eq!(second, ["work 0 false", "work 0 true", "work 1 false", "work 1 false"]);
    assert!(seen[5..].iter().all(|seen| seen.ends_with("true")) && seen.len() == 9, "{seen:?}");
}

/// Fails at first, and is retried after a minute.
#[derive(Clone)]
struct Retried(World);

#[workflow]
impl Retried {
    #[step(retry = RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(3, Duration::from_mins(1))))]
    async fn attempt(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.0.saw(format!("attempt {} {}", info.attempt(), info.may_have_begun()));
        if info.attempt() == 1 {
            return Err(StepError::tool("busy"));
        }
        sleep(Duration::from_secs(u64::from(begin.0))).await;
        Ok(Done(begin.0))
    }
}

// S35, S36, S53
#[test]
fn an_attempt_whose_delay_had_not_passed_has_not_begun_and_is_not_interrupted() {
    let world = World::default();
    let hosts = |engine: EngineBuilder| engine.workflow(Retried(world.clone()));
    world.killed(hosts, async |engine| {
        start::<Retried>(&engine, "r", 100).await;
        a_second().await;
    });
    for _ in 0..9 {
        world.killed(hosts, async |_| a_second().await);
    }
    world.killed(hosts, async |_| sleep(Duration::from_secs(90)).await);
    assert_eq!(*world.seen.lock().unwrap(), ["attempt 1 false", "attempt 2 false"]);
    // The delay has passed by now.
    world.killed(hosts, async |engine| {
        assert_eq!(engine.attach::<Retried>("r").await.unwrap().outcome().await.unwrap(), Done(100));
    });
    assert_eq!(world.seen.lock().unwrap()[2..], ["attempt 2 true"]);
}

/// Takes the failure of a step that kills processes.
#[derive(Clone)]
struct Catches(World);

#[workflow]
impl Catches {
    #[step]
    async fn work(&self, begin: &Begin) -> Item {
        std::future::pending::<()>().await;
        Item(begin.0)
    }

    #[step(catches = [work])]
    async fn ask(&self, failed: &StepFailed) -> Done {
        self.0.saw(format!("{}: {}", failed.class, failed.error));
        Done(0)
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

// S29, S35
#[test]
fn a_step_can_take_the_failure() {
    let world = World::default();
    let hosts = |engine: EngineBuilder| engine.workflow(Catches(world.clone())).max_interrupted_attempts(3);
    world.killed(hosts, async |engine| {
        start::<Catches>(&engine, "r", 1).await;
        a_second().await;
    });
    for _ in 0..2 {
        world.killed(hosts, async |_| a_second().await);
    }
    world.killed(hosts, async |engine| {
        assert_eq!(engine.attach::<Catches>("r").await.unwrap().outcome().await.unwrap(), Done(0));
    });
    let seen = world.seen.lock().unwrap().clone();
    assert_eq!(seen, ["interrupted: the process ended under 3 of its attempts (`max_interrupted_attempts`)"]);
}

/// Waits for a child that kills its process.
#[derive(Clone)]
struct Delegates;

#[workflow]
impl Delegates {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        Ok(children.run_with::<Works>(begin.clone(), RunOptions::new().id("c")).await?)
    }
}

// S35
#[test]
fn an_execution_that_waits_for_a_child_leaves_its_turn_to_the_child() {
    let world = World::default();
    let hosts = |engine: EngineBuilder| engine.workflow(Works(world.clone())).workflow(Delegates);
    world.killed(hosts, async |engine| {
        start::<Delegates>(&engine, "p", FOR_EVER).await;
        a_second().await;
    });
    for _ in 0..4 {
        world.killed(hosts, async |_| a_second().await);
    }
    let child = "p/delegate-x1.c";
    assert_eq!(world.count(&format!("{child} begins")), 5);
    assert_eq!((world.records("p", began), world.records(child, began)), (3, 3));
    world.killed(hosts, async |engine| {
        let outcome = engine.attach::<Delegates>("p").await.unwrap().outcome().await;
        assert!(
            matches!(outcome, Err(RunError::StepFailed { class: ErrorClass::Interrupted, .. })),
            "{outcome:?}"
        );
    });
    assert_eq!(world.count(&format!("{child} begins")), 5);
}
