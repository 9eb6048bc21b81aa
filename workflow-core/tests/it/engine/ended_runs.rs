//! Ended runs of an engine without a store, which it keeps for a while (S77).

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::advance;
use workflow_core::errors::BuildProblem;
use workflow_core::prelude::*;
use workflow_core::report::Quality;
use workflow_core::store::{MemoryStore, RunQuery, StoreError};
use workflow_core::{EngineBuilder, ResumeError, RunError, RunId, RunOptions, RunStatus, StartError};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Alive, Alpha, Begin, Done};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Sum(String);

/// Ends with what comes from outside, or fails above nine.
struct Adds;

#[workflow]
impl Adds {
    #[step]
    async fn add(&self, begin: &Begin, alpha: &Alpha, display: &Display) -> Result<Done, String> {
        display.show(Sum(format!("{} and {}", begin.0, alpha.0)));
        if alpha.0 > 9 { Err("too many".into()) } else { Ok(Done(begin.0 + alpha.0)) }
    }
}

struct Doubles;

#[workflow]
impl Doubles {
    #[step]
    async fn double(&self, begin: &Begin) -> Done {
        Done(2 * begin.0)
    }
}

/// Runs `Doubles` as a child.
struct Asks;

#[workflow]
impl Asks {
    #[step]
    async fn ask(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        Ok(children.run::<Doubles>(begin.clone()).await?)
    }
}

const TEN: Duration = Duration::from_secs(10);

fn builder() -> EngineBuilder {
    Engine::builder().workflow(Adds).workflow(Doubles).workflow(Asks).clock(VirtualClock::new())
}

/// Runs `Adds` under this id to its end. No handle is left.
async fn ended(engine: &Engine, id: &str, alpha: u32) -> RunId {
    let run = engine.start_with::<Adds>(Begin(1), RunOptions::new().id(id).thread("ada")).await.unwrap();
    run.send(Alpha(alpha)).await.unwrap();
    run.report().await.unwrap();
    run.id().clone()
}

async fn is_known(engine: &Engine, id: &str) -> bool {
    let (found, attached) = (engine.find(&id.into()), engine.attach::<Adds>(id).await);
    let listed = engine.runs(&RunQuery::new().run(id)).await.unwrap();
    assert_eq!((found.is_some(), attached.is_ok()), (!listed.is_empty(), !listed.is_empty()));
    if let Err(error) = attached {
        assert!(matches!(error, ResumeError::UnknownRun { run } if run == id.into()));
    }
    !listed.is_empty()
}

// S77
#[tokio::test(start_paused = true)]
async fn an_ended_run_answers_as_its_handle_did() {
    let engine = builder().keep_ended(TEN, 5).build().unwrap();
    let handle = engine.start_with::<Adds>(Begin(1), RunOptions::new().id("a")).await.unwrap();
    handle.send(Alpha(2)).await.unwrap();
    let (outcome, report) = (handle.outcome().await.unwrap(), handle.report().await.unwrap());
    let explained = handle.explain().await.unwrap().to_string();
    drop(handle);

    let run = engine.attach::<Adds>("a").await.unwrap();
    assert_eq!((run.outcome().await.unwrap(), run.status()), (outcome, RunStatus::Completed));
    assert!(Arc::ptr_eq(&run.report().await.unwrap(), &report), "it is the same state");
    assert_eq!(run.explain().await.unwrap().to_string(), explained);
    assert!(run.send(Alpha(3)).await.unwrap_err().to_string().contains("completed"));
    let display = engine.find(&"a".into()).unwrap().display();
    let shown: Vec<String> =
        display.filter_map(async |item| item.event::<Sum>().map(|sum| sum.0.clone())).collect().await;
    assert_eq!(shown, ["1 and 2"]);
    assert!(engine.running().is_empty(), "it is not open");
}

// S77
#[tokio::test(start_paused = true)]
async fn a_run_is_unknown_once_its_time_is_over() {
    let engine = builder().keep_ended(TEN, 5).build().unwrap();
    ended(&engine, "a", 2).await;
    advance(Duration::from_secs(4)).await;
    ended(&engine, "b", 2).await;
    advance(Duration::from_millis(5_999)).await;
    assert!(is_known(&engine, "a").await && is_known(&engine, "b").await);
    advance(Duration::from_millis(1)).await;
    assert!(!is_known(&engine, "a").await && is_known(&engine, "b").await);
    ended(&engine, "a", 3).await;
    assert!(is_known(&engine, "a").await, "the id can be used again");
}

// S77
#[tokio::test(start_paused = true)]
async fn the_run_that_ended_first_goes_first() {
    let engine = builder().keep_ended(Duration::MAX, 2).build().unwrap();
    // The first to start is the last to end.
    let first = engine.start_with::<Adds>(Begin(1), RunOptions::new().id("first")).await.unwrap();
    ended(&engine, "b", 2).await;
    ended(&engine, "c", 2).await;
    first.send(Alpha(1)).await.unwrap();
    first.report().await.unwrap();
    assert!(!is_known(&engine, "b").await);
    assert!(is_known(&engine, "c").await && is_known(&engine, "first").await);
}

// S77
#[tokio::test(start_paused = true)]
async fn no_second_run_starts_under_the_id() {
    let engine = builder().keep_ended(TEN, 5).build().unwrap();
    ended(&engine, "a", 2).await;
    let again = || engine.start_with::<Adds>(Begin(1), RunOptions::new().id("a"));
    assert!(matches!(again().await, Err(StartError::DuplicateRun { run }) if run == "a".into()));
    assert!(is_known(&engine, "a").await, "a refused start leaves the first run");
    advance(TEN).await;
    again().await.unwrap();
}

// S77
#[tokio::test(start_paused = true)]
async fn ended_runs_are_listed_and_open_ones_are_running() {
    let engine = builder().keep_ended(TEN, 5).build().unwrap();
    ended(&engine, "a", 2).await;
    advance(Duration::from_secs(1)).await;
    ended(&engine, "b", 10).await;
    let _open = engine.start_with::<Adds>(Begin(1), RunOptions::new().id("c")).await.unwrap();
    let all = engine.runs(&RunQuery::new().newest_first()).await.unwrap();
    let ids: Vec<&str> = all.iter().map(|stored| stored.id.as_str()).collect();
    assert_eq!((ids, engine.running()), (vec!["b", "a"], vec!["c".into()]));
    let failed =
        engine.runs(&RunQuery::new().thread("ada").status(RunStatus::Failed)).await.unwrap().remove(0);
    assert_eq!((failed.id, failed.run.quality, failed.end.0), ("b".into(), Some(Quality::Failed), 0));
    assert_eq!((&*failed.run.workflow, failed.run.stop), ("Adds", None));
    assert_eq!(failed.run.started, VirtualClock::beginning() + Duration::from_secs(1));
    assert!(failed.run.ended >= Some(failed.run.started));
    let page = engine.runs(&RunQuery::new().at_most(1)).await.unwrap();
    assert_eq!(engine.runs(&RunQuery::new().after(page[0].id.clone())).await.unwrap()[0].id, "b".into());
    assert!(engine.runs(&RunQuery::new().open()).await.unwrap().is_empty());
}

// S77
#[tokio::test(start_paused = true)]
async fn a_run_can_be_removed_before_its_time_is_over() {
    let engine = builder().keep_ended(TEN, 5).build().unwrap();
    let a = ended(&engine, "a", 2).await;
    let handle = engine.attach::<Adds>("a").await.unwrap();
    assert!(engine.remove_run(&a).await.unwrap() && !engine.remove_run(&a).await.unwrap());
    assert!(!is_known(&engine, "a").await);
    assert_eq!(handle.outcome().await.unwrap(), Done(3), "handles stay valid");
    let open = engine.start_with::<Adds>(Begin(1), RunOptions::new().id("a")).await.unwrap();
    assert!(matches!(engine.remove_run(open.id()).await, Err(StoreError::InUse { run }) if run == a));
}

// S77
#[tokio::test(start_paused = true)]
async fn a_child_is_part_of_the_report_of_its_parent() {
    let engine = builder().keep_ended(TEN, 1).build().unwrap();
    let run = engine.start_with::<Asks>(Begin(1), RunOptions::new().id("parent")).await.unwrap();
    run.outcome().await.unwrap();
    drop(run);
    let listed = engine.runs(&RunQuery::new()).await.unwrap();
    assert_eq!(listed.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["parent"]);
    let report = engine.attach::<Asks>("parent").await.unwrap().report().await.unwrap();
    assert_eq!(report.children[0].report.as_ref().unwrap().executions("double"), 1);
    assert!(engine.find(&report.children[0].child.run).is_none());
}

// S77
#[tokio::test(start_paused = true)]
async fn an_engine_that_was_shut_down_has_the_runs_still() {
    let engine = builder().keep_ended(TEN, 5).build().unwrap();
    ended(&engine, "a", 2).await;
    drop(engine.start_with::<Adds>(Begin(1), RunOptions::new().id("open")).await.unwrap());
    engine.shut_down(Duration::ZERO).await;
    assert_eq!(engine.attach::<Adds>("a").await.unwrap().outcome().await.unwrap(), Done(3));
    let cancelled = engine.attach::<Adds>("open").await.unwrap();
    assert!(matches!(cancelled.outcome().await, Err(RunError::Cancelled { .. })));
}

// S77
#[tokio::test(start_paused = true)]
async fn a_handle_of_another_type_is_refused() {
    let engine = builder().keep_ended(TEN, 5).build().unwrap();
    ended(&engine, "a", 2).await;
    assert!(matches!(engine.attach::<Asks>("a").await, Err(ResumeError::WrongWorkflow { .. })));
    assert_eq!(engine.attach_any("a").await.unwrap().workflow(), "Adds");
}

/// Ends with a value whose guard counts.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Held {
    #[serde(skip)]
    _guard: Option<Arc<crate::fixtures::Guard>>,
}

struct Holds(Alive);

#[workflow]
impl Holds {
    #[step]
    async fn hold(&self, _begin: &Begin) -> Held {
        Held { _guard: Some(Arc::new(self.0.guard())) }
    }
}

// S77
#[tokio::test(start_paused = true)]
async fn what_a_run_held_is_freed_with_it() {
    let alive = Alive::default();
    let engine = Engine::builder().workflow(Holds(alive.clone())).clock(VirtualClock::new());
    let engine = engine.keep_ended(TEN, 3).build().unwrap();
    for _ in 0..5 {
        engine.start::<Holds>(Begin(1)).await.unwrap().report().await.unwrap();
    }
    assert_eq!(alive.count(), 3);
    advance(TEN).await;
    assert!(engine.find(&"none".into()).is_none());
    assert_eq!(alive.count(), 0, "any look-up frees what is over");
    engine.start::<Holds>(Begin(1)).await.unwrap().report().await.unwrap();
    drop(engine);
    assert_eq!(alive.count(), 0);
}

// S77
#[tokio::test(start_paused = true)]
async fn by_default_and_with_a_store_nothing_is_kept() {
    let engine = builder().build().unwrap();
    let a = ended(&engine, "a", 2).await;
    assert!(engine.find(&a).is_none());
    assert!(matches!(engine.attach::<Adds>("a").await, Err(ResumeError::UnknownRun { .. })));
    assert!(matches!(engine.runs(&RunQuery::new()).await, Err(StoreError::NoStore)));
    let engine = builder().store(MemoryStore::default()).keep_ended(TEN, 5).build().unwrap();
    let a = ended(&engine, "a", 2).await;
    assert!(engine.find(&a).is_none());
    advance(TEN).await;
    assert_eq!(engine.attach::<Adds>("a").await.unwrap().outcome().await.unwrap(), Done(3));
}

// S77
#[tokio::test(start_paused = true)]
async fn no_time_and_no_runs_are_refused() {
    for (time, at_most) in [(Duration::ZERO, 5), (TEN, 0)] {
        let error = builder().keep_ended(time, at_most).build().unwrap_err();
        assert!(matches!(error.problems[..], [BuildProblem::KeepsNothing { .. }]), "{error}");
    }
}

// S77
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_run_is_found_at_any_moment_of_its_end() {
    let engine = Engine::builder().workflow(Adds).keep_ended(Duration::from_mins(10), 1_000).build().unwrap();
    for number in 0..200 {
        let id = format!("r-{number}");
        let run = engine.start_with::<Adds>(Begin(1), RunOptions::new().id(id.as_str())).await.unwrap();
        let looks = tokio::spawn({
            let (engine, id) = (engine.clone(), id.clone());
            async move {
                for _ in 0..20 {
                    let found = engine.find(&id.as_str().into()).is_some();
                    let attached = engine.attach::<Adds>(id.as_str()).await.is_ok();
                    let again = engine.start_with::<Adds>(Begin(1), RunOptions::new().id(id.as_str())).await;
                    assert!(found && attached && matches!(again, Err(StartError::DuplicateRun { .. })));
                }
            }
        });
        run.send(Alpha(1)).await.unwrap();
        drop(run);
        looks.await.unwrap();
        assert_eq!(engine.attach::<Adds>(id).await.unwrap().outcome().await.unwrap(), Done(2));
    }
}

/// A clock that the test sets.
#[derive(Clone, Default)]
struct Set(Arc<std::sync::atomic::AtomicU64>);

impl Set {
    fn to(&self, seconds: u64) -> std::time::SystemTime {
        self.0.store(seconds, std::sync::atomic::Ordering::SeqCst);
        workflow_core::Clock::now(self)
    }
}

impl workflow_core::Clock for Set {
    fn now(&self) -> std::time::SystemTime {
        std::time::SystemTime::UNIX_EPOCH
            + Duration::from_secs(self.0.load(std::sync::atomic::Ordering::SeqCst))
    }

    fn sleep_until(&self, _: std::time::SystemTime) -> futures::future::BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

// S77
#[tokio::test]
async fn a_clock_that_was_ahead_keeps_no_run_longer_and_changes_no_time_of_an_end() {
    let clock = Set::default();
    let builder = Engine::builder().workflow(Adds).clock(clock.clone());
    let engine = builder.keep_ended(TEN, 100).build().unwrap();
    clock.to(1_000_000);
    ended(&engine, "ahead", 1).await;
    let back = clock.to(100);
    ended(&engine, "back", 1).await;
    let listed = engine.runs(&RunQuery::new().run("back")).await.unwrap();
    assert_eq!(listed[0].run.ended, Some(back));
    clock.to(109);
    assert!(is_known(&engine, "ahead").await && is_known(&engine, "back").await);
    clock.to(110);
    assert!(!is_known(&engine, "ahead").await && !is_known(&engine, "back").await);
}
