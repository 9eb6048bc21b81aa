//! Effects that must not happen twice (S69).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use workflow_core::errors::chain;
use workflow_core::prelude::*;
use workflow_core::signature::Roles;
use workflow_core::store::MemoryStore;
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OutputDef, StepDef, StepPolicy, TableDifference,
};
use workflow_core::{ErrorClass, Retries, RetryPolicy, RunOptions, StepFailed};
use workflow_testkit::{Scenario, VirtualClock, crash_everywhere, explore};

use crate::fixtures::{Begin, Done, Item, Part};

/// A store, and the effects that all processes had.
#[derive(Debug, Clone, Default)]
struct World {
    store: Arc<MemoryStore>,
    effects: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn effect(&self, what: impl Into<String>) {
        self.effects.lock().unwrap().push(what.into());
    }

    fn effects(&self) -> Vec<String> {
        self.effects.lock().unwrap().clone()
    }

    fn engine<W: Workflow>(&self, workflow: W) -> Engine {
        let engine = Engine::builder().workflow(workflow).store(Arc::clone(&self.store));
        engine.clock(VirtualClock::new()).build().unwrap()
    }

    /// A process that is killed after this.
    fn killed<W: Workflow, F: Future<Output = ()>>(&self, workflow: W, work: impl FnOnce(Engine) -> F) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().start_paused(true).build().unwrap();
        let engine = runtime.block_on(async {
            let engine = self.engine(workflow);
            work(engine.clone()).await;
            engine
        });
        drop(runtime);
        drop(engine);
    }
}

async fn start<W: Workflow>(engine: &Engine) {
    engine.start_with::<W>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    sleep(Duration::from_secs(1)).await;
}

fn twice() -> RetryPolicy {
    let mut policy = RetryPolicy::none();
    for class in [ErrorClass::Tool, ErrorClass::Transient, ErrorClass::Permanent, ErrorClass::InDoubt] {
        policy = policy.on(class, Retries::fixed(2, Duration::from_mins(1)));
    }
    policy
}

/// Pays in the given way, at most once.
#[derive(Clone)]
struct Pays(World, &'static str);

#[workflow]
impl Pays {
    #[step(at_most_once, timeout = "1h", retry = twice())]
    async fn pay(&self, _begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.0.effect(format!("{} {}", info.attempt(), info.may_have_begun()));
        match self.1 {
            "panics" => panic!("on purpose"),
            "errs" | "errs then hangs" if info.attempt() == 1 => Err(StepError::tool("busy")),
            "hangs" | "errs then hangs" => std::future::pending().await,
            _ => Ok(Done(1)),
        }
    }
}

async fn fails(engine: &Engine) -> (ErrorClass, String) {
    match engine.attach::<Pays>("r").await.unwrap().outcome().await {
        Err(RunError::StepFailed { class, source, .. }) => (class, chain(&source)),
        other => panic!("{other:?}"),
    }
}

// S69
#[test]
fn an_attempt_that_an_earlier_process_may_have_begun_is_not_made_again() {
    let world = World::default();
    world.killed(Pays(world.clone(), "hangs"), async |engine| start::<Pays>(&engine).await);
    world.killed(Pays(world.clone(), "pays"), async |engine| {
        let text = "an earlier process may have begun its attempt (`at_most_once`)";
        assert_eq!(fails(&engine).await, (ErrorClass::InDoubt, text.to_owned()));
    });
    assert_eq!(world.effects(), ["1 false"]);
}

// S69
#[test]
fn an_attempt_that_was_dropped_when_its_engine_shut_down_is_not_made_again() {
    let world = World::default();
    world.killed(Pays(world.clone(), "hangs"), async |engine| {
        start::<Pays>(&engine).await;
        engine.shut_down(Duration::from_secs(1)).await;
    });
    world.killed(Pays(world.clone(), "pays"), async |engine| {
        assert_eq!(fails(&engine).await.0, ErrorClass::InDoubt);
    });
    assert_eq!(world.effects(), ["1 false"]);
}

// S69
#[tokio::test(start_paused = true)]
async fn an_attempt_that_times_out_or_panics_is_not_made_again() {
    for (how, why) in [
        ("hangs", "it took longer than 3600s, the `timeout` of its step"),
        ("panics", "it panicked: on purpose"),
    ] {
        let world = World::default();
        let engine = world.engine(Pays(world.clone(), how));
        start::<Pays>(&engine).await;
        let text = format!("its attempt may have had an effect (`at_most_once`): {why}");
        assert_eq!(fails(&engine).await, (ErrorClass::InDoubt, text));
        assert_eq!(world.effects(), ["1 false"]);
    }
}

// S35, S69
#[tokio::test(start_paused = true)]
async fn an_error_that_the_step_returned_is_retried_as_usual() {
    let world = World::default();
    let engine = world.engine(Pays(world.clone(), "errs"));
    start::<Pays>(&engine).await;
    assert_eq!(engine.attach::<Pays>("r").await.unwrap().outcome().await.unwrap(), Done(1));
    assert_eq!(world.effects(), ["1 false", "2 false"]);
}

// S36, S69
#[test]
fn a_process_that_ends_during_the_delay_leaves_the_next_attempt_to_be_made() {
    let world = World::default();
    world.killed(Pays(world.clone(), "errs"), async |engine| start::<Pays>(&engine).await);
    world.killed(Pays(world.clone(), "errs"), async |engine| {
        assert_eq!(engine.attach::<Pays>("r").await.unwrap().outcome().await.unwrap(), Done(1));
    });
    assert_eq!(world.effects(), ["1 false", "2 false"]);
}

// S53, S69: the next process's clock is behind, as on another machine.
#[test]
fn a_retry_that_began_is_not_made_again_whatever_the_clocks_say() {
    let world = World::default();
    world.killed(Pays(world.clone(), "errs then hangs"), async |engine| {
        start::<Pays>(&engine).await;
        sleep(Duration::from_mins(2)).await;
    });
    // This clock shows the beginning again, at which the delay had not passed.
    world.killed(Pays(world.clone(), "pays"), async |engine| {
        assert_eq!(fails(&engine).await.0, ErrorClass::InDoubt);
    });
    assert_eq!(world.effects(), ["1 false", "2 false"]);
}

/// Returns an event that is larger than the engine takes.
struct Floods(Arc<AtomicU32>);

/// As long as its number says.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Long(String);

#[workflow]
impl Floods {
    #[step(at_most_once, retry = twice())]
    async fn pay(&self, begin: &Begin) -> Long {
        self.0.fetch_add(1, Ordering::SeqCst);
        Long("x".repeat(begin.0 as usize))
    }

    #[step]
    async fn end(&self, long: &Long) -> Done {
        Done(u32::try_from(long.0.len()).unwrap())
    }
}

// S69
#[tokio::test]
async fn an_attempt_whose_events_are_refused_is_not_made_again() {
    let attempts = Arc::<AtomicU32>::default();
    let scenario = Scenario::new(Floods(Arc::clone(&attempts))).engine(|engine| engine.max_event_bytes(100));
    let run = scenario.start(Begin(1_000)).await;
    let Err(RunError::StepFailed { class: ErrorClass::InDoubt, .. }) = run.outcome() else {
        panic!("{:?}", run.outcome())
    };
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
}

/// The same step, without the promise.
#[derive(Clone)]
struct Careless(World);

#[workflow(name = "Pays")]
impl Careless {
    #[step(timeout = "1h")]
    async fn pay(&self, _begin: &Begin) -> Result<Done, StepError> {
        self.0.effect("again");
        Ok(Done(2))
    }
}

// S41, S69
#[test]
fn the_promise_can_be_taken_back_while_runs_are_open() {
    let world = World::default();
    world.killed(Pays(world.clone(), "hangs"), async |engine| start::<Pays>(&engine).await);
    world.killed(Careless(world.clone()), async |engine| {
        assert_eq!(engine.attach::<Careless>("r").await.unwrap().outcome().await.unwrap(), Done(2));
    });
    assert_eq!(world.effects(), ["1 false", "again"]);
}

// S41
#[test]
fn a_change_of_the_promise_is_a_compatible_difference() {
    let table = |policy: StepPolicy| {
        let step = StepDef::new("pay").input(InputDef::one("Begin")).output(OutputDef::event("Done"));
        DependencyTable::builder("pays")
            .event(EventDef::new("Begin", Roles::NONE.start()))
            .event(EventDef::new("Done", Roles::NONE.stop()))
            .step(step.policy(policy))
            .build()
            .unwrap()
    };
    let (was, is) = (table(StepPolicy::DEFAULT), table(StepPolicy::DEFAULT.at_most_once()));
    let differences = was.shape().differences(&is.shape());
    assert!(
        matches!(&differences[..], [TableDifference::AtMostOnceChanged { is: true, .. }]),
        "{differences:?}"
    );
    assert!(differences[0].is_compatible());
    assert_eq!(differences[0].to_string(), "step `pay` is `at_most_once` now, and was not");
    assert_eq!(
        is.shape().differences(&was.shape())[0].to_string(),
        "step `pay` is not `at_most_once` any more"
    );
    assert!(DependencyTable::from_shape(&is.shape()).unwrap().shape().steps[0].at_most_once);
    assert!(is.graph().to_mermaid().contains("at most once"), "{}", is.graph().to_mermaid());
}

/// Counts its effects in the context, which outlives processes. A person settles each doubt.
struct Settles;

#[workflow]
impl Settles {
    #[step]
    async fn split(&self, begin: &Begin) -> Vec<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step(at_most_once, concurrency = 2)]
    async fn pay(&self, item: &Item, run: &RunContext) -> Result<Part, StepError> {
        let key = format!("paid {}", item.0);
        let paid: Option<u32> = run.get(&key).await?;
        run.set(&key, paid.unwrap_or_default() + 1).await?;
        sleep(Duration::from_secs(1)).await;
        Ok(Part(item.0))
    }

    #[step(catches = [pay])]
    async fn ask(&self, failed: &StepFailed) -> Result<Part, StepError> {
        match failed.class {
            ErrorClass::InDoubt => Ok(Part(0)),
            other => Err(StepError::permanent(format!("it fails as {other}"))),
        }
    }

    #[step]
    async fn end(&self, parts: &FixedList<Part, 3>, run: &RunContext) -> Result<Done, StepError> {
        for item in 0..3 {
            let paid: Option<u32> = run.get(&format!("paid {item}")).await?;
            if paid.is_some_and(|paid| paid > 1) {
                return Err(StepError::permanent("paid twice"));
            }
        }
        Ok(Done(u32::try_from(parts.len()).unwrap()))
    }
}

// S69
#[test]
fn no_effect_happens_twice_in_any_order_of_completions() {
    explore(|| Scenario::new(Settles).start(Begin(3)))
        .every_order()
        .assert(|run| run.outcome().is_ok_and(|done| *done == Done(3)));
}

// S69
#[tokio::test]
async fn no_effect_happens_twice_wherever_the_process_is_killed() {
    let survived =
        crash_everywhere(|store| Scenario::new(Settles).engine(|engine| engine.store(store)).start(Begin(3)));
    let survived = survived.comparing_outcomes().await;
    assert!(survived.appends() >= 2 && survived.twice() >= 4, "{survived}");
}
