//! Types whose `Deserialize` panics: the run whose journal has such a value is refused, and no other is affected (S43).

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserializer;
use serde_json::json;
use workflow_core::errors::{ConfigError, Incompatibility};
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, Position, Record};
use workflow_core::{ConfigLayers, EngineBuilder, ResumeError, RunOptions, RunStatus, SendError};
use workflow_testkit::{CrashStore, VirtualClock};

use crate::fixtures::{Begin, Done};

thread_local! {
    /// Whether the program of this test is a later one.
    static IS_LATER: Cell<bool> = const { Cell::new(false) };
}

/// A number that a later program cannot read if it is 13.
#[derive(Debug, Clone, Serialize)]
struct Touchy(u32);

impl<'de> Deserialize<'de> for Touchy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        assert!(number != 13 || !IS_LATER.get(), "thirteen");
        Ok(Self(number))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Wake(Touchy);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Rang;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Touchy)]
struct Ask;

/// Ends when its timer has fired and its request has a reply.
struct Wakes;

#[workflow]
impl Wakes {
    #[step]
    async fn wait(&self, _wake: &Wake) -> Timer<Rang> {
        Timer::after(Duration::from_secs(10), Rang)
    }

    #[step]
    async fn ask(&self, _rang: &Rang) -> Ask {
        Ask
    }

    #[step]
    async fn end(&self, reply: &Reply<Ask>) -> Done {
        Done(reply.0)
    }
}

fn engine(store: &CrashStore) -> EngineBuilder {
    engine_at(store, VirtualClock::new())
}

fn engine_at(store: &CrashStore, clock: VirtualClock) -> EngineBuilder {
    // This test writes unreadable values on purpose.
    Engine::builder().replay_check(false).workflow(Wakes).store(store.clone()).clock(clock)
}

/// Three runs; the middle one cannot be read.
async fn started(engine: &Engine) -> Vec<workflow_core::RunHandle<Wakes>> {
    let mut runs = Vec::new();
    for (id, number) in [("a", 1), ("b", 13), ("c", 3)] {
        let options = RunOptions::new().id(id);
        runs.push(engine.start_with::<Wakes>(Wake(Touchy(number)), options).await.unwrap());
    }
    for run in &runs {
        assert_eq!(run.settled().await, RunStatus::Waiting);
    }
    runs
}

fn is_told(difference: &Incompatibility) {
    let Incompatibility::Journal { position, what } = difference else { panic!("{difference:?}") };
    assert_eq!(*position, Position(1));
    assert!(what.contains("event `Wake`") && what.contains("its `Deserialize` panicked: "), "{what}");
    assert!(what.contains("thirteen"), "{what}");
}

// S43, S87: by the resume if its timer is due, and otherwise when it is loaded.
#[tokio::test(start_paused = true)]
async fn an_unreadable_run_is_refused_and_all_others_continue() {
    for is_due in [true, false] {
        IS_LATER.set(false);
        let (store, clock) = (CrashStore::default(), VirtualClock::new());
        let first = engine_at(&store, clock.clone()).build().unwrap();
        let runs = started(&first).await;
        first.shut_down(Duration::ZERO).await;
        drop((runs, first));
        IS_LATER.set(true);
        if is_due {
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
        let engine = engine_at(&store, clock).build().unwrap();
        let resumed = engine.resume_open_runs().await.unwrap();
        assert!(resumed.error.is_none());
        if is_due {
            assert_eq!(resumed.runs, ["a".into(), "c".into()]);
            let [(run, ResumeError::Incompatible { run: refused, difference })] = &*resumed.refused else {
                panic!("{:?}", resumed.refused)
            };
            assert!(run.as_str() == "b" && run == refused);
            is_told(difference);
        } else {
            assert_eq!(resumed.runs, ["a".into(), "b".into(), "c".into()]);
        }
        let Err(ResumeError::Incompatible { difference, .. }) = engine.attach::<Wakes>("b").await else {
            panic!("it was read")
        };
        is_told(&difference);
        let mut running = engine.running();
        running.sort();
        assert_eq!(running, ["a".into(), "c".into()]);
        for id in ["a", "c"] {
            let run = engine.attach::<Wakes>(id).await.unwrap();
            while run.requests().await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_reloaded_stops_no_timer_of_another() {
    let store = CrashStore::default();
    let engine = engine(&store).unload_waiting_after(Duration::ZERO).build().unwrap();
    let runs = started(&engine).await;
    IS_LATER.set(true);
    // Its timer is due, between those of the others.
    let RunError::Incompatible { difference, .. } = runs[1].outcome().await.unwrap_err() else {
        panic!("it was read")
    };
    is_told(&difference);
    for run in [&runs[0], &runs[2]] {
        while run.requests().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let request = run.requests().await.unwrap()[0].seq();
        // Nor does a reply that cannot be read do any harm.
        let error = run.reply_json(request, json!(13)).await.unwrap_err();
        let SendError::UnfitReply { problem, .. } = &error else { panic!("{error:?}") };
        assert!(problem.starts_with("its `Deserialize` panicked: "), "{problem}");
        run.reply_json(request, json!(5)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(5));
    }
}

/// Whether tariffs can be read.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

/// A configuration that a later program cannot read.
#[derive(Debug)]
struct Tariff(u32);

impl<'de> Deserialize<'de> for Tariff {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        assert!(!IS_BROKEN.load(Ordering::SeqCst), "a later program");
        Ok(Self(u32::deserialize(deserializer)?))
    }
}

struct Priced;

#[workflow]
impl Priced {
    #[step]
    async fn price(&self, begin: &Begin, tariff: &Config<Tariff>) -> Timer<Done> {
        Timer::after(Duration::from_secs(10), Done(begin.0 * tariff.0))
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_with_an_unreadable_configuration_is_refused_and_all_others_continue() {
    let store = CrashStore::default();
    let engine =
        || engine(&store).workflow(Priced).config(ConfigLayers::<Tariff>::defaults(2)).build().unwrap();
    let first = engine();
    let options = RunOptions::new().id("p").config::<Tariff>(json!(3));
    let run = first.start_with::<Priced>(Begin(5), options).await.unwrap();
    run.settled().await;
    let woken = first.start_with::<Wakes>(Wake(Touchy(1)), RunOptions::new().id("w")).await.unwrap();
    woken.settled().await;
    drop((run, woken, first));
    let second = engine();
    IS_BROKEN.store(true, Ordering::SeqCst);
    let resumed = second.resume_open_runs().await.unwrap();
    assert_eq!(resumed.runs, ["p".into(), "w".into()], "both wait");
    let Err(ResumeError::Config(ConfigError::Invalid { source, .. })) = second.attach::<Priced>("p").await
    else {
        panic!("it was read")
    };
    assert_eq!(&*source.to_string(), "its `Deserialize` panicked: a later program");
    assert_eq!(second.running(), ["w".into()]);
    let resumed = second.resume_open_runs().await.unwrap();
    assert_eq!(resumed.runs, ["p".into()]);
    IS_BROKEN.store(false, Ordering::SeqCst);
    assert_eq!(second.attach::<Priced>("p").await.unwrap().outcome().await.unwrap(), Done(15));
}

/// Has a child that cannot be read.
struct Raises;

#[workflow]
impl Raises {
    #[step]
    async fn delegate(&self, _begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run::<Wakes>(Wake(Touchy(13))).await
    }
}

// S27, S39, S43
#[tokio::test(start_paused = true)]
async fn a_parent_of_an_unreadable_child_is_detached_and_other_runs_continue() {
    let store = CrashStore::default();
    let first = engine(&store).workflow(Raises).build().unwrap();
    let parent = first.start_with::<Raises>(Begin(1), RunOptions::new().id("p")).await.unwrap();
    let child = "p/delegate-x1.1";
    while store.read(&child.into(), Position(0), 10).await.unwrap().len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let other = first.start_with::<Wakes>(Wake(Touchy(1)), RunOptions::new().id("o")).await.unwrap();
    other.settled().await;
    drop((parent, other, first));
    IS_LATER.set(true);
    let journal = async |id: &str| store.read(&id.into(), Position(0), usize::MAX).await.unwrap();
    let before = journal(child).await.len();

    let engine = engine(&store).workflow(Raises).build().unwrap();
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.runs.contains(&"o".into()) && resumed.error.is_none(), "{resumed:?}");
    let parent = engine.attach::<Raises>("p").await.unwrap();
    let error = parent.outcome().await.unwrap_err();
    assert!(matches!(error, RunError::Store { .. }), "{error:?}");
    assert!(error.to_string().contains("thirteen"), "{error}");
    let is_end = |record: &Record| matches!(record, Record::RunEnded { .. });
    for id in ["p", child] {
        assert!(!journal(id).await.iter().any(is_end), "{id} is left as it is");
    }
    assert_eq!(journal(child).await.len(), before);

    let other = engine.attach::<Wakes>("o").await.unwrap();
    while other.requests().await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let request = other.requests().await.unwrap()[0].seq();
    other.reply_json(request, json!(5)).await.unwrap();
    assert_eq!(other.outcome().await.unwrap(), Done(5));
}
