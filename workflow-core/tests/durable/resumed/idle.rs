//! Runs that are unloaded while they wait, and reloaded (S30, S42).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allocation_counter::measure;
use futures::StreamExt as _;
use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, MemoryStore, Position, Record, Retention, RunQuery, StoreError, StoreFuture,
    StoredRun, Write,
};
use workflow_core::{
    DisplayItem, EngineBuilder, ResumeError, RunError, RunHandle, RunId, RunOptions, RunStatus, SendError,
    StartError,
};
use workflow_testkit::{Scenario, VirtualClock};

use crate::fixtures::{Begin, Done, Note, survive};
use crate::shapes::{Ask, Asks, Waits};

mod bystanders;
mod held_up;

/// The numbers of unloaded and of reloaded runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Told(Arc<(AtomicUsize, AtomicUsize)>);

impl Told {
    fn released(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    pub(super) fn loaded(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }

    /// Waits until this many runs are unloaded.
    pub(super) async fn are_away(&self, runs: usize) {
        let away = async {
            while self.released() - self.loaded() != runs {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_mins(1), away).await.expect("waiting runs are unloaded");
    }
}

impl Observer for Told {
    fn observe(&self, observation: &Observation) {
        match observation.what {
            Observed::RunUnloaded => self.0.0.fetch_add(1, Ordering::SeqCst),
            Observed::RunReloaded => self.0.1.fetch_add(1, Ordering::SeqCst),
            _ => 0,
        };
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

/// An engine that unloads waiting runs at once, and the observed numbers.
fn forgetful(store: impl EventStore) -> (EngineBuilder, Told) {
    let told = Told::default();
    let engine = Engine::builder().workflow(Asks).workflow(Waits).workflow(Shows).store(store);
    (engine.observer(told.clone()).unload_waiting_after(Duration::ZERO), told)
}

async fn start(engine: &Engine, id: &str) -> RunHandle<Asks> {
    engine.start_with::<Asks>(Begin(1), RunOptions::new().id(id)).await.unwrap()
}

async fn reply(run: &RunHandle<Asks>, with: u32) -> Result<(), SendError> {
    let request = run.requests().await?[0].id::<Ask>().unwrap();
    run.reply(request, with).await
}

fn has_ended(journal: &[Record]) -> bool {
    matches!(journal.last(), Some(Record::RunEnded { .. }))
}

#[tokio::test]
async fn an_unloaded_run_serves_its_handles() {
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.build().unwrap();
    let run = start(&engine, "r").await;
    told.are_away(1).await;
    assert_eq!((run.status(), engine.running()), (RunStatus::Waiting, vec!["r".into()]));
    assert_eq!(run.requests().await.unwrap().len(), 1);
    told.are_away(1).await;
    assert!(run.explain().await.unwrap().to_string().contains("Ask"));
    told.are_away(1).await;
    assert_eq!(run.report_so_far().await.unwrap().executions("ask"), 1);
    told.are_away(1).await;
    reply(&run, 7).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
    assert!(told.loaded() >= 4 && engine.running().is_empty());
    let report = run.report().await.unwrap();
    let kept = Engine::builder().workflow(Asks).store(MemoryStore::default()).build().unwrap();
    let whole = start(&kept, "r").await;
    reply(&whole, 7).await.unwrap();
    let log = |report: &workflow_core::report::RunReport| {
        report.log.iter().map(|logged| (logged.seq, logged.event.clone())).collect::<Vec<_>>()
    };
    assert_eq!(log(&report), log(&whole.report().await.unwrap()));
}

// S79
#[tokio::test]
async fn an_unloaded_run_is_loaded_for_a_reply_to_the_open_request() {
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.build().unwrap();
    for (id, typed) in [("typed", true), ("json", false)] {
        drop(start(&engine, id).await);
        told.are_away(1).await;
        let run = engine.attach::<Asks>(id).await.unwrap();
        told.are_away(1).await;
        if typed {
            run.reply_to::<Ask>(7).await.unwrap();
        } else {
            run.reply_to_json("Ask", serde_json::json!(7)).await.unwrap();
        }
        assert_eq!(run.outcome().await.unwrap(), Done(0));
    }
}

#[tokio::test]
async fn runs_that_wait_for_replies_have_no_task_and_all_that_wait_for_timers_share_one() {
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.build().unwrap();
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for n in 0..20 {
        drop(start(&engine, &n.to_string()).await);
    }
    told.are_away(20).await;
    tokio::task::yield_now().await;
    assert_eq!(tasks(), before);
    for _ in 0..20 {
        drop(engine.start::<Waits>(Begin(1)).await.unwrap());
    }
    told.are_away(40).await;
    tokio::task::yield_now().await;
    assert_eq!(tasks(), before + 1);
    engine.cancel_all("the engine is shutting down", Duration::ZERO).await;
    tokio::task::yield_now().await;
    assert_eq!((tasks(), engine.running().len()), (before, 0));
}

#[test]
fn an_unloaded_run_without_handles_takes_at_most_two_hundred_bytes() {
    const RUNS: usize = 4_000;
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let (engine, told) = forgetful(Arc::clone(&store));
    let engine = engine.build().unwrap();
    runtime.block_on(async {
        for n in 0..RUNS {
            drop(start(&engine, &format!("an-order-with-a-long-number-{n:08}")).await);
            told.are_away(n + 1).await;
        }
    });
    let freed = measure(|| drop(engine));
    let each = -freed.bytes_current / i64::try_from(RUNS).unwrap();
    assert!((1..=200).contains(&each), "{each} bytes each");
}

// S36
#[tokio::test(start_paused = true)]
async fn timers_come_when_they_are_due() {
    let clock = VirtualClock::new();
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.clock(clock).build().unwrap();
    let since = tokio::time::Instant::now();
    let run = engine.start::<Waits>(Begin(3)).await.unwrap();
    told.are_away(1).await;
    tokio::time::sleep(Duration::from_secs(45)).await;
    let report = run.report_so_far().await.unwrap();
    let log: Vec<&str> = report.log.iter().map(|logged| &*logged.event).collect();
    assert_eq!(log, ["Begin", "Ask", "Part", "Item"]);
    let began = VirtualClock::beginning();
    let at = report.log.iter().map(|logged| logged.at.duration_since(began).unwrap().as_secs());
    assert_eq!(at.collect::<Vec<_>>(), [0, 0, 10, 30]);
    told.are_away(1).await;
    run.send(Note(5)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3 + 1 + 2 + 5));
    assert_eq!(since.elapsed().as_secs(), 60);
}

/// Displays received events.
struct Shows;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Shown(u32);

#[workflow]
impl Shows {
    #[step]
    async fn show(&self, _begin: &Begin, note: &Note, display: &Display) -> Option<Done> {
        display.show(Shown(note.0));
        (note.0 == 0).then_some(Done(0))
    }
}

// S25
#[tokio::test]
async fn a_viewer_continues_across_an_unload() {
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.build().unwrap();
    let run = engine.start_with::<Shows>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let viewer = run.display();
    drop(run);
    for note in [2, 1, 0] {
        told.are_away(1).await;
        engine.attach::<Shows>("r").await.unwrap().send(Note(note)).await.unwrap();
    }
    let seen = timeout(Duration::from_mins(1), viewer.collect::<Vec<_>>()).await.unwrap();
    let shown: Vec<u32> = seen.iter().filter_map(|item| item.event::<Shown>()).map(|shown| shown.0).collect();
    assert_eq!(shown, [2, 1, 0]);
    assert!(matches!(seen.last(), Some(DisplayItem::Ended { status: RunStatus::Completed })));
}

// S31
#[tokio::test]
async fn an_unloaded_run_is_cancelled_by_a_handle_by_a_guard_and_with_its_engine() {
    let store = Arc::new(MemoryStore::default());
    let (engine, told) = forgetful(Arc::clone(&store));
    let engine = engine.build().unwrap();
    let by_handle = start(&engine, "handle").await;
    let by_guard = start(&engine, "guard").await.cancel_on_drop("nobody looks");
    let with_engine = start(&engine, "engine").await;
    drop(start(&engine, "nobody's").await);
    told.are_away(4).await;
    by_handle.cancel("enough").await.unwrap();
    let handle = engine.attach::<Asks>("guard").await.unwrap();
    told.are_away(3).await;
    drop(by_guard);
    engine.cancel_all("the engine is shutting down", Duration::from_secs(1)).await;
    for (run, reason) in [(by_handle, "enough"), (handle, "nobody looks")] {
        let ended = run.outcome().await.unwrap_err();
        assert!(matches!(&ended, RunError::Cancelled { reason: given } if *reason == **given), "{ended}");
    }
    assert!(matches!(with_engine.outcome().await, Err(RunError::Cancelled { .. })));
    for run in ["handle", "guard", "engine", "nobody's"] {
        assert!(has_ended(&engine.history(&run.into()).await.unwrap()), "{run}");
    }
}

// S31
#[tokio::test]
async fn a_guard_alone_cancels_an_unloaded_run() {
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.build().unwrap();
    let guard = start(&engine, "r").await.cancel_on_drop("nobody looks");
    told.are_away(1).await;
    drop(guard);
    let gone = async {
        while !engine.running().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_mins(1), gone).await.unwrap();
    let past = engine.attach::<Asks>("r").await.unwrap().outcome().await.unwrap_err();
    assert_eq!(past.to_string(), "the run was cancelled: nobody looks");
}

#[tokio::test]
async fn a_handle_is_enough_to_keep_the_engine() {
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.build().unwrap();
    let run = start(&engine, "r").await;
    told.are_away(1).await;
    drop(engine);
    reply(&run, 1).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
}

#[tokio::test(start_paused = true)]
async fn an_engine_whose_timers_have_fired_goes_with_its_last_handle() {
    let store = Arc::new(MemoryStore::default());
    let (engine, told) = forgetful(Arc::clone(&store));
    let engine = engine.clock(VirtualClock::new()).build().unwrap();
    let run = engine.start::<Waits>(Begin(3)).await.unwrap();
    told.are_away(1).await;
    tokio::time::sleep(Duration::from_secs(45)).await;
    run.send(Note(5)).await.unwrap();
    run.outcome().await.unwrap();
    drop((run, engine));
    crate::fixtures::until(async || Arc::strong_count(&store) == 1).await;
}

/// A store whose reads fail while the test says so.
#[derive(Debug, Clone, Default)]
struct Unread(Arc<MemoryStore>, Arc<Mutex<bool>>);

impl Unread {
    fn set(&self, unread: bool) {
        *self.1.lock().unwrap() = unread;
    }
}

impl EventStore for Unread {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        self.0.append(run, expected, batch)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        if *self.1.lock().unwrap() {
            let error = std::io::Error::other("the cable is out");
            return StoreFuture::ready(Err(StoreError::unavailable(error)));
        }
        self.0.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.0.runs(query)
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.0.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.0.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.0.lease(engine, duration)
    }
}

#[tokio::test]
async fn while_the_store_cannot_be_read_a_run_waits_on() {
    let store = Unread::default();
    let (engine, told) = forgetful(store.clone());
    let engine = engine.build().unwrap();
    let run = start(&engine, "r").await;
    told.are_away(1).await;
    store.set(true);
    let asked = run.requests().await.unwrap_err();
    assert!(matches!(&asked, SendError::NotLoaded { run, .. } if run.as_str() == "r"), "{asked}");
    assert_eq!(asked.to_string().matches("the cable is out").count(), 1, "{asked}");
    assert!(matches!(run.explain().await, Err(RunError::Store { .. })));
    assert!(matches!(engine.attach::<Asks>("r").await, Err(ResumeError::Store(_))));
    assert_eq!(run.status(), RunStatus::Waiting);
    store.set(false);
    reply(&run, 1).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
}

// S36
#[tokio::test(start_paused = true)]
async fn a_timer_that_is_due_while_the_store_cannot_be_read_comes_when_it_can() {
    let (store, clock) = (Unread::default(), VirtualClock::new());
    let (engine, told) = forgetful(store.clone());
    let engine = engine.clock(clock).build().unwrap();
    let run = engine.start::<Waits>(Begin(3)).await.unwrap();
    told.are_away(1).await;
    store.set(true);
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert_eq!(told.loaded(), 0);
    store.set(false);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let log = run.report_so_far().await.unwrap().log.len();
    assert_eq!((log, told.loaded() > 0), (4, true));
}

// S40
#[tokio::test]
async fn a_run_that_another_engine_resumed_is_lost_without_effect() {
    let store = Arc::new(MemoryStore::default());
    let (engine, told) = forgetful(Arc::clone(&store));
    let engine = engine.build().unwrap();
    let before = start(&engine, "r").await;
    told.are_away(1).await;
    let second = Engine::builder().workflow(Asks).store(Arc::clone(&store)).build().unwrap();
    let after = second.attach::<Asks>("r").await.unwrap();
    after.settled().await;
    let late = before.requests().await.unwrap_err();
    assert!(matches!(late, SendError::Stopped { .. }), "{late}");
    assert!(matches!(before.outcome().await, Err(RunError::Conflict { .. })));
    assert!(engine.running().is_empty());
    reply(&after, 7).await.unwrap();
    assert_eq!(after.outcome().await.unwrap(), Done(0));
}

// S42
#[tokio::test]
async fn an_unloaded_run_stays_owned_by_its_engine() {
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.build().unwrap();
    drop(start(&engine, "r").await);
    told.are_away(1).await;
    let again = engine.start_with::<Asks>(Begin(1), RunOptions::new().id("r")).await.unwrap_err();
    assert!(matches!(again, StartError::DuplicateRun { .. }));
    assert!(matches!(engine.remove_run(&"r".into()).await, Err(StoreError::InUse { .. })));
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.runs.is_empty() && resumed.refused.is_empty());
    assert_eq!((told.released(), told.loaded()), (1, 0));
    assert!(matches!(engine.attach::<Waits>("r").await, Err(ResumeError::WrongWorkflow { .. })));
    let claims = engine.history(&"r".into()).await.unwrap();
    assert!(!claims.iter().any(|record| matches!(record, Record::RunResumed { .. })));
}

// S42, S56
#[tokio::test]
async fn an_unloaded_run_is_found_while_it_has_a_handle() {
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.build().unwrap();
    let run = start(&engine, "r").await;
    told.are_away(1).await;
    let found = engine.find(&"r".into()).expect("it has a handle");
    assert_eq!((told.loaded(), found.status()), (0, RunStatus::Waiting));
    drop((run, found));
    assert!(engine.find(&"r".into()).is_none());
    let run = engine.attach_any("r").await.unwrap();
    assert_eq!(run.requests().await.unwrap().len(), 1);
    assert_eq!(told.loaded(), 1);
}

// S33
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_unloading_runs_gets_its_own_reply_once() {
    const RUNS: u32 = 100;
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.build().unwrap();
    let start = |n| engine.start_with::<Asks>(Begin(n), RunOptions::new().id(n.to_string()));
    let runs: Vec<_> = futures::future::try_join_all((1..=RUNS).map(start)).await.unwrap();
    let answered = runs.iter().flat_map(|run| std::iter::repeat_n(run, 3)).map(|run| {
        let run = run.clone();
        tokio::spawn(async move {
            let mut refused = 0;
            loop {
                let Ok(open) = run.requests().await else { return refused };
                for request in open {
                    // Other tasks reply too.
                    refused += u32::from(run.reply(request.id::<Ask>().unwrap(), 1).await.is_err());
                }
                tokio::task::yield_now().await;
            }
        })
    });
    let answered = futures::future::join_all(answered);
    timeout(Duration::from_mins(2), answered).await.expect("every reply is answered");
    let mut ends = BTreeMap::<_, u32>::new();
    for run in &runs {
        run.outcome().await.unwrap();
        let replies = run.report().await.unwrap();
        let replies = replies.log.iter().filter(|logged| &*logged.event == "Ask.reply").count();
        *ends.entry(replies).or_default() += 1;
    }
    let expected: BTreeMap<_, u32> = (1..=RUNS).fold(BTreeMap::new(), |mut ends, n| {
        *ends.entry(n as usize).or_default() += 1;
        ends
    });
    assert_eq!(ends, expected);
    assert_eq!(told.released(), told.loaded());
}

fn at_once(engine: EngineBuilder) -> EngineBuilder {
    engine.unload_waiting_after(Duration::ZERO)
}

survive! {
    requests_of_runs_that_are_let_go_of: Scenario::new(Asks).engine(at_once).reply(|_: &Ask| 3), 2;
    timers_of_runs_that_are_let_go_of:
        Scenario::new(Waits).engine(at_once).send_after(Duration::from_mins(1), Note(4)), 3;
}

// S30
#[tokio::test(start_paused = true)]
async fn the_waits_of_a_run_are_listed_until_it_continues() {
    let store = Arc::new(MemoryStore::default());
    let clock = VirtualClock::new();
    let engine = Engine::builder().workflow(Asks).workflow(Waits).workflow(Shows);
    let engine = engine.store(Arc::clone(&store)).clock(clock.clone()).build().unwrap();
    let asks = engine.start_with::<Asks>(Begin(20), RunOptions::new().id("asks")).await.unwrap();
    engine.start_with::<Waits>(Begin(1), RunOptions::new().id("waits")).await.unwrap();
    let shows = engine.start_with::<Shows>(Begin(1), RunOptions::new().id("shows")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let listed = || async {
        let runs = engine.runs(&RunQuery::new()).await.unwrap();
        runs.into_iter().map(|stored| (stored.id.to_string(), stored.run)).collect::<BTreeMap<_, _>>()
    };
    let runs = listed().await;
    assert!(runs.values().all(|run| run.status == RunStatus::Waiting));
    let text = |run: &str| runs[run].waits_for.as_ref().unwrap().to_string();
    assert_eq!(text("asks"), format!("a reply to {} and 4 more", ["Ask"; 16].join(", ")));
    assert_eq!(text("waits"), "a reply to Ask, or a timer");
    assert_eq!(text("shows"), "Note");
    let until = runs["waits"].waits_for.as_ref().unwrap().until;
    assert_eq!(until, Some(VirtualClock::beginning() + Duration::from_secs(10)));
    asks.cancel("enough").await.unwrap();
    shows.send(Note(0)).await.unwrap();
    shows.outcome().await.unwrap();
    let runs = listed().await;
    assert_eq!((runs["asks"].status, runs["shows"].status), (RunStatus::Cancelled, RunStatus::Completed));
    assert!(runs["asks"].waits_for.is_none() && runs["shows"].waits_for.is_none());
}
