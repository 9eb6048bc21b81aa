//! Attempts that wait for a named limit when their process ends, or takes turns (S70, S53, S35, S69).

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::report::WaitsFor;
use workflow_core::store::{EventStore, MemoryStore, Position, Record};
use workflow_core::{EngineBuilder, ErrorClass, Limit, Retries, RetryPolicy, RunHandle, RunOptions};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Part};

const SECOND: Duration = Duration::from_secs(1);

/// A store, what the steps of all processes did, and when they may end.
#[derive(Debug, Clone)]
struct World {
    store: Arc<MemoryStore>,
    seen: Arc<Mutex<Vec<String>>>,
    may_end: Arc<Semaphore>,
}

impl World {
    fn new() -> Self {
        Self { store: Arc::default(), seen: Arc::default(), may_end: Arc::new(Semaphore::new(0)) }
    }

    fn note(&self, line: impl Into<String>) {
        self.seen.lock().unwrap().push(line.into());
    }

    /// The notes since the last call.
    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    async fn until_it_may_end(&self) {
        self.may_end.acquire().await.unwrap().forget();
    }

    /// A process that does this, and is killed.
    fn killed<F: Future<Output = ()>>(
        &self,
        change: impl FnOnce(EngineBuilder) -> EngineBuilder,
        work: impl FnOnce(Engine) -> F,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().start_paused(true).build().unwrap();
        let engine = runtime.block_on(async {
            let engine = Engine::builder().store(Arc::clone(&self.store)).clock(VirtualClock::new());
            let engine = engine.workflow(Holds(self.clone())).limit("bank", Limit::concurrent(1));
            let engine = change(engine).build().unwrap();
            work(engine.clone()).await;
            engine
        });
        drop(runtime);
        drop(engine);
    }

    async fn begun(&self, run: &str) -> usize {
        let journal = self.store.read(&run.into(), Position(0), usize::MAX).await.unwrap();
        journal.iter().filter(|record| matches!(record, Record::AttemptBegan { .. })).count()
    }
}

async fn start<W: Workflow>(engine: &Engine, run: &str) -> RunHandle<W> {
    let run = engine.start_with::<W>(Begin(1), RunOptions::new().id(run)).await.unwrap();
    sleep(SECOND).await;
    run
}

async fn attach<W: Workflow>(engine: &Engine, run: &str) -> RunHandle<W> {
    let run = engine.attach::<W>(run).await.unwrap();
    sleep(SECOND).await;
    run
}

/// The reason why the only deferred execution of the run waits.
async fn waits_for<W: Workflow>(run: &RunHandle<W>) -> WaitsFor {
    let report = run.report_so_far().await.unwrap();
    let [waiting] = &report.waiting[..] else { panic!("{report:?}") };
    waiting.waits_for.clone()
}

fn is_limit(waits_for: &WaitsFor) -> bool {
    matches!(waits_for, WaitsFor::Limit { name, .. } if &**name == "bank")
}

/// Holds the limit until it may end.
#[derive(Clone)]
struct Holds(World);

#[workflow]
impl Holds {
    #[step(limit = "bank")]
    async fn hold(&self, begin: &Begin) -> Done {
        self.0.until_it_may_end().await;
        Done(begin.0)
    }
}

/// Pays at most once, and says whether an earlier process may have begun to. The first attempt of a run `retried` fails.
#[derive(Clone)]
struct Pays(World);

fn again() -> RetryPolicy {
    RetryPolicy::none().on(ErrorClass::Tool, Retries::fixed(1, Duration::from_mins(1)))
}

#[workflow]
impl Pays {
    #[step(at_most_once, limit = "bank", retry = again())]
    async fn pay(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.0.note(format!("{} {}", info.attempt(), info.may_have_begun()));
        if info.run().as_str() == "retried" && info.attempt() == 1 {
            return Err(StepError::tool("busy"));
        }
        Ok(Done(begin.0))
    }
}

// S53, S69, S70: limits of the engine do not count, since the earlier process may have had others.
#[test]
fn an_attempt_that_waited_for_its_limit_when_the_process_was_killed_may_have_begun() {
    let world = World::new();
    let hosts = |engine: EngineBuilder| engine.workflow(Pays(world.clone()));
    world.killed(hosts, async |engine| {
        start::<Holds>(&engine, "h").await;
        assert!(is_limit(&waits_for(&start::<Pays>(&engine, "r").await).await));
    });
    world.killed(hosts, async |engine| {
        let outcome = attach::<Pays>(&engine, "r").await.outcome().await;
        assert!(
            matches!(outcome, Err(RunError::StepFailed { class: ErrorClass::InDoubt, .. })),
            "{outcome:?}"
        );
    });
    assert_eq!(world.seen(), [""; 0]);
}

// S39, S53, S69, S70
#[test]
fn an_attempt_that_waited_for_its_limit_when_the_engine_shut_down_has_not_begun() {
    let world = World::new();
    let hosts = |engine: EngineBuilder| engine.workflow(Pays(world.clone()));
    world.killed(hosts, async |engine| {
        start::<Holds>(&engine, "h").await;
        let run = start::<Pays>(&engine, "r").await;
        let mut shuts_down = pin!(engine.shut_down(Duration::from_hours(1)));
        assert!(futures::poll!(shuts_down.as_mut()).is_pending());
        sleep(SECOND).await;
        assert_eq!(waits_for(&run).await, WaitsFor::ShutDown);
        // Its permit goes to nobody: nothing more begins.
        world.may_end.add_permits(1);
        shuts_down.await;
        assert!(matches!(run.outcome().await, Err(RunError::Detached)));
    });
    assert_eq!(world.seen(), [""; 0]);
    world.killed(hosts, async |engine| {
        assert_eq!(attach::<Pays>(&engine, "r").await.outcome().await.unwrap(), Done(1));
    });
    assert_eq!(world.seen(), ["1 false"]);
}

// S69, S70
#[test]
fn a_retry_that_is_journaled_is_journaled_once_it_has_its_permit() {
    let world = World::new();
    world.killed(
        |engine| engine.workflow(Pays(world.clone())),
        async |engine| {
            let run = start::<Pays>(&engine, "retried").await;
            start::<Holds>(&engine, "h").await;
            sleep(Duration::from_mins(2)).await;
            assert!(is_limit(&waits_for(&run).await));
            assert_eq!((world.begun("retried").await, world.seen().len()), (0, 1));
            world.may_end.add_permits(1);
            assert_eq!(run.outcome().await.unwrap(), Done(1));
            assert_eq!((world.begun("retried").await, world.seen()), (1, vec!["2 false".to_owned()]));
        },
    );
}

/// Works until it may end, with a limit or without.
#[derive(Clone)]
struct Works(World);

#[workflow]
impl Works {
    #[step(limit = "bank")]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Done {
        self.0.note(info.run().to_string());
        self.0.until_it_may_end().await;
        Done(begin.0)
    }
}

#[derive(Clone)]
struct Free(World);

#[workflow]
impl Free {
    #[step]
    async fn work(&self, begin: &Begin, info: &RunInfo) -> Done {
        self.0.note(info.run().to_string());
        self.0.until_it_may_end().await;
        Done(begin.0)
    }
}

// S35, S70
#[test]
fn an_execution_under_which_processes_ended_does_not_keep_its_turn_while_it_waits_for_a_limit() {
    let world = World::new();
    let roomy = |engine: EngineBuilder| {
        let engine = engine.workflow(Works(world.clone())).workflow(Free(world.clone()));
        engine.limit("bank", Limit::concurrent(9))
    };
    world.killed(roomy, async |engine| {
        start::<Works>(&engine, "a").await;
        start::<Works>(&engine, "b").await;
        start::<Free>(&engine, "f").await;
    });
    world.killed(roomy, async |engine| {
        attach::<Works>(&engine, "a").await;
        attach::<Works>(&engine, "b").await;
        attach::<Free>(&engine, "f").await;
    });
    assert_eq!(world.seen(), ["a", "b", "f", "a", "b", "f"]);
    world.killed(
        |engine| engine.workflow(Works(world.clone())).workflow(Free(world.clone())),
        async |engine| {
            start::<Holds>(&engine, "h").await;
            let a = attach::<Works>(&engine, "a").await;
            let b = attach::<Works>(&engine, "b").await;
            let f = attach::<Free>(&engine, "f").await;
            assert_eq!(world.seen(), ["f"], "it has its turn, although `a` and `b` had asked before");
            assert!(is_limit(&waits_for(&a).await) && is_limit(&waits_for(&b).await));
            assert_eq!((world.begun("a").await, world.begun("f").await), (0, 1));
            // `h` or `f` ends: both have to, before `a` has the permit and its turn.
            world.may_end.add_permits(1);
            sleep(SECOND).await;
            assert_eq!((world.seen(), world.begun("a").await), (vec![], 0));
            world.may_end.add_permits(1);
            sleep(SECOND).await;
            assert_eq!((world.seen(), world.begun("a").await), (vec!["a".to_owned()], 1));
            assert!(is_limit(&waits_for(&b).await));
            world.may_end.add_permits(2);
            for run in [a, b] {
                assert_eq!(run.outcome().await.unwrap(), Done(1));
            }
            assert_eq!(f.outcome().await.unwrap(), Done(1));
            assert_eq!((world.seen(), world.begun("b").await), (vec!["b".to_owned()], 1));
        },
    );
}

// S35, S70
#[test]
fn processes_that_end_under_a_wait_for_a_limit_interrupt_nothing_from_the_third_on() {
    let world = World::new();
    let hosts = |engine: EngineBuilder| engine.workflow(Works(world.clone()));
    world.killed(hosts, async |engine| drop(start::<Works>(&engine, "a").await));
    world.killed(hosts, async |engine| drop(attach::<Works>(&engine, "a").await));
    assert_eq!(world.seen(), ["a", "a"]);
    for process in 0..6 {
        world.killed(hosts, async |engine| {
            start::<Holds>(&engine, &format!("h{process}")).await;
            assert!(is_limit(&waits_for(&attach::<Works>(&engine, "a").await).await));
        });
    }
    world.may_end.add_permits(1);
    world.killed(hosts, async |engine| {
        assert_eq!(attach::<Works>(&engine, "a").await.outcome().await.unwrap(), Done(1));
    });
    assert_eq!(world.seen(), ["a"]);
}

/// Pays items of two customers, and says which attempts may have begun before.
#[derive(Clone)]
struct Items(World);

#[workflow]
impl Items {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (0..3 * begin.0).map(Item).collect()
    }

    #[step(limit = "bank", limit_key = customer, concurrency = 2)]
    async fn pay(&self, item: &Item, info: &RunInfo) -> Part {
        self.0.note(format!("{} {}", item.0, info.may_have_begun()));
        self.0.until_it_may_end().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, _: &Begin, parts: FixedList<Part, 3>) -> Done {
        Done(parts.iter().map(|part| part.0).sum())
    }

    fn customer(item: &Item) -> u32 {
        item.0 / 2
    }
}

/// The same without a limit, two at a time.
#[derive(Clone)]
struct Unlimited(World);

#[workflow(name = "Items")]
impl Unlimited {
    #[step]
    async fn list(&self, begin: &Begin) -> Vec<Item> {
        (0..3 * begin.0).map(Item).collect()
    }

    #[step(concurrency = 2)]
    async fn pay(&self, item: &Item, info: &RunInfo) -> Part {
        self.0.note(format!("{} {}", item.0, info.may_have_begun()));
        Part(item.0)
    }

    #[step]
    async fn end(&self, _: &Begin, parts: FixedList<Part, 3>) -> Done {
        Done(parts.iter().map(|part| part.0).sum())
    }
}

// S53, S70: with a limit the executions of a step do not begin in the order of their numbers.
#[test]
fn the_concurrency_of_a_step_that_had_a_limit_says_nothing_about_which_attempts_have_begun() {
    let world = World::new();
    world.killed(
        |engine| engine.workflow(Items(world.clone())),
        async |engine| drop(start::<Items>(&engine, "r").await),
    );
    assert_eq!(world.seen(), ["0 false", "2 false"], "the second waits for the customer of the first");
    world.killed(
        |engine| engine.workflow(Unlimited(world.clone())),
        async |engine| {
            assert_eq!(attach::<Unlimited>(&engine, "r").await.outcome().await.unwrap(), Done(3));
        },
    );
    assert_eq!(world.seen(), ["0 true", "1 true", "2 true"]);
}
