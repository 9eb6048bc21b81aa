//! An engine that has shut down, or detached its runs, holds nothing more, even with a store that never answers; and a
//! panicking store harms only the run that called it (S31, S38).

use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::maybe_done;
use tokio::time::timeout;
use workflow_core::prelude::*;
use workflow_core::store::{
    ContextStore, EngineId, EventStore, MemoryContexts, MemoryStore, Position, Record, Retention, RunQuery,
    StoreError, StoreFuture, StoredRun, Write,
};
use workflow_core::{ResumeError, RunHandle, RunId, RunOptions, RunStatus, SendError, StartError};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note};
use crate::shapes::{Asks, Waits};

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Mood {
    /// The store answers after other tasks' turns.
    Answers,
    /// It is never answered.
    Hangs,
    /// It panics.
    Panics,
    /// Its future panics.
    PanicsLater,
}

/// A store that misbehaves on the test's command.
#[derive(Debug, Default)]
struct Moody {
    kept: MemoryStore,
    mood: AtomicU8,
}

impl Moody {
    fn set(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
    }

    fn answer<T: Send + Unpin + 'static>(&self, answer: impl FnOnce() -> StoreFuture<T>) -> StoreFuture<T> {
        match self.mood.load(Ordering::SeqCst) {
            0 => {
                let answer = answer();
                StoreFuture::new(async {
                    tokio::task::yield_now().await;
                    answer.await
                })
            }
            1 => StoreFuture::new(std::future::pending()),
            2 => panic!("on purpose"),
            _ => StoreFuture::new(async { panic!("on purpose") }),
        }
    }
}

impl EventStore for Moody {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        self.answer(|| self.kept.append(run, expected, batch))
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        self.answer(|| self.kept.read(run, from, at_most))
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        self.answer(|| self.kept.runs(query))
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.answer(|| self.kept.remove(run))
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.answer(|| self.kept.retain(kept))
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.answer(|| self.kept.lease(engine, duration))
    }

    fn contexts(&self) -> Option<Arc<dyn ContextStore>> {
        self.kept.contexts()
    }
}

/// Works until a note arrives, and optionally longer.
struct Works;

#[workflow]
impl Works {
    #[step]
    async fn work(&self, begin: &Begin, run: &RunContext, thread: &ThreadContext) -> Result<Item, StepError> {
        run.set("began", true).await?;
        thread.set("began", true).await?;
        if begin.0 > 0 {
            std::future::pending::<()>().await;
        }
        Ok(Item(0))
    }

    #[step]
    async fn end(&self, _item: &Item, note: &Note) -> Done {
        Done(note.0)
    }
}

/// Runs one child that works, and starts another.
struct Delegates;

#[workflow]
impl Delegates {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, StepError> {
        children.start::<Works>(Begin(0)).await?;
        Ok(children.run::<Works>(begin.clone()).await?)
    }
}

fn builder(store: &Arc<Moody>) -> workflow_core::EngineBuilder {
    let engine = Engine::builder().workflow(Works).workflow(Delegates).workflow(Asks).workflow(Waits);
    engine.store(Arc::clone(store)).unload_waiting_after(Duration::ZERO)
}

async fn start<W: Workflow>(engine: &Engine, id: &str, number: u32) -> RunHandle<W> {
    engine.start_with::<W>(Begin(number), RunOptions::new().id(id)).await.unwrap()
}

async fn end(engine: &Engine, hands_over: bool, at_most: Duration) {
    if hands_over {
        engine.shut_down(at_most).await;
    } else {
        engine.cancel_all("the engine is shutting down", at_most).await;
    }
}

/// Ends an engine with runs of every kind, while some of them begin, end, unload and reload. Returns the remaining
/// references to its store and contexts.
async fn ends(round: usize) {
    let (store, contexts) = (Arc::<Moody>::default(), Arc::<MemoryContexts>::default());
    let gone: (Weak<Moody>, Weak<MemoryContexts>) = (Arc::downgrade(&store), Arc::downgrade(&contexts));
    let engine = builder(&store).contexts(contexts).lease(Duration::from_secs(30));
    let engine = engine.max_concurrent_runs_of::<Works>(2).build().unwrap();
    drop(store);
    let works = [start::<Works>(&engine, "works", 1).await, start::<Works>(&engine, "ends", 0).await];
    let parent = start::<Delegates>(&engine, "parent", 1).await;
    let asks = start::<Asks>(&engine, "asks", 2).await;
    let timed = start::<Waits>(&engine, "waits", 3).await;
    let mut queued = Box::pin(maybe_done(engine.start::<Works>(Begin(0))));
    let mut queued_too = Box::pin(maybe_done(engine.start::<Works>(Begin(1))));
    let (_, _) = (futures::poll!(&mut queued), futures::poll!(&mut queued_too));
    for _ in 0..round % 40 {
        tokio::task::yield_now().await;
    }
    // The run is about to end, or to be reloaded.
    let mut sent = Box::pin(maybe_done(works[1].send(Note(1))));
    let mut asked = Box::pin(maybe_done(asks.requests()));
    let (_, _) = (futures::poll!(&mut sent), futures::poll!(&mut asked));
    for _ in 0..round % 3 {
        tokio::task::yield_now().await;
    }
    // No call waits that long. The task that loads a run is polled: it has the run's lock. One run works for ever, so
    // those of a store are detached at once.
    let hands_over = round.is_multiple_of(2);
    let ended = end(&engine, hands_over, if hands_over { Duration::ZERO } else { Duration::MAX });
    let ((), (), ()) = futures::join!(ended, &mut sent, &mut asked);
    for status in [works[0].status(), works[1].status(), parent.status(), asks.status(), timed.status()] {
        assert!(status.is_ended(), "round {round}: {status}");
    }
    for mut queued in [queued, queued_too] {
        queued.as_mut().await;
        let queued = queued.as_mut().take_output().unwrap();
        assert!(queued.is_err() || queued.is_ok_and(|run| run.status().is_ended()));
    }
    drop((sent, asked));
    drop(engine);
    let left = (gone.0.upgrade().is_some(), gone.1.upgrade().is_some());
    assert_eq!(left, (false, false), "round {round}: the store, the contexts");
    // Drops the handles, which have lived until here.
    drop((works, parent, asks, timed));
}

// S31
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_engine_holds_no_store_and_all_its_handles_report_an_end() {
    for round in 0..500 {
        ends(round).await;
    }
}

/// An engine whose store stops answering while runs wait for it in every way. Returns how all waiting calls ended.
async fn hangs(hands_over: bool) {
    let store = Arc::<Moody>::default();
    let engine = builder(&store).clock(VirtualClock::new()).max_concurrent_runs_of::<Works>(2);
    let engine = engine.lease(Duration::from_secs(30)).build().unwrap();
    let works = start::<Works>(&engine, "works", 1).await;
    let waits = start::<Works>(&engine, "waits", 0).await;
    let released = start::<Asks>(&engine, "released", 1).await;
    let parent = start::<Delegates>(&engine, "parent", 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(released.status(), RunStatus::Waiting);
    // One of the two permits is free: the waiter for the second is not polled.
    let blocks = start::<Works>(&engine, "blocks", 1).await;
    let mut queued = pin!(engine.start::<Works>(Begin(0)));
    assert!(futures::poll!(queued.as_mut()).is_pending());

    store.set(Mood::Hangs);
    let starts = |id: &'static str| engine.start_with::<Asks>(Begin(1), RunOptions::new().id(id));
    let (mut starts, mut forgotten) = (pin!(starts("starts")), pin!(starts("forgotten")));
    let (mut sends, mut replies) = (pin!(waits.send(Note(1))), pin!(released.requests()));
    let (mut attaches, mut same) = (pin!(engine.attach::<Works>("old")), pin!(engine.attach::<Works>("old")));
    let mut resumes = pin!(engine.resume_open_runs());
    let gone = RunId::new("gone");
    let (mut removes, kept) = (pin!(engine.remove_run(&gone)), Retention::none());
    let mut retains = pin!(engine.retain(&kept));
    let mut cancels = pin!(released.cancel("enough"));
    assert!(futures::poll!(forgotten.as_mut()).is_pending() && futures::poll!(same.as_mut()).is_pending());
    let all = async {
        let ended = timeout(Duration::from_secs(10), end(&engine, hands_over, Duration::from_secs(1)));
        let (ended, starts, sends, replies, attaches, resumes, removes, retains, cancels) = futures::join!(
            ended,
            starts.as_mut(),
            sends.as_mut(),
            replies.as_mut(),
            attaches.as_mut(),
            resumes.as_mut(),
            removes.as_mut(),
            retains.as_mut(),
            cancels.as_mut()
        );
        ended.expect("it does not wait for the store");
        assert!(
            matches!(starts, Err(StartError::Store(StoreError::ShutDown) | StartError::ShutDown)),
            "{starts:?}"
        );
        assert!(matches!(sends, Err(SendError::Stopped { .. } | SendError::NotLoaded { .. })), "{sends:?}");
        assert!(
            matches!(replies, Err(SendError::Stopped { .. } | SendError::NotLoaded { .. })),
            "{replies:?}"
        );
        assert!(matches!(attaches, Err(ResumeError::Store(StoreError::ShutDown))), "{attaches:?}");
        assert!(matches!(resumes, Err(StoreError::ShutDown)), "{resumes:?}");
        assert!(matches!(removes, Err(StoreError::ShutDown)), "{removes:?}");
        assert!(matches!(retains, Err(StoreError::ShutDown)), "{retains:?}");
        assert!(
            matches!(cancels, Err(SendError::Stopped { .. } | SendError::NotLoaded { .. })),
            "{cancels:?}"
        );
    };
    timeout(Duration::from_hours(1), all).await.expect("every call ends");
    for status in [works.status(), waits.status(), released.status(), parent.status(), blocks.status()] {
        assert!(status.is_ended(), "{status}");
    }
    let late = timeout(Duration::from_hours(1), futures::future::join3(queued, forgotten, same)).await;
    let (queued, forgotten, same) = late.expect("an unpolled caller gets its answer too");
    assert!(matches!(queued, Err(StartError::ShutDown)), "{queued:?}");
    assert!(
        matches!(forgotten, Err(StartError::Store(StoreError::ShutDown) | StartError::ShutDown)),
        "{forgotten:?}"
    );
    assert!(matches!(same, Err(ResumeError::Store(StoreError::ShutDown))), "{same:?}");
    assert!(engine.running().is_empty(), "{:?}", engine.running());
}

// S31
#[tokio::test(start_paused = true)]
async fn an_engine_shuts_down_in_time_although_its_store_never_answers() {
    hangs(false).await;
}

// S39
#[tokio::test(start_paused = true)]
async fn an_engine_hands_over_in_time_although_its_store_never_answers() {
    hangs(true).await;
}

// S38
#[tokio::test]
async fn a_panic_in_a_store_is_an_error_of_its_caller() {
    for mood in [Mood::Panics, Mood::PanicsLater] {
        let store = Arc::<Moody>::default();
        let engine = builder(&store).build().unwrap();
        let (lost, kept) =
            (start::<Works>(&engine, "lost", 0).await, start::<Works>(&engine, "kept", 0).await);
        let released = start::<Asks>(&engine, "released", 1).await;
        crate::fixtures::until(async || kept.status() == RunStatus::Waiting).await;
        crate::fixtures::until(async || released.status() == RunStatus::Waiting).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        store.set(mood);
        let asked = async {
            assert!(matches!(
                start_again(&engine).await,
                Err(StartError::Store(StoreError::Unavailable { .. }))
            ));
            assert!(lost.send(Note(1)).await.is_err());
            assert!(matches!(released.requests().await, Err(SendError::NotLoaded { .. })));
            let attached = engine.attach::<Works>("old").await;
            assert!(matches!(attached, Err(ResumeError::Store(StoreError::Unavailable { .. }))));
            assert!(engine.resume_open_runs().await.is_err() && engine.runs(&RunQuery::new()).await.is_err());
            assert!(engine.retain(&Retention::none()).await.is_err());
            assert!(engine.remove_run(&"old".into()).await.is_err());
            assert!(engine.history(&"old".into()).await.is_err());
        };
        timeout(Duration::from_mins(1), asked).await.expect("every call ends");
        store.set(Mood::Answers);
        kept.send(Note(7)).await.unwrap();
        assert_eq!(kept.outcome().await.unwrap(), Done(7));
        assert!(!released.requests().await.unwrap().is_empty());
        start_again(&engine).await.unwrap();
        assert!(
            engine.cancel_all("the engine is shutting down", Duration::from_secs(5)).now_or_never().is_none()
        );
    }
}

async fn start_again(engine: &Engine) -> Result<RunHandle<Asks>, StartError> {
    engine.start_with::<Asks>(Begin(1), RunOptions::new().id("again")).await
}
