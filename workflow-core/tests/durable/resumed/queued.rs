//! Runs that a client without an engine begins, and the engines that take them up (S65).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use workflow_core::errors::{ConfigError, UnfitValue};
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, Roles, StepCall};
use workflow_core::store::{
    EventStore, MemoryStore, Position, Record, RecordedEvent, RunQuery, StoreError, Write,
};
use workflow_core::table::{DependencyTable, EventDef, InputDef, OutputDef, RecordedTable, StepDef};
use workflow_core::{
    AnyEvent, AnyRun, ConfigLayers, ConfigRequest, ConfigSource, Origin, RecordedRun, ResumeError, RunError,
    RunOptions, RunStatus, RuntimeWorkflow, StartError, WhenFull,
};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Order {
    lines: Vec<u32>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Paid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Shipped(u32);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Prices {
    each: u32,
}

/// Ships an order once, and counts how often it did.
#[derive(Default)]
struct Shop {
    shipped: Arc<AtomicUsize>,
    waits: bool,
}

#[workflow]
impl Shop {
    #[step(at_most_once)]
    async fn ship(&self, order: &Order, prices: &Config<Prices>) -> Shipped {
        self.shipped.fetch_add(1, Ordering::SeqCst);
        if self.waits {
            std::future::pending::<()>().await;
        }
        Shipped(order.lines.iter().sum::<u32>() * prices.each)
    }

    #[step]
    async fn note(&self, _paid: &Paid) {}
}

/// Gives the price of a line, unless it is away.
#[derive(Default)]
struct PriceList {
    asked: AtomicUsize,
    is_away: AtomicBool,
    is_odd: AtomicBool,
}

impl ConfigSource for PriceList {
    fn layer<'a>(&'a self, _: &'a ConfigRequest) -> BoxFuture<'a, Result<Option<Value>, ConfigError>> {
        Box::pin(async move {
            if self.is_away.load(Ordering::SeqCst) {
                return Err(ConfigError::unavailable("the list is away"));
            }
            self.asked.fetch_add(1, Ordering::SeqCst);
            Ok(Some(if self.is_odd.load(Ordering::SeqCst) {
                json!({ "each": "two" })
            } else {
                json!({ "each": 2 })
            }))
        })
    }
}

struct World {
    store: Arc<MemoryStore>,
    list: Arc<PriceList>,
    shipped: Arc<AtomicUsize>,
}

impl World {
    fn new() -> Self {
        Self { store: Arc::default(), list: Arc::default(), shipped: Arc::default() }
    }

    fn builder(&self, waits: bool) -> workflow_core::EngineBuilder {
        let layers = ConfigLayers::<Prices>::new().source(Arc::clone(&self.list));
        let shop = Shop { shipped: Arc::clone(&self.shipped), waits };
        Engine::builder().workflow(shop).config::<Prices>(layers).store(Arc::clone(&self.store))
    }

    fn engine(&self) -> Engine {
        self.builder(false).build().unwrap()
    }

    async fn queue(&self, run: &str, data: Value, options: RunOptions) {
        let write = queued("Order", 1, &data, &options).unwrap();
        self.store.append(&run.into(), Position(0), write).await.unwrap();
    }

    async fn records(&self, run: &str) -> Vec<Record> {
        self.store.read(&run.into(), Position(0), usize::MAX).await.unwrap()
    }

    fn shipped(&self) -> usize {
        self.shipped.load(Ordering::SeqCst)
    }
}

fn table() -> RecordedTable {
    World::new().engine().hosted().remove(0).table
}

fn queued(event: &str, version: u32, data: &Value, options: &RunOptions) -> Result<Write, StartError> {
    let event = RecordedEvent::from_json(event, version, to_raw_value(data).unwrap());
    Write::queued(&table(), event, options, SystemTime::UNIX_EPOCH)
}

async fn attach(engine: &Engine, run: &str) -> Result<workflow_core::AnyRun, ResumeError> {
    let permit = engine.permit("Shop").await.unwrap();
    engine.attach_with(run, permit).await
}

// S65: nothing has run before, so the step that runs at most once is not in doubt.
#[tokio::test]
async fn a_queued_run_is_driven_by_the_engine_that_attaches_to_it() {
    let world = World::new();
    let options = RunOptions::new().thread("ada").metadata("tenant", "acme").origin(Origin::new().by("ada"));
    world.queue("a", json!({ "lines": [1, 2] }), options).await;
    let listed = world.store.runs(&RunQuery::new().open().thread("ada")).await.unwrap().remove(0);
    assert_eq!((listed.run.owner, listed.run.status), (None, RunStatus::Running));
    assert_eq!(listed.run.metadata["tenant"], "acme");

    let run = attach(&world.engine(), "a").await.unwrap();
    assert_eq!(run.outcome_any().await.unwrap().to_json().unwrap(), json!(6));
    let report = run.report().await.unwrap();
    assert_eq!((report.thread.as_str(), &report.metadata["tenant"][..]), ("ada", "acme"));
    assert_eq!(report.log[0].origin.as_ref().and_then(|origin| origin.by.as_deref()), Some("ada"));
    assert_eq!(world.shipped(), 1);
    let records = world.records("a").await;
    assert!(matches!(records[2], Record::RunResumed { .. }));
    assert_eq!(RecordedRun::of(&"a".into(), &records).unwrap().status(), RunStatus::Completed);
    // An ended run is attached to at once, as any other.
    let run = attach(&world.engine(), "a").await.unwrap();
    assert_eq!(run.outcome_any().await.unwrap().to_json().unwrap(), json!(6));
}

// S65
#[tokio::test]
async fn each_way_to_take_runs_up_takes_up_a_queued_one() {
    let world = World::new();
    for run in ["attached", "listed"] {
        world.queue(run, json!({ "lines": [3] }), RunOptions::new()).await;
    }
    let engine = world.engine();
    assert_eq!(engine.attach::<Shop>("attached").await.unwrap().outcome().await.unwrap(), Shipped(6));
    let resumed = engine.resume_open_runs().await.unwrap();
    assert_eq!(resumed.runs, ["listed".into()]);
    engine.find(&"listed".into()).unwrap().outcome_any().await.unwrap();
    assert_eq!(world.shipped(), 2);
}

// S65: an attempt that a process began and that died with it is in doubt, as in any other run.
#[tokio::test]
async fn what_the_first_engine_began_may_have_begun() {
    let world = World::new();
    world.queue("a", json!({ "lines": [1] }), RunOptions::new()).await;
    let first = world.builder(true).build().unwrap();
    let run = attach(&first, "a").await.unwrap();
    while world.shipped() == 0 {
        tokio::task::yield_now().await;
    }
    // The journal of a process that is killed now.
    let killed = World { store: Arc::default(), list: Arc::default(), shipped: Arc::default() };
    let records = world.records("a").await;
    let summary = world.store.runs(&RunQuery::new()).await.unwrap().remove(0).run;
    killed.store.append(&"a".into(), Position(0), Write { records, run: summary }).await.unwrap();
    let error = attach(&killed.engine(), "a").await.unwrap().outcome_any().await.unwrap_err();
    assert!(error.to_string().contains("ship"), "{error}");
    assert_eq!(killed.shipped(), 0);
    drop(run);
}

/// A start event whose JSON would have `null` for a NaN, and be read as another value.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Measured {
    value: Option<f64>,
}

struct Measures;

#[workflow]
impl Measures {
    #[step]
    async fn measure(&self, measured: &Measured) -> Shown {
        Shown(measured.value)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Shown(Option<f64>);

// S56, S65
#[test]
fn a_value_that_its_json_would_change_is_not_queued() {
    let engine = Engine::builder().workflow(Measures).build().unwrap();
    let table = engine.hosted().remove(0).table;
    let queued = |value| {
        let event = RecordedEvent::new(AnyEvent::new(Measured { value }));
        Write::queued(&table, event, &RunOptions::new(), SystemTime::UNIX_EPOCH)
    };
    let error = queued(Some(f64::NAN)).unwrap_err();
    let StartError::Unfit { path, problem: UnfitValue::NotFinite, .. } = &error else { panic!("{error:?}") };
    assert_eq!(path, "value");
    let Record::EventLogged { event, .. } = &queued(Some(1.5)).unwrap().records[1] else {
        panic!("the start event")
    };
    assert_eq!(event.to_json().unwrap(), json!({ "value": 1.5 }));
}

// S65
#[tokio::test]
async fn a_client_is_told_what_the_table_shows_to_be_wrong() {
    let order = json!({ "lines": [1] });
    let unknown = queued("Paid", 1, &json!(null), &RunOptions::new()).unwrap_err();
    assert!(
        matches!(&unknown, StartError::UnknownEvent { fitting, .. } if *fitting == ["Order".into()]),
        "{unknown:?}"
    );
    for version in [0, 2] {
        let later = queued("Order", version, &order, &RunOptions::new()).unwrap_err();
        assert!(matches!(later, StartError::Unfit { .. }), "{later:?}");
    }
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let deep = queued("Order", 1, &json!({ "lines": deep }), &RunOptions::new()).unwrap_err();
    assert!(matches!(&deep, StartError::Unfit { .. }), "{deep:?}");
    // JSON that a journal would change.
    let data = RawValue::from_string(r#"{"lines": [1, 123456789012345678901234567890]}"#.into()).unwrap();
    let event = RecordedEvent::from_json("Order", 1, data);
    let large = Write::queued(&table(), event, &RunOptions::new(), SystemTime::UNIX_EPOCH).unwrap_err();
    let StartError::Unfit { path, problem: UnfitValue::OutOfRange, .. } = &large else { panic!("{large:?}") };
    assert_eq!(path, "lines[1]");
    let labels = RunOptions::new().metadata("much", "x".repeat(9 << 10));
    assert!(matches!(queued("Order", 1, &order, &labels), Err(StartError::TooMuchMetadata { .. })));
    let origin = RunOptions::new().origin(Origin::new().id("x".repeat(2_000)));
    assert!(matches!(queued("Order", 1, &order, &origin), Err(StartError::OriginTooLong { .. })));
    let none: RecordedTable = serde_json::from_value(json!({ "fingerprint": "0", "shape": [] })).unwrap();
    let event = RecordedEvent::from_json("Order", 1, to_raw_value(&1).unwrap());
    let error = Write::queued(&none, event, &RunOptions::new(), SystemTime::UNIX_EPOCH).unwrap_err();
    assert!(matches!(error, StartError::UnreadableTable { .. }), "{error:?}");
}

// S65: a mistake that only the engine can see ends the run, with the place, and nothing runs.
#[tokio::test]
async fn a_start_event_that_does_not_fit_ends_the_run() {
    let world = World::new();
    world.queue("a", json!({ "lines": [1, "two"] }), RunOptions::new()).await;
    for _ in 0..2 {
        let run = attach(&world.engine(), "a").await.unwrap();
        let error = run.outcome_any().await.unwrap_err();
        assert!(
            matches!(&error, RunError::Past { status: RunStatus::Failed, error } if error.contains("`lines[1]`")),
            "{error}"
        );
        assert_eq!(run.report().await.unwrap().status, RunStatus::Failed);
        run.explain().await.unwrap();
    }
    assert_eq!((world.shipped(), world.list.asked.load(Ordering::SeqCst)), (0, 0));
    let listed = world.store.runs(&RunQuery::new().status(RunStatus::Failed)).await.unwrap().remove(0);
    assert!(listed.run.ended.is_some());
    assert!(attach(&world.engine(), "nobody").await.is_err());
}

// S65, S39: the run that failed by its start can be redriven once the program reads it.
#[tokio::test]
async fn a_failed_start_is_tried_again_by_a_redrive() {
    let world = World::new();
    world.list.is_odd.store(true, Ordering::SeqCst);
    world.queue("a", json!({ "lines": [1] }), RunOptions::new()).await;
    let error = attach(&world.engine(), "a").await.unwrap().outcome_any().await.unwrap_err();
    assert!(error.to_string().contains("each"), "{error}");
    world.list.is_odd.store(false, Ordering::SeqCst);
    let run = world.engine().redrive::<Shop>("a").await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Shipped(2));
    assert_eq!(world.shipped(), 1);
}

// S65, S68
#[tokio::test]
async fn the_sources_of_a_queued_run_are_asked_once_before_it_is_taken_up() {
    let world = World::new();
    world.list.is_away.store(true, Ordering::SeqCst);
    world.queue("a", json!({ "lines": [1] }), RunOptions::new()).await;
    world.queue("b", json!({ "lines": [1] }), RunOptions::new().config::<Prices>(json!({ "each": 5 }))).await;
    let error = attach(&world.engine(), "a").await.unwrap_err();
    assert!(matches!(error, ResumeError::Config(ConfigError::Unavailable { .. })), "{error:?}");
    assert_eq!(world.records("a").await.len(), 2, "nothing changes");
    world.list.is_away.store(false, Ordering::SeqCst);

    let engine = world.builder(true).build().unwrap();
    let _run = attach(&engine, "a").await.unwrap();
    let recorded = world.records("a").await;
    let Record::RunResumed { configs, .. } = &recorded[2] else { panic!("{recorded:?}") };
    assert_eq!(configs.values().collect::<Vec<_>>(), [&json!({ "each": 2 })]);
    let run = attach(&world.engine(), "b").await.unwrap();
    assert_eq!(
        run.outcome_any().await.unwrap().to_json().unwrap(),
        json!(5),
        "the run's own layer counts more"
    );
    assert_eq!(world.list.asked.load(Ordering::SeqCst), 2);
}

// S65: the permit is taken before the run, and counts as the run's.
#[tokio::test]
async fn a_worker_takes_its_permit_first() {
    let world = World::new();
    for run in ["a", "b", "c"] {
        world.queue(run, json!({ "lines": [1] }), RunOptions::new()).await;
    }
    let engine = world.builder(true).max_concurrent_runs(1).when_full(WhenFull::Queue).build().unwrap();
    assert!(matches!(engine.permit("Nobody").await, Err(StartError::UnknownWorkflow { .. })));
    let permit = engine.permit("Shop").await.unwrap();
    let mut second = engine.permit("Shop");
    assert!((&mut second).now_or_never().is_none());
    assert!(engine.queued().is_empty(), "it is no run's yet");
    let run = engine.attach_with("a", permit).await.unwrap();
    assert!((&mut second).now_or_never().is_none());
    run.cancel("enough").await.unwrap();
    let permit = second.await.unwrap();
    // It is free again if no run needs it.
    assert!(matches!(engine.attach_with("nobody", permit).await, Err(ResumeError::UnknownRun { .. })));
    let permit = engine.permit("Shop").await.unwrap();
    engine.attach_with("a", permit).await.unwrap();
    let permit = engine.permit("Shop").await.unwrap();
    let run = engine.attach_with("b", permit).await.unwrap();
    let full = world.builder(true).max_concurrent_runs(1).when_full(WhenFull::Refuse).build().unwrap();
    let _permit = full.permit("Shop").await.unwrap();
    assert!(matches!(full.permit("Shop").await, Err(StartError::Full { .. })));
    engine.shut_down(Duration::ZERO).await;
    assert!(matches!(engine.permit("Shop").await, Err(StartError::ShutDown)));
    drop(run);
}

/// Notes how runs begin.
struct Beginnings(Arc<std::sync::Mutex<Vec<&'static str>>>);

impl Observer for Beginnings {
    fn observe(&self, told: &Observation) {
        let what = match told.what {
            Observed::RunStarted => "started",
            Observed::RunResumed => "resumed",
            _ => return,
        };
        self.0.lock().unwrap().push(what);
    }
}

// S65: for observers a queued run starts when it is taken up.
#[tokio::test]
async fn observers_see_a_queued_run_start_once() {
    let (world, seen) = (World::new(), Arc::<std::sync::Mutex<Vec<&str>>>::default());
    world.queue("a", json!({ "lines": [1] }), RunOptions::new()).await;
    for expected in [&["started"][..], &["started", "resumed"]] {
        let engine = world.builder(true).observer(Beginnings(Arc::clone(&seen))).build().unwrap();
        drop(attach(&engine, "a").await.unwrap());
        // Observers have threads of their own.
        while seen.lock().unwrap().len() < expected.len() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*seen.lock().unwrap(), expected);
        engine.shut_down(Duration::ZERO).await;
    }
}

// S65: clients that begin the same ids begin each once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_begin_the_same_runs_once() {
    const CLIENTS: usize = 64;
    const RUNS: usize = 1_000;
    let world = World::new();
    let (table, store) = (table(), Arc::clone(&world.store));
    let clients = (0..CLIENTS).map(|client| {
        let (table, store) = (table.clone(), Arc::clone(&store));
        tokio::spawn(async move {
            let mut begun = 0;
            for at in 0..RUNS {
                let run = format!("order-{}", (at * 7 + client * 31) % RUNS);
                let data = to_raw_value(&json!({ "lines": [client] })).unwrap();
                let event = RecordedEvent::from_json("Order", 1, data);
                let write = Write::queued(&table, event, &RunOptions::new(), SystemTime::now()).unwrap();
                match store.append(&run.into(), Position(0), write).await {
                    Ok(()) => begun += 1,
                    Err(StoreError::Conflict { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            begun
        })
    });
    let begun: usize = join_all(clients).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(begun, RUNS);
    let engine = world.builder(false).max_concurrent_runs(8).build().unwrap();
    let resumed = engine.resume_open_runs().await.unwrap();
    assert_eq!((resumed.runs.len(), resumed.refused.len()), (RUNS, 0));
    for run in resumed.runs {
        engine.attach_any(run).await.unwrap().outcome_any().await.unwrap();
    }
    assert_eq!(world.shipped(), RUNS);
}

/// An engine on this store whose workflow `sleeper` never ends, and bounds its runs to this time.
fn sleeping(store: &Arc<MemoryStore>, seconds: u64) -> Engine {
    let table = DependencyTable::builder("sleeper")
        .event(EventDef::new("Sleep", Roles::NONE.start()))
        .event(EventDef::new("Awake", Roles::NONE.stop()))
        .step(StepDef::new("sleep").input(InputDef::one("Sleep")).output(OutputDef::event("Awake")))
        .build()
        .unwrap();
    let sleeper = RuntimeWorkflow::with_timeout(table, Duration::from_secs(seconds), |_: StepCall| {
        std::future::pending::<Result<Emitted, StepError>>()
    });
    let engine = Engine::builder().workflows([sleeper]).store(store.clone());
    engine.clock(workflow_testkit::VirtualClock::new()).build().unwrap()
}

/// The options of a run that its caller bounds to this time.
fn bounded(asked: Option<u64>) -> RunOptions {
    let options = RunOptions::new().id("r");
    match asked {
        Some(seconds) => options.timeout(Duration::from_secs(seconds)),
        None => options,
    }
}

async fn seconds_until_timeout(run: &AnyRun) -> u64 {
    match run.outcome_any().await {
        Err(RunError::TimedOut { after, .. }) => after.as_secs(),
        other => panic!("{other:?}"),
    }
}

// S32, S65: the time of a workflow bounds queued runs, too.
#[tokio::test(start_paused = true)]
async fn a_queued_run_has_no_more_time_than_its_workflow() {
    for (asked, expected) in [(None, 60), (Some(70), 60), (Some(9), 9)] {
        let store = Arc::new(MemoryStore::default());
        let engine = sleeping(&store, 60);
        let event = RecordedEvent::from_json("Sleep", 1, to_raw_value(&json!(null)).unwrap());
        let hosted = engine.hosted().remove(0).table;
        let write = Write::queued(&hosted, event, &bounded(asked), SystemTime::UNIX_EPOCH).unwrap();
        store.append(&"r".into(), Position(0), write).await.unwrap();
        let run = engine.attach_any("r").await.unwrap();
        assert_eq!(seconds_until_timeout(&run).await, expected);
    }
}

// S32, S39: a limit that was too short is raised in the workflow, and that of the caller stays.
#[tokio::test(start_paused = true)]
async fn a_redriven_run_has_the_present_time_of_its_workflow() {
    for (asked, before, after) in [(None, 60, 600), (Some(70), 60, 70), (Some(9), 9, 9)] {
        let store = Arc::new(MemoryStore::default());
        let engine = sleeping(&store, 60);
        let run = engine.start_json("sleeper", "Sleep", json!(null), bounded(asked)).await.unwrap();
        assert_eq!(seconds_until_timeout(&run).await, before);
        engine.shut_down(Duration::from_secs(1)).await;
        let engine = sleeping(&store, 600);
        let redriven = engine.redrive_all(&RunQuery::new(), 1).await.unwrap();
        assert_eq!(redriven.runs.len(), 1);
        let run = engine.attach_any("r").await.unwrap();
        assert_eq!(seconds_until_timeout(&run).await, after);
    }
}
