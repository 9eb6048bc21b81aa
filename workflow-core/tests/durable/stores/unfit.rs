//! Events that a store could not read back are refused before they enter a run, and nothing else is affected.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serializer;
use serde::ser::SerializeMap as _;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use workflow_core::errors::{BuildProblem, ConfigError, UnfitEvent, UnfitValue};
use workflow_core::prelude::*;
use workflow_core::report::RequestId;
use workflow_core::store::{EventStore, MAX_JSON_DEPTH, MemoryStore, Record, RunQuery};
use workflow_core::{
    AnyEvent, BuildError, ErrorClass, RunHandle, RunOptions, RunStatus, SendError, StartError, StepFailed,
};
use workflow_testkit::{CrashStore, VirtualClock};

use crate::fixtures::{Begin, Done, Item};

/// A value; some of its kinds are unfit.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Data {
    Prices(Vec<Option<f64>>),
    Small(f32),
    Rates(BTreeMap<String, f64>),
    Pairs(BTreeMap<(u8, u8), u8>),
    Wide(u128),
    Json(Value),
    Raw(Box<RawValue>),
    Trap(Trap),
    Tagged(Vec<Tagged>),
    Adjacent(Adjacent),
    Untagged(Untagged),
    Flattened(Flattened),
    Skips(Skips),
    Snaps(Snaps),
}

/// Types whose `Deserialize` does not read all that their `Serialize` writes. serde reads them in two passes, and the
/// second one knows no wide integers, and no keys that are numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "tag")]
enum Tagged {
    Narrow { number: i64 },
    Wide { number: i128 },
    ByNumber { map: BTreeMap<u32, u8> },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "tag", content = "content")]
enum Adjacent {
    Wide(u128),
    ByNumber(BTreeMap<u32, u8>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Wide { number: u128 },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Flattened {
    name: String,
    #[serde(flatten)]
    map: BTreeMap<u32, Option<u128>>,
}

/// Leaves out a field that it needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Skips {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<u8>,
}

/// Panics when it is read.
#[derive(Debug, Clone, Serialize)]
struct Snaps;

impl<'de> Deserialize<'de> for Snaps {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("it snaps")
    }
}

/// Fails to serialise.
#[derive(Debug, Clone, Deserialize)]
enum Trap {
    Fails,
    Panics,
}

impl Serialize for Trap {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fails => Err(serde::ser::Error::custom("it is secret")),
            Self::Panics => panic!("never look"),
        }
    }
}

/// JSON with this many levels. An event with it as a variant of [`Data`] has one more.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

fn tagged(second: Tagged) -> Data {
    Data::Tagged(vec![Tagged::Narrow { number: 1 }, second])
}

fn raw(text: &str) -> Data {
    Data::Raw(RawValue::from_string(text.to_owned()).unwrap())
}

fn fine() -> Data {
    Data::Prices(vec![Some(1.5), None])
}

/// Every kind of unfit value, and its error.
fn unfit() -> Vec<(Data, &'static str, &'static str)> {
    vec![
        (Data::Prices(vec![None, Some(f64::NAN)]), "Prices[1]", "the number is NaN or infinite"),
        (Data::Small(f32::NEG_INFINITY), "Small", "the number is NaN or infinite"),
        (Data::Rates([("de".into(), f64::INFINITY)].into()), "Rates.de", "the number is NaN or infinite"),
        (Data::Pairs([((1, 2), 3)].into()), "Pairs", "a key in JSON is a text, a number or a bool"),
        (Data::Wide(u128::MAX), "Wide", "the integer fits neither"),
        (Data::Json(nested(MAX_JSON_DEPTH)), "Json[0][0]", "the JSON nests deeper than 120 levels"),
        (
            Data::Json(json!({ "note": { "$serde_json::private::RawValue": "1" } })),
            "Json.note",
            "the key `$serde_json::private::RawValue` is reserved by `serde_json`",
        ),
        (raw(r#"{"a": [1, 123456789012345678901234567890]}"#), "Raw.a[1]", "the integer fits neither"),
        (raw(r#"[{"a": 1, "a": 2}]"#), "Raw[0]", "two values have the key `a`"),
        (raw("[0.12345678901234567890]"), "Raw[0]", "an `f64` does not have the number exactly"),
        (Data::Trap(Trap::Fails), "Trap", "its `Serialize` failed: it is secret"),
        (Data::Trap(Trap::Panics), "Trap", "its `Serialize` panicked: never look"),
        (
            tagged(Tagged::Wide { number: 1 }),
            "Tagged[1]",
            "its `Deserialize` refuses what its `Serialize` wrote: ",
        ),
        (
            tagged(Tagged::ByNumber { map: [(1, 2)].into() }),
            "Tagged[1]",
            "its `Deserialize` refuses what its",
        ),
        (Data::Adjacent(Adjacent::Wide(1)), "Adjacent", "its `Deserialize` refuses what its"),
        (
            Data::Adjacent(Adjacent::ByNumber([(1, 2)].into())),
            "Adjacent",
            "its `Deserialize` refuses what its",
        ),
        (Data::Untagged(Untagged::Wide { number: 1 }), "Untagged", "its `Deserialize` refuses what its"),
        (
            Data::Flattened(Flattened { name: "a".into(), map: [(1, None)].into() }),
            "Flattened",
            "its `Deserialize` refuses what its",
        ),
        (
            Data::Skips(Skips { lines: Vec::new() }),
            "Skips",
            "its `Deserialize` refuses what its `Serialize` wrote: missing field `lines`",
        ),
        (
            Data::Snaps(Snaps),
            "",
            "its `Deserialize` refuses what its `Serialize` wrote: it panicked: it snaps",
        ),
    ]
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Open(Data);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Told(Data);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Data)]
struct Ask;

/// A step's event with the given data.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Made(Data);

/// Takes every kind of outside event.
struct Takes;

#[workflow]
impl Takes {
    #[step]
    async fn ask(&self, _open: &Open) -> Ask {
        Ask
    }

    #[step]
    async fn end(&self, _reply: &Reply<Ask>, _told: &Told) -> Done {
        Done(1)
    }
}

fn engine<W: Workflow>(workflow: W, store: impl EventStore) -> Engine {
    Engine::builder().workflow(workflow).store(store).build().unwrap()
}

fn named(id: &str) -> RunOptions {
    RunOptions::new().id(id)
}

/// Asserts that an error names the unfit event, the path, and the problem.
fn says(event: &str, path: &str, problem: &str, found: (&str, &str, &UnfitValue), text: &str) {
    assert_eq!(found.0, event);
    assert!(found.1.starts_with(path), "{} is not at {path}", found.1);
    assert!(found.2.to_string().starts_with(problem), "{} is not: {problem}", found.2);
    let at = if path.is_empty() { String::new() } else { format!("at `{path}") };
    let starts = format!("`{event}` cannot be stored: {at}");
    assert!(text.starts_with(&starts) && text.contains(problem), "{text}");
}

#[tokio::test]
async fn a_start_event_that_cannot_be_read_back_starts_nothing() {
    let store = CrashStore::default();
    let engine = engine(Takes, store.clone());
    for (data, path, problem) in unfit() {
        let error = engine.start_with::<Takes>(Open(data), named("r")).await.unwrap_err();
        let StartError::Unfit { event, path: at, problem: why } = &error else { panic!("{error:?}") };
        says("Open", path, problem, (event, at, why), &error.to_string());
    }
    assert!(store.runs(&RunQuery::new()).await.unwrap().is_empty() && engine.running().is_empty());
    // Its id is free.
    let run = engine.start_with::<Takes>(Open(fine()), named("r")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
}

async fn asked(engine: &Engine) -> (RunHandle<Takes>, RequestId<Ask>) {
    let run = engine.start_with::<Takes>(Open(fine()), named("r")).await.unwrap();
    run.settled().await;
    let request = run.requests().await.unwrap()[0].id::<Ask>().unwrap();
    (run, request)
}

#[tokio::test]
async fn an_event_that_cannot_be_read_back_is_refused_and_the_run_continues() {
    let store = CrashStore::default();
    let engine = engine(Takes, store.clone());
    let (run, request) = asked(&engine).await;
    let before = run.report_so_far().await.unwrap().log.len();
    for (data, path, problem) in unfit() {
        let error = run.send(Told(data.clone())).await.unwrap_err();
        let SendError::Unfit { event, path: at, problem: why } = &error else { panic!("{error:?}") };
        says("Told", path, problem, (event, at, why), &error.to_string());
        let error = run.reply(request, data).await.unwrap_err();
        let SendError::Unfit { event, path: at, problem: why } = &error else { panic!("{error:?}") };
        says("Ask.reply", path, problem, (event, at, why), &error.to_string());
    }
    let deep = run.reply_json(request.seq(), json!({"Json": nested(MAX_JSON_DEPTH)})).await.unwrap_err();
    assert!(matches!(&deep, SendError::Unfit { problem: UnfitValue::TooDeep { limit: 120 }, .. }), "{deep}");
    assert_eq!(run.report_so_far().await.unwrap().log.len(), before);
    // The request is open, and everything that was accepted can be read back.
    run.reply_json(request.seq(), json!({"Json": nested(MAX_JSON_DEPTH - 1)})).await.unwrap();
    drop((run, engine));
    let engine = self::engine(Takes, store);
    let run = engine.attach::<Takes>("r").await.unwrap();
    run.send(Told(Data::Json(nested(MAX_JSON_DEPTH - 1)))).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}

/// Emits the given data, beside a step that always emits fit data.
struct Emits(fn(&Data) -> Data);

#[workflow]
impl Emits {
    #[step]
    async fn make(&self, open: &Open) -> (Made, Part) {
        (Made((self.0)(&open.0)), Part)
    }

    #[step]
    async fn count(&self, _open: &Open) -> Item {
        Item(7)
    }

    #[step]
    async fn end(&self, _made: &Made, _part: &Part, item: &Item) -> Done {
        Done(item.0)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Part;

/// The wire names of the events that a store has of a run.
async fn logged(store: &impl EventStore) -> Vec<String> {
    let records = store.read(&"r".into(), workflow_core::store::Position(0), usize::MAX).await.unwrap();
    let names = records.iter().filter_map(|record| match record {
        Record::EventLogged { event, .. } => Some(event.name().to_owned()),
        _ => None,
    });
    names.collect()
}

/// One kind of unfit value, by its number: a start event has it as a number, which is fit.
fn pick(data: &Data) -> Data {
    let Data::Wide(number) = data else { panic!("{data:?}") };
    unfit().swap_remove(usize::try_from(*number).unwrap()).0
}

#[tokio::test]
async fn an_execution_that_emits_what_cannot_be_read_back_fails_alone() {
    for (kind, (_, path, problem)) in (0..).zip(unfit()) {
        let store = CrashStore::default();
        let engine = engine(Emits(pick), store.clone());
        let run = engine.start_with::<Emits>(Open(Data::Wide(kind)), named("r")).await.unwrap();
        let error = run.outcome().await.unwrap_err();
        let RunError::StepFailed { step, class, source, attempts, .. } = &error else { panic!("{error:?}") };
        assert_eq!((&**step, *class, *attempts), ("make", ErrorClass::Permanent, 1));
        let UnfitEvent { event, path: at, problem: why, .. } = source.downcast_ref().unwrap();
        says("Made", path, problem, (event, at, why), &source.to_string());
        // S23: the whole batch or nothing.
        let kept = logged(&store).await;
        assert!(!kept.contains(&"Made".into()) && !kept.contains(&"Part".into()), "{kept:?}");
        let again = self::engine(Emits(pick), store).attach::<Emits>("r").await.unwrap().outcome().await;
        assert!(matches!(again.unwrap_err(), RunError::StepFailed { .. }));
    }
}

/// The same with a step that takes the failure.
struct Catches;

#[workflow]
impl Catches {
    #[step]
    async fn make(&self, open: &Open) -> Made {
        Made(pick(&open.0))
    }

    #[step]
    async fn count(&self, _open: &Open) -> Item {
        Item(7)
    }

    #[step(catches = [make])]
    async fn make_do(&self, failed: StepFailed) -> Part {
        assert_eq!(failed.class, ErrorClass::Permanent);
        assert!(failed.error.contains("`Made` cannot be stored: "), "{failed}");
        Part
    }

    #[step]
    async fn end(&self, _part: &Part, item: &Item, _told: &Told) -> Done {
        Done(item.0 + 1)
    }

    #[step]
    async fn made(&self, _made: &Made) -> Done {
        Done(0)
    }
}

#[tokio::test]
async fn the_failure_can_be_caught_and_the_siblings_event_of_the_same_moment_stays() {
    for kind in 0..unfit().len() as u128 {
        let store = CrashStore::default();
        let engine = engine(Catches, store.clone());
        let run = engine.start_with::<Catches>(Open(Data::Wide(kind)), named("r")).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        let kept = logged(&store).await;
        assert!(kept.contains(&"Item".into()) && kept.contains(&"Part".into()), "{kept:?}");
        // The state after a crash.
        drop((run, engine));
        let engine = self::engine(Catches, store);
        let resumed = engine.resume_open_runs().await.unwrap();
        assert!(resumed.refused.is_empty(), "{resumed:?}");
        let run = engine.attach::<Catches>("r").await.unwrap();
        run.send(Told(fine())).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(8));
    }
}

/// Emits unfit values in other ways.
struct Elsewhere;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = u32)]
struct AskPrice(f64);

#[workflow]
impl Elsewhere {
    #[step]
    async fn time(&self, begin: &Begin) -> Option<Timer<Made>> {
        let nan = Data::Small(f32::NAN);
        (begin.0 == 0).then(|| Timer::after(Duration::from_secs(1), Made(nan)))
    }

    #[step]
    async fn ask(&self, begin: &Begin) -> Option<Expiring<AskPrice>> {
        (begin.0 == 1).then(|| AskPrice(f64::NAN).expires_in(Duration::from_secs(1)))
    }

    #[step]
    async fn fan_out(&self, begin: &Begin) -> Option<FanOut<Row>> {
        (begin.0 == 2).then(|| FanOut::new(vec![Row(1.0), Row(f64::NAN)]))
    }

    #[step]
    async fn gather(&self, _rows: Gather<Row>) -> Done {
        Done(0)
    }

    #[step]
    async fn end(&self, _made: &Made) -> Done {
        Done(0)
    }

    #[step]
    async fn priced(&self, _price: &Reply<AskPrice>) -> Done {
        Done(0)
    }

    #[step]
    async fn expired(&self, _asked: &Expired<AskPrice>) -> Done {
        Done(0)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Row(f64);

#[tokio::test]
async fn events_of_timers_requests_and_branches_are_checked_when_they_are_emitted() {
    for (begin, step, name) in [(0, "time", "Made"), (1, "ask", "AskPrice"), (2, "fan_out", "Row")] {
        let engine = engine(Elsewhere, CrashStore::default());
        let error = engine.start::<Elsewhere>(Begin(begin)).await.unwrap().outcome().await.unwrap_err();
        let RunError::StepFailed { step: failed, source, .. } = &error else { panic!("{error:?}") };
        let UnfitEvent { event, problem, .. } = source.downcast_ref().unwrap();
        assert_eq!((&**failed, &**event, problem), (step, name, &UnfitValue::NotFinite));
    }
}

/// Starts a child with an unfit start event.
struct Parent;

#[workflow]
impl Parent {
    #[step]
    async fn run(&self, _begin: &Begin, children: &Children) -> Done {
        let child = children.run::<Takes>(Open(Data::Small(f32::NAN))).await;
        match child {
            Err(RunError::Start(StartError::Unfit { event, path, .. }))
                if &*event == "Open" && path == "Small" =>
            {
                Done(1)
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_child_whose_start_event_cannot_be_read_back_is_not_started() {
    let store = CrashStore::default();
    let engine = Engine::builder().workflow(Takes).workflow(Parent).store(store.clone()).build().unwrap();
    let run = engine.start::<Parent>(Begin(0)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    assert_eq!(store.runs(&RunQuery::new()).await.unwrap().len(), 1);
}

/// Counts its serialisations.
#[derive(Debug, Clone, Default, Deserialize)]
struct Counted {
    #[serde(skip)]
    times: Arc<AtomicUsize>,
}

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.times.fetch_add(1, Ordering::SeqCst);
        serializer.serialize_map(Some(0))?.end()
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct CountFrom(Counted, f64);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Count(Counted);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Late(Counted);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Counted)]
struct AskCount(Counted);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct SendCount(Counted);

/// Lets a counter enter in every way.
struct Counts;

#[workflow]
impl Counts {
    #[step]
    async fn begin(&self, from: &CountFrom) -> (Count, Timer<Late>, Expiring<AskCount>) {
        let again = || from.0.clone();
        let late = Timer::after(Duration::from_secs(1), Late(again()));
        (Count(again()), late, AskCount(again()).expires_in(Duration::from_mins(1)))
    }

    #[step]
    async fn end(&self, _: &Count, _: &Late, _: &Reply<AskCount>, _: &SendCount) -> Done {
        Done(1)
    }

    #[step]
    async fn expired(&self, _: &Expired<AskCount>) -> Done {
        Done(0)
    }
}

/// The serialisations of a counter that enters in six ways; timers and expiring requests are recorded twice.
async fn counted(builder: workflow_core::EngineBuilder, rate: f64) -> usize {
    let engine = builder.replay_check(false).workflow(Counts).clock(VirtualClock::new()).build().unwrap();
    let counter = Counted::default();
    let run = engine.start::<Counts>(CountFrom(counter.clone(), rate)).await.unwrap();
    run.settled().await;
    run.send(SendCount(counter.clone())).await.unwrap();
    let request = run.requests().await.unwrap()[0].id::<AskCount>().unwrap();
    run.reply(request, counter.clone()).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    counter.times.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_serialised_twice_for_a_store_and_nothing_at_all_in_memory() {
    assert_eq!(counted(Engine::builder().store(CrashStore::default()), 1.0).await, 6);
    assert_eq!(counted(Engine::builder().store(CrashStore::default()).max_event_bytes(1_000), 1.0).await, 6);
    // Values kept in memory may be of any kind.
    assert_eq!(counted(Engine::builder().store(MemoryStore::default()), f64::NAN).await, 0);
    assert_eq!(counted(Engine::builder().store(Arc::new(MemoryStore::default())), f64::NAN).await, 0);
    assert_eq!(counted(Engine::builder(), f64::NAN).await, 0);
}

#[tokio::test]
async fn an_event_that_is_too_large_and_one_whose_serialize_panics_are_told_apart_from_the_run() {
    let engine = Engine::builder().workflow(Takes).store(CrashStore::default()).max_event_bytes(200);
    let engine = engine.build().unwrap();
    let (run, request) = asked(&engine).await;
    let large = || Data::Json(json!("x".repeat(200)));
    let error = run.send(Told(large())).await.unwrap_err();
    assert!(matches!(error, SendError::TooLarge(_)), "{error}");
    let error = run.reply(request, large()).await.unwrap_err();
    assert!(matches!(error, SendError::TooLarge(_)), "{error}");
    let error = engine.start::<Takes>(Open(large())).await.unwrap_err();
    assert!(matches!(error, StartError::TooLarge(_)), "{error}");
    // Brackets and commas count as well.
    let error = run.send(Told(Data::Prices(vec![None; 40]))).await.unwrap_err();
    assert!(matches!(error, SendError::TooLarge(_)), "{error}");

    // Only the size check serialises here, so a failure is harmless.
    let engine = Engine::builder().workflow(Takes).max_event_bytes(200).replay_check(false).build().unwrap();
    let (run, request) = asked(&engine).await;
    run.reply(request, Data::Trap(Trap::Fails)).await.unwrap();
    run.send(Told(Data::Trap(Trap::Fails))).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
}

#[derive(Debug, Serialize, Deserialize)]
struct Tariff {
    rates: Vec<f64>,
}

struct Priced;

#[workflow]
impl Priced {
    #[step]
    async fn price(&self, _begin: &Begin, tariff: &Config<Tariff>) -> Done {
        Done(u32::try_from(tariff.rates.len()).unwrap())
    }
}

#[tokio::test]
async fn a_configuration_that_is_not_what_its_json_says_is_refused() {
    let tariff = |rate| Tariff { rates: vec![1.0, rate] };
    let built = Engine::builder().workflow(Priced).config::<Tariff>(tariff(f64::NAN)).build();
    let BuildError { problems, .. } = built.unwrap_err();
    let unfit = problems.iter().find_map(|problem| match problem {
        BuildProblem::ConfigLayer(ConfigError::Unfit { path, problem, .. }) => Some((&**path, problem)),
        _ => None,
    });
    assert_eq!(unfit, Some(("rates[1]", &UnfitValue::NotFinite)), "{problems:?}");

    let store = CrashStore::default();
    let engine = Engine::builder().workflow(Priced).config::<Tariff>(tariff(2.0)).store(store.clone());
    let engine = engine.build().unwrap();
    let options = |rate| named("r").config::<Tariff>(json!({"rates": [1.0]})).config::<Tariff>(tariff(rate));
    let error = engine.start_with::<Priced>(Begin(0), options(f64::INFINITY)).await.unwrap_err();
    let StartError::Config(ConfigError::Unfit { path, .. }) = &error else { panic!("{error:?}") };
    assert_eq!(&**path, "rates[1]");
    assert!(
        error.to_string().contains("the run's own value cannot be written as JSON: at `rates[1]`, "),
        "{error}"
    );
    let deep = named("r").config::<Tariff>(nested(MAX_JSON_DEPTH + 1));
    let error = engine.start_with::<Priced>(Begin(0), deep).await.unwrap_err();
    let StartError::Config(ConfigError::Unfit { problem, .. }) = &error else { panic!("{error:?}") };
    assert_eq!(problem, &UnfitValue::TooDeep { limit: MAX_JSON_DEPTH });
    assert!(store.runs(&RunQuery::new()).await.unwrap().is_empty());
    let run = engine.start_with::<Priced>(Begin(0), options(3.0)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}

#[test]
fn an_event_without_a_store_is_json_as_ever() {
    let event = AnyEvent::new(Told(Data::Small(f32::NAN)));
    assert_eq!(event.to_json().unwrap(), json!({"Small": null}));
}

/// A preference, which may be unknown or withheld.
#[expect(clippy::option_option, reason = "JSON does not tell its parts apart")]
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Surveyed {
    answers: Vec<Option<Option<u8>>>,
}

#[expect(clippy::option_option, reason = "JSON does not tell its parts apart")]
struct Surveys(Option<Option<u8>>);

#[workflow]
impl Surveys {
    #[step]
    async fn survey(&self, _begin: &Begin) -> Surveyed {
        Surveyed { answers: vec![Some(Some(1)), self.0] }
    }

    #[step]
    async fn end(&self, surveyed: &Surveyed) -> Done {
        Done(u32::try_from(surveyed.answers.len()).unwrap())
    }
}

/// The failure of a test whose run has this answer.
#[expect(clippy::option_option, reason = "JSON does not tell its parts apart")]
fn survey_fails_with(answer: Option<Option<u8>>, has_store: bool) -> Option<String> {
    let test = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let engine = Engine::builder().workflow(Surveys(answer));
            let engine = if has_store { engine.store(CrashStore::default()) } else { engine };
            let engine = engine.build().unwrap();
            let run = engine.start::<Surveys>(Begin(1)).await.unwrap();
            let _ = run.outcome().await;
        });
    };
    let panic = std::panic::catch_unwind(test).err()?;
    Some(panic.downcast_ref::<String>().unwrap().clone())
}

// S39
#[test]
fn a_value_that_is_read_back_as_another_one_fails_the_test_with_its_event_and_its_path() {
    for has_store in [false, true] {
        assert_eq!(survey_fails_with(None, has_store), None);
        assert_eq!(survey_fails_with(Some(Some(2)), has_store), None);
        let failure = survey_fails_with(Some(None), has_store).unwrap();
        for part in [
            "the replay check: event `Surveyed`, #2 of a run of `Surveys`, is read back as another value at \
             `answers[1]`",
            "the run has:     Some(null)",
            "the journal has: null",
            r#"the record at 2: {"event_logged":{"seq":2,"#,
            r#"{"answers":[1,null]}"#,
        ] {
            assert!(failure.contains(part), "`{part}` is missing in:\n{failure}");
        }
    }
}
