//! Engines that share a store: run ownership, and claims of the runs of engines that are gone (S39, S40).

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::yield_now;
use tokio::time::sleep;
use workflow_core::errors::BuildProblem;
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, Leases, MemoryInbox, MemoryStore, Position, Record, Retention, RunMessage,
    RunQuery, StoreError, StoreFuture, StoredRun, Write,
};
use workflow_core::{
    EngineBuilder, ResumeError, RunHandle, RunId, RunOptions, RunStatus, SendError, StartError,
};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note};
use crate::world::runtime;

mod at_random;
mod children;
mod claims;
mod shut_down;
mod lapses;

/// The duration of these engines' leases.
const LEASE: Duration = Duration::from_secs(30);

/// A store whose lease clock the test sets, and which can refuse leases of one engine. Each call yields, so that others
/// can come between. Clones are one store.
#[derive(Debug, Clone)]
struct Shared {
    kept: Arc<MemoryStore>,
    leases: Arc<Leases>,
    now: Arc<Mutex<Instant>>,
    /// The engine whose leases the store refuses.
    refuses: Arc<Mutex<Option<EngineId>>>,
    /// The engine that writes to a run at each read of it, this many times; before the last time it takes its lease.
    writes: Arc<Mutex<Option<(EngineId, usize)>>>,
    /// The engine that comes back at the next read of a run: it takes its lease again, and writes that it keeps the
    /// run.
    comes_back: Arc<Mutex<Option<EngineId>>>,
    /// The runs whose appends it never answers.
    silent: Arc<Mutex<Vec<RunId>>>,
    /// The runs whose appends fail.
    fails: Arc<Mutex<Vec<RunId>>>,
    /// The calls that wait, each for a permit of its semaphore.
    gates: Arc<Mutex<Gates>>,
}

type Gates = HashMap<(Call, RunId), Arc<Semaphore>>;

/// A call of the store that can wait at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Call {
    Read,
    Append,
    /// The answer to an append that the store has taken.
    Answer,
}

impl Shared {
    fn new() -> Self {
        let now = Arc::new(Mutex::new(Instant::now()));
        Self {
            kept: Arc::default(),
            leases: Arc::default(),
            now,
            refuses: Arc::default(),
            writes: Arc::default(),
            comes_back: Arc::default(),
            silent: Arc::default(),
            fails: Arc::default(),
            gates: Arc::default(),
        }
    }

    /// Lets such calls of the run wait, each for a permit of the result.
    fn gate(&self, call: Call, run: &str) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        self.gates.lock().unwrap().insert((call, run.into()), Arc::clone(&gate));
        gate
    }

    /// Lets such calls of the run wait no more.
    fn open(&self, call: Call, run: &str) {
        if let Some(gate) = self.gates.lock().unwrap().remove(&(call, run.into())) {
            gate.close();
        }
    }

    async fn wait_at_gate(&self, call: Call, run: &RunId) {
        let gate = self.gates.lock().unwrap().get(&(call, run.clone())).map(Arc::clone);
        if let Some(gate) = gate {
            // An error says that the gate is open.
            gate.acquire().await.into_iter().for_each(SemaphorePermit::forget);
        }
    }

    /// Advances the store's clock, and no other.
    fn pass(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
    }

    fn refuse(&self, engine: Option<&Engine>) {
        *self.refuses.lock().unwrap() = engine.map(|engine| engine.id().clone());
    }

    async fn come_back(&self, run: &RunId) {
        let writes =
            self.writes.lock().unwrap().as_mut().filter(|(_, times)| *times > 0).map(|(engine, times)| {
                *times -= 1;
                (engine.clone(), *times == 0)
            });
        let back = self.comes_back.lock().unwrap().take().map(|engine| (engine, true));
        let Some((engine, takes_lease)) = back.or(writes) else { return };
        if takes_lease {
            self.leases.renew_at(&engine, LEASE, *self.now.lock().unwrap());
        }
        let stored = self.kept.runs(&RunQuery::new()).await.unwrap();
        let StoredRun { end, run: summary, .. } =
            stored.into_iter().find(|stored| stored.id == *run).unwrap();
        let kept = Record::RunKept { at: std::time::SystemTime::now() };
        let batch = Write { records: vec![kept], run: summary.owned_by(Some(engine)) };
        self.kept.append(run, end, batch).await.unwrap();
    }

    async fn holds(&self, engine: &EngineId) -> bool {
        let nobody = EngineId::new("nobody");
        EventStore::lease(self, &nobody, Duration::ZERO).await.unwrap().contains(engine)
    }

    async fn journal(&self, run: &str) -> Vec<Record> {
        self.kept.read(&run.into(), Position(0), usize::MAX).await.unwrap()
    }

    /// The number of resumes of the run.
    async fn resumed(&self, run: &str) -> usize {
        let journal = self.journal(run).await;
        journal.iter().filter(|record| matches!(record, Record::RunResumed { .. })).count()
    }

    /// The number of records that only say who has the run.
    async fn kept_by(&self, run: &str) -> usize {
        let journal = self.journal(run).await;
        journal.iter().filter(|record| matches!(record, Record::RunKept { .. })).count()
    }

    async fn owner(&self, run: &str) -> Option<EngineId> {
        let all = self.kept.runs(&RunQuery::new()).await.unwrap();
        all.into_iter().find(|stored| stored.id.as_str() == run).unwrap().run.owner
    }
}

impl EventStore for Shared {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        if self.silent.lock().unwrap().contains(run) {
            return StoreFuture::new(std::future::pending());
        }
        if self.fails.lock().unwrap().contains(run) {
            return StoreFuture::ready(Err(StoreError::unavailable(std::io::Error::other("no route"))));
        }
        let (store, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            yield_now().await;
            store.wait_at_gate(Call::Append, &run).await;
            store.kept.append(&run, expected, batch).await?;
            store.wait_at_gate(Call::Answer, &run).await;
            Ok(())
        })
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        let (store, run) = (self.clone(), run.clone());
        StoreFuture::new(async move {
            store.wait_at_gate(Call::Read, &run).await;
            if from == Position(0) {
                store.come_back(&run).await;
            }
            store.kept.read(&run, from, at_most).await
        })
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        let (kept, query) = (Arc::clone(&self.kept), query.clone());
        StoreFuture::new(async move {
            let listed = kept.runs(&query).await;
            yield_now().await;
            listed
        })
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.kept.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.kept.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        let (store, engine) = (self.clone(), engine.clone());
        StoreFuture::new(async move {
            yield_now().await;
            if store.refuses.lock().unwrap().as_ref() == Some(&engine) {
                return Err(StoreError::unavailable(std::io::Error::other("the network is down")));
            }
            let now = *store.now.lock().unwrap();
            Ok(store.leases.renew_at(&engine, duration, now))
        })
    }
}

/// The actions, and the engines that performed them.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self, what: &str, who: &str) {
        self.0.lock().unwrap().push(format!("{what} by {who}"));
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self, what: &str) -> usize {
        self.all().iter().filter(|seen| seen.starts_with(what)).count()
    }
}

/// Prepares, waits for a note, and finishes. One that hangs never completes its preparations.
#[derive(Clone)]
struct Works {
    who: &'static str,
    hangs: bool,
    seen: Seen,
}

#[workflow]
impl Works {
    #[step]
    async fn prepare(&self, begin: &Begin) -> Item {
        self.seen.note("prepare", self.who);
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Item(begin.0)
    }

    #[step]
    async fn finish(&self, item: &Item, note: &Note) -> Done {
        self.seen.note("finish", self.who);
        Done(item.0 + note.0)
    }
}

/// Fails at first, and retries after a minute.
#[derive(Clone)]
struct TriesAgain {
    who: &'static str,
    seen: Seen,
}

#[workflow]
impl TriesAgain {
    #[step(retry = workflow_core::RetryPolicy::standard()
        .on(workflow_core::ErrorClass::Transient, workflow_core::Retries::fixed(3, Duration::from_mins(1))))]
    async fn attempt(&self, begin: &Begin, info: &RunInfo) -> Result<Done, StepError> {
        self.seen.note(&format!("attempt {}", info.attempt()), self.who);
        if info.attempt() == 1 { Err(StepError::transient("busy")) } else { Ok(Done(begin.0)) }
    }
}

/// Waits for one child, and starts another.
struct Delegates;

#[workflow]
impl Delegates {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        children.start_with::<Works>(begin.clone(), RunOptions::new().id("alone")).await?;
        Ok(children.run::<Works>(begin.clone()).await?)
    }
}

/// Waits for one child, and takes notes.
struct Awaits;

#[workflow]
impl Awaits {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run::<Works>(begin.clone()).await
    }

    #[step]
    async fn take(&self, _note: &Note) {}
}

/// The engines of a test, and their shared state.
struct Engines {
    store: Shared,
    seen: Seen,
}

impl Engines {
    fn new() -> Self {
        Self { store: Shared::new(), seen: Seen::default() }
    }

    fn works(&self, who: &'static str) -> Works {
        Works { who, hangs: false, seen: self.seen.clone() }
    }

    /// An engine without leases.
    fn builder(&self, works: Works) -> EngineBuilder {
        let tries = TriesAgain { who: works.who, seen: self.seen.clone() };
        let engine = Engine::builder().workflow(works).workflow(tries).workflow(Delegates).workflow(Awaits);
        engine.store(self.store.clone())
    }

    /// An engine with leases, on a runtime with paused time.
    fn engine(&self, who: &'static str) -> Engine {
        self.builder(self.works(who)).lease(LEASE).clock(VirtualClock::new()).build().unwrap()
    }

    /// The engine of a process that is killed after this work. The engine still exists, so that it gives nothing up.
    fn killed<F: Future<Output = ()>>(&self, works: Works, work: impl FnOnce(Engine) -> F) -> Engine {
        let runtime = runtime();
        let engine = runtime.block_on(async {
            let engine = self.builder(works).lease(LEASE).clock(VirtualClock::new()).build().unwrap();
            work(engine.clone()).await;
            engine
        });
        drop(runtime);
        engine
    }
}

async fn start<W: Workflow>(engine: &Engine, run: &str) -> RunHandle<W> {
    engine.start_with::<W>(Begin(1), RunOptions::new().id(run)).await.unwrap()
}

/// Long enough for several renewals.
async fn a_while() {
    sleep(2 * LEASE).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_with_the_first_run_and_given_up_with_the_engine() {
    let engines = Engines::new();
    let store = &engines.store;
    for shuts_down in [true, false] {
        let engine = engines.engine("one");
        let id = engine.id().clone();
        assert!(!store.holds(&id).await);
        let run = start::<Works>(&engine, &format!("r-{shuts_down}")).await;
        run.settled().await;
        assert!(store.holds(&id).await);
        assert_eq!(store.owner(run.id().as_str()).await.as_ref(), Some(&id));
        if shuts_down {
            engine.cancel_all("the engine is shutting down", Duration::ZERO).await;
            a_while().await;
        } else {
            run.send(Note(1)).await.unwrap();
            assert_eq!(run.outcome().await.unwrap(), Done(2));
            drop(engine);
            // A run's task holds its engine until it has reported its end.
            sleep(Duration::from_secs(1)).await;
        }
        assert!(!store.holds(&id).await, "shut down: {shuts_down}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_taken_lets_nothing_begin() {
    let engines = Engines::new();
    let engine = engines.engine("one");
    engines.store.refuse(Some(&engine));
    let error = engine.start::<Works>(Begin(1)).await.unwrap_err();
    assert!(matches!(error, StartError::Store(StoreError::Unavailable { .. })), "{error}");
    assert!(matches!(engine.resume_open_runs().await, Err(StoreError::Unavailable { .. })));
    assert!(engines.store.kept.runs(&RunQuery::new()).await.unwrap().is_empty());
    engines.store.refuse(None);
    start::<Works>(&engine, "r").await.settled().await;
    assert_eq!(engines.seen.all(), ["prepare by one"]);
}

// S40
#[tokio::test(start_paused = true)]
async fn a_run_whose_lease_is_refused_ends_for_those_who_found_it() {
    let engines = Engines::new();
    let inbox = Arc::new(MemoryInbox::default());
    let builder = engines.builder(engines.works("one")).inbox(Arc::clone(&inbox)).lease(LEASE);
    let engine = builder.clock(VirtualClock::new()).build().unwrap();
    engines.store.refuse(Some(&engine));
    let mut starts = pin!(engine.start_with::<Works>(Begin(1), RunOptions::new().id("r")));
    assert!(futures::poll!(starts.as_mut()).is_pending());
    let found = engine.find(&"r".into()).unwrap();
    let sends = found.clone();
    let sends = tokio::spawn(async move { sends.send(Note(1)).await });
    let message = RunMessage::Send { event: "Note".into(), data: json!(2) };
    inbox.put("r", "m", message).unwrap();
    engine.notify_inbox(&"r".into());
    yield_now().await;
    assert!(matches!(starts.await, Err(StartError::Store(StoreError::Unavailable { .. }))));
    assert!(matches!(found.outcome_any().await, Err(RunError::Store { .. })));
    assert!(matches!(sends.await.unwrap(), Err(SendError::Stopped { .. })));
    a_while().await;
    // Nothing of the refused run is left: the message is for the next one.
    engines.store.refuse(None);
    let run = start::<Works>(&engine, "r").await;
    engine.notify_inbox(run.id());
    assert_eq!(run.outcome().await.unwrap(), Done(3));
}

#[test]
fn a_lease_needs_a_store_and_a_second() {
    let error = Engine::builder().lease(Duration::from_millis(999)).build().unwrap_err();
    assert!(matches!(
        error.problems[..],
        [BuildProblem::LeaseWithoutStore, BuildProblem::LeaseTooShort { .. }]
    ));
    Engine::builder().store(MemoryStore::default()).lease(Duration::from_secs(1)).build().unwrap();
}

// S40
#[tokio::test(start_paused = true)]
async fn runs_of_a_live_engine_are_not_claimed_however_long_they_wait() {
    let engines = Engines::new();
    let (one, other) = (engines.engine("one"), engines.engine("other"));
    let run = start::<Works>(&one, "r").await;
    run.settled().await;
    let resumed = other.resume_open_runs().await.unwrap();
    assert_eq!((resumed.runs, resumed.elsewhere), (vec![], vec![run.id().clone()]));
    let error = other.attach::<Works>("r").await.unwrap_err();
    assert!(matches!(&error, ResumeError::Elsewhere { engine, .. } if engine == one.id()), "{error}");
    for _ in 0..100 {
        engines.store.pass(LEASE / 2);
        sleep(LEASE / 2).await;
    }
    assert!(other.running().is_empty());
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
    assert_eq!(engines.seen.all(), ["prepare by one", "finish by one"]);
    let ended = other.attach::<Works>("r").await.unwrap();
    assert_eq!(ended.outcome().await.unwrap(), Done(2), "one that has ended can be looked back at");
}

#[tokio::test(start_paused = true)]
async fn runs_of_engines_without_leases_are_no_orphans() {
    let engines = Engines::new();
    let dead = left_behind(&engines);
    let engine = engines.engine("one");
    start::<Works>(&engine, "own").await.settled().await;
    a_while().await;
    assert_eq!(engine.running(), ["own".into()]);
    assert_eq!(engine.resume_open_runs().await.unwrap().runs, ["old".into()]);
    assert_eq!(engine.attach::<Works>("old").await.unwrap().settled().await, RunStatus::Waiting);
    drop(dead);
}

/// An engine without leases whose process is gone, with a run left behind.
fn left_behind(engines: &Engines) -> Engine {
    let engine = engines.builder(engines.works("old")).build().unwrap();
    let begun = engine.clone();
    std::thread::spawn(move || {
        runtime().block_on(async { start::<Works>(&begun, "old").await.settled().await });
    })
    .join()
    .unwrap();
    engine
}
