//! A delay of one unloaded or unloading run does not delay others.

use std::pin::pin;
use std::sync::atomic::AtomicBool;

use workflow_testkit::CrashStore;

use super::*;

/// A store that never answers reads of this run.
#[derive(Debug, Clone)]
struct Hangs(Arc<MemoryStore>, RunId);

impl EventStore for Hangs {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        self.0.append(run, expected, batch)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        if *run == self.1 {
            return StoreFuture::new(std::future::pending());
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

// S36
#[tokio::test(start_paused = true)]
async fn timers_come_although_the_store_does_not_answer_for_another_run() {
    const RUNS: usize = 400;
    let (engine, told) = forgetful(Hangs(Arc::default(), "hangs".into()));
    let engine = engine.clock(VirtualClock::new()).build().unwrap();
    for id in (0..RUNS).map(|n| n.to_string()).chain(["hangs".into()]) {
        drop(engine.start_with::<Waits>(Begin(3), RunOptions::new().id(id)).await.unwrap());
    }
    told.are_away(RUNS + 1).await;
    tokio::time::sleep(Duration::from_secs(45)).await;
    // Each has two timers.
    assert_eq!(told.loaded(), 2 * RUNS);
}

#[tokio::test]
async fn a_run_serves_its_handles_while_a_lookup_hangs_in_the_store() {
    let (engine, _) = forgetful(Hangs(Arc::default(), "hangs".into()));
    let engine = engine.build().unwrap();
    let mut looks = pin!(engine.attach::<Asks>("hangs"));
    assert!(futures::poll!(looks.as_mut()).is_pending());
    let run = start(&engine, "hangs").await;
    run.settled().await;
    let replied = async {
        // It would be unloaded.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        reply(&run, 7).await.unwrap();
        run.outcome().await.unwrap()
    };
    assert_eq!(timeout(Duration::from_mins(1), replied).await.expect("the run continues"), Done(0));
}

// S40
#[tokio::test(start_paused = true)]
async fn runs_are_detached_although_the_store_does_not_answer_for_one_being_loaded() {
    let store = Arc::new(MemoryStore::default());
    let (engine, told) = forgetful(Hangs(Arc::clone(&store), "hangs".into()));
    let engine = engine.clock(VirtualClock::new()).build().unwrap();
    let start = |id| engine.start_with::<Waits>(Begin(3), RunOptions::new().id(id));
    let (hangs, other) = (start("hangs").await.unwrap(), start("other").await.unwrap());
    told.are_away(2).await;
    tokio::time::sleep(Duration::from_secs(45)).await;
    let handed_over = timeout(Duration::from_hours(1), engine.shut_down(Duration::from_secs(5)));
    handed_over.await.expect("it does not wait for longer than that");
    assert!(engine.running().is_empty());
    for run in [hangs, other] {
        assert!(matches!(run.outcome().await, Err(RunError::Detached)));
        assert!(!has_ended(&store.read(run.id(), Position(0), usize::MAX).await.unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unpolled_caller_delays_no_other_caller() {
    let (engine, told) = forgetful(MemoryStore::default());
    let engine = engine.mailbox_capacity(1).unload_waiting_after(Duration::from_secs(1));
    let engine = engine.clock(VirtualClock::new()).build().unwrap();
    let run = start(&engine, "r").await;
    run.settled().await;
    {
        let (mut first, mut second) = (pin!(run.requests()), pin!(run.timers()));
        assert!(futures::poll!(first.as_mut()).is_pending());
        // There is one permit: this future has its turn next, and does not take it.
        assert!(futures::poll!(second.as_mut()).is_pending());
        assert_eq!(first.await.unwrap().len(), 1);
        tokio::time::sleep(Duration::from_secs(9)).await;
        let found = timeout(Duration::from_mins(1), engine.attach::<Asks>("r")).await;
        found.expect("no caller is delayed").unwrap();
        assert_eq!(told.released(), 0, "a caller is about to ask");
        assert!(second.await.unwrap().is_empty());
    }
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(told.released(), 1);
    reply(&run, 7).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
}

/// Whether the next `Fragile` that is dropped panics.
static PANICS: AtomicBool = AtomicBool::new(false);

/// Panics in its drop.
#[derive(Debug, Serialize, Deserialize, Event)]
struct Fragile(u32);

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!PANICS.swap(false, Ordering::SeqCst), "on purpose");
    }
}

/// Waits with an event that panics when the run is unloaded.
struct Breaks;

#[workflow]
impl Breaks {
    #[step]
    async fn make(&self, begin: &Begin) -> Fragile {
        Fragile(begin.0)
    }

    #[step]
    async fn end(&self, fragile: &Fragile, note: &Note) -> Done {
        Done(fragile.0 + note.0)
    }
}

// S27, S42
#[tokio::test]
async fn a_run_whose_event_panics_in_its_drop_is_reloaded() {
    let told = Told::default();
    // The store keeps bytes, so the run has the only reference to its event.
    let engine = Engine::builder().workflow(Breaks).store(CrashStore::default()).observer(told.clone());
    let engine = engine.unload_waiting_after(Duration::ZERO).build().unwrap();
    PANICS.store(true, Ordering::SeqCst);
    let run = engine.start::<Breaks>(Begin(1)).await.unwrap();
    told.are_away(1).await;
    let dropped = async {
        while PANICS.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_mins(1), dropped).await.expect("the run's events are dropped");
    let sent = timeout(Duration::from_mins(1), run.send(Note(2))).await;
    sent.expect("its handles are answered").unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(3));
}
