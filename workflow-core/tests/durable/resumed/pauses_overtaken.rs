//! What a pause that drops its executions leaves for a moment: children that still detach, and attempts that still run
//! (S61).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_core::prelude::*;
use workflow_core::store::{EventStore as _, MemoryStore, RunQuery};
use workflow_core::{Engine, Pause, RunError, RunHandle, RunOptions, RunStatus, StartError};

use super::held::Held;
use crate::fixtures::{Begin, Done, Item, Note, Part, Waits, until};

struct Parent;

#[workflow]
impl Parent {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run_with::<Waits>(Begin(begin.0), RunOptions::new().id("c")).await
    }
}

const CHILD: &str = "r/delegate-x1.c";

fn engine(store: &Held) -> Engine {
    Engine::builder()
        .store(store.clone())
        .workflow(Waits)
        .workflow(Parent)
        .unload_waiting_after(Duration::from_hours(1))
        .build()
        .unwrap()
}

async fn yields(times: usize) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

async fn parent(engine: &Engine) -> RunHandle<Parent> {
    let run = engine.start_with::<Parent>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    until(async || engine.find(&CHILD.into()).is_some_and(|run| run.status() == RunStatus::Waiting)).await;
    run
}

async fn open(store: &Held) -> Vec<String> {
    let open = store.kept.runs(&RunQuery::new().open()).await.unwrap();
    open.iter().map(|run| run.id.to_string()).collect()
}

/// Unpaused while its child is still being detached.
// S61
#[tokio::test]
async fn an_execution_waits_for_its_child_that_still_detaches() {
    let store = Held::default();
    let engine = engine(&store);
    let run = parent(&engine).await;
    // The child has something to write as it detaches.
    store.hold(CHILD);
    let child = engine.attach::<Waits>(CHILD).await.unwrap();
    let sends = tokio::spawn(async move { child.send(Note(1)).await });
    yields(100).await;
    run.pause(Pause::Now).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
    run.unpause().await.unwrap();
    yields(200).await;
    store.release();
    let sent = sends.await.unwrap();
    sent.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}

/// Cancelled while its child is still being detached.
// S61
#[tokio::test]
async fn a_cancel_ends_a_child_that_still_detaches() {
    let store = Held::default();
    let engine = engine(&store);
    let run = parent(&engine).await;
    store.hold(CHILD);
    let child = engine.attach::<Waits>(CHILD).await.unwrap();
    let sends = tokio::spawn(async move { child.send(Note(1)).await });
    yields(100).await;
    run.pause(Pause::Now).await.unwrap();
    let cancels = tokio::spawn({
        let run = run.clone();
        async move {
            let _ = run.cancel("over").await;
            run.outcome().await
        }
    });
    yields(200).await;
    store.release();
    sends.await.unwrap().unwrap();
    assert!(matches!(cancels.await.unwrap(), Err(RunError::Cancelled { .. })));
    yields(200).await;
    assert_eq!(open(&store).await, Vec::<String>::new(), "every child ends before its cancelled parent");
}

#[derive(Default)]
struct Unloads(Mutex<usize>);

struct UnloadsOf(Arc<Unloads>);

impl workflow_core::observe::Observer for UnloadsOf {
    fn observe(&self, observation: &workflow_core::observe::Observation) {
        if matches!(observation.what, workflow_core::observe::Observed::RunUnloaded) {
            *self.0.0.lock().unwrap() += 1;
        }
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

/// The parent is unloaded and forgotten while its child is still being detached.
// S61
#[tokio::test]
async fn a_run_is_not_unloaded_before_its_detached_child_is_gone() {
    let store = Held::default();
    let unloads = Arc::new(Unloads::default());
    let engine = Engine::builder()
        .store(store.clone())
        .workflow(Waits)
        .workflow(Parent)
        .observer(UnloadsOf(Arc::clone(&unloads)))
        .build()
        .unwrap();
    let run = parent(&engine).await;
    store.hold(CHILD);
    let child = engine.attach::<Waits>(CHILD).await.unwrap();
    let sends = tokio::spawn(async move { child.send(Note(1)).await });
    yields(100).await;
    run.pause(Pause::Now).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
    drop(run);
    yields(200).await;
    assert_eq!(*unloads.0.lock().unwrap(), 0, "a child runs here");
    let run = engine.attach::<Parent>("r").await.unwrap();
    run.unpause().await.unwrap();
    yields(200).await;
    store.release();
    sends.await.unwrap().unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}

/// Works on a thread of its own, and blocks that.
struct Blocks(Arc<Mutex<std::sync::mpsc::Receiver<()>>>, Arc<std::sync::atomic::AtomicBool>);

#[workflow]
impl Blocks {
    #[step(spawn)]
    async fn work(&self, begin: &Begin) -> Done {
        self.1.store(true, std::sync::atomic::Ordering::SeqCst);
        let _ = self.0.lock().unwrap().recv();
        Done(begin.0)
    }

    #[step]
    async fn note(&self, note: &Note) -> Option<Done> {
        let _ = note;
        None
    }
}

/// What enters a run while a dropped step still blocks its thread.
// S61
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn messages_enter_a_run_while_a_dropped_attempt_still_runs() {
    for pauses in [false, true] {
        let (frees, waits) = std::sync::mpsc::channel();
        let began = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let blocks = Blocks(Arc::new(Mutex::new(waits)), Arc::clone(&began));
        let engine = Engine::builder().store(Held::default()).workflow(blocks).build().unwrap();
        let run = engine.start_with::<Blocks>(Begin(1), RunOptions::new().id("b")).await.unwrap();
        until(async || began.load(std::sync::atomic::Ordering::SeqCst)).await;
        if pauses {
            run.pause(Pause::Now).await.unwrap();
        }
        // Each answers while the step has its thread.
        run.send(Note(1)).await.unwrap();
        run.report_so_far().await.unwrap();
        run.cancel("over").await.unwrap();
        frees.send(()).unwrap();
        drop(frees);
    }
}

/// `alpha` is dropped first; `beta` asks for a child meanwhile, on another thread.
struct Races {
    /// `alpha` is dropped, the child was asked for, both may end, `beta` has begun.
    flags: Arc<[std::sync::atomic::AtomicBool; 4]>,
}

#[workflow]
impl Races {
    #[step]
    async fn alpha(&self, begin: &Begin) -> crate::fixtures::Part {
        std::future::poll_fn(|_| {
            if self.flags[2].load(std::sync::atomic::Ordering::SeqCst) {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
        crate::fixtures::Part(begin.0)
    }

    #[step(spawn)]
    async fn beta(&self, begin: &Begin, children: &Children) -> Result<crate::fixtures::Item, RunError> {
        self.flags[3].store(true, std::sync::atomic::Ordering::SeqCst);
        while !self.flags[0].load(std::sync::atomic::Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let mut child = children.run_with::<Child>(Begin(begin.0), RunOptions::new().id("c"));
        let first = futures::poll!(&mut child);
        self.flags[1].store(true, std::sync::atomic::Ordering::SeqCst);
        let Done(done) = match first {
            std::task::Poll::Ready(done) => done?,
            std::task::Poll::Pending => child.await?,
        };
        Ok(crate::fixtures::Item(done))
    }

    #[step]
    async fn end(&self, part: &crate::fixtures::Part, item: &crate::fixtures::Item) -> Done {
        Done(part.0 + item.0)
    }
}

struct Child(Arc<[std::sync::atomic::AtomicBool; 4]>);

#[workflow]
impl Child {
    #[step]
    async fn work(&self, begin: &Begin) -> Done {
        while !self.0[2].load(std::sync::atomic::Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        Done(begin.0)
    }
}

struct Delays(Arc<[std::sync::atomic::AtomicBool; 4]>);

impl workflow_core::observe::Observer for Delays {
    fn observe(&self, observation: &workflow_core::observe::Observation) {
        use std::sync::atomic::Ordering::SeqCst;
        use workflow_core::observe::Observed;
        if matches!(&observation.what, Observed::ExecutionDropped { step, .. } if &**step == "alpha") {
            self.0[0].store(true, SeqCst);
            while !self.0[1].load(SeqCst) {
                std::thread::yield_now();
            }
        }
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

// S61
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_child_that_a_dropped_execution_asks_for_is_detached() {
    use std::sync::atomic::Ordering::SeqCst;
    let flags: Arc<[std::sync::atomic::AtomicBool; 4]> = Arc::default();
    let store = Held::default();
    let engine = Engine::builder()
        .store(store.clone())
        .workflow(Races { flags: Arc::clone(&flags) })
        .workflow(Child(Arc::clone(&flags)))
        .observer(Delays(Arc::clone(&flags)))
        .build()
        .unwrap();
    let run = engine.start_with::<Races>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    until(async || flags[3].load(SeqCst)).await;
    run.pause(Pause::Now).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
    flags[2].store(true, SeqCst);
    run.unpause().await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}

/// A paused run that is unloaded is refused to a redrive as what it is.
// S61
#[tokio::test(start_paused = true)]
async fn a_paused_run_that_is_unloaded_is_refused_to_a_redrive_as_paused() {
    let store = Held::default();
    let unloads = Arc::new(Unloads::default());
    let engine = Engine::builder()
        .store(store.clone())
        .clock(workflow_testkit::VirtualClock::new())
        .workflow(Waits)
        .observer(UnloadsOf(Arc::clone(&unloads)))
        .build()
        .unwrap();
    let run = engine.start_with::<Waits>(Begin(1), RunOptions::new().id("w")).await.unwrap();
    run.pause(Pause::Now).await.unwrap();
    until(async || *unloads.0.lock().unwrap() == 1).await;
    let error = engine.redrive::<Waits>("w").await.err().unwrap();
    assert_eq!(error.to_string(), "run `w` is paused: only a run that has ended can be redriven");
}

/// Counts the attempts that work at once. Each blocks its thread until it is freed.
struct Overlaps(Arc<Mutex<(u32, u32)>>, Arc<std::sync::atomic::AtomicBool>);

#[workflow]
impl Overlaps {
    #[step(spawn)]
    async fn work(&self, begin: &Begin) -> Done {
        {
            let mut counts = self.0.lock().unwrap();
            counts.0 += 1;
            counts.1 = counts.1.max(counts.0);
        }
        while !self.1.load(std::sync::atomic::Ordering::SeqCst) {
            std::thread::yield_now();
        }
        self.0.lock().unwrap().0 -= 1;
        Done(begin.0)
    }
}

/// A dropped attempt still runs when the same execution begins again.
// S61
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attempt_begins_once_the_dropped_one_is_gone() {
    let (counts, free) =
        (Arc::<Mutex<(u32, u32)>>::default(), Arc::<std::sync::atomic::AtomicBool>::default());
    let overlaps = Overlaps(Arc::clone(&counts), Arc::clone(&free));
    let engine = Engine::builder().store(Held::default()).workflow(overlaps).build().unwrap();
    let run = engine.start_with::<Overlaps>(Begin(1), RunOptions::new().id("b")).await.unwrap();
    until(async || counts.lock().unwrap().0 == 1).await;
    run.pause(Pause::Now).await.unwrap();
    let unpauses = tokio::spawn({
        let run = run.clone();
        async move { run.unpause().await }
    });
    // A question passes the unpause, which waits for the attempt.
    run.report_so_far().await.unwrap();
    assert_eq!((counts.lock().unwrap().1, run.status()), (1, RunStatus::Running));
    free.store(true, std::sync::atomic::Ordering::SeqCst);
    unpauses.await.unwrap().unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    let most = counts.lock().unwrap().1;
    assert_eq!(most, 1, "attempts of one execution at once");
}

/// Starts an independent child, and waits for its output.
struct Starts;

#[workflow]
impl Starts {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let child = children.start_with::<Waits>(Begin(begin.0), RunOptions::new().id("c")).await?;
        child.outcome().await
    }
}

/// The independent child is still there when its execution begins again.
// S61
#[tokio::test]
async fn an_execution_that_begins_again_finds_its_independent_child() {
    let engine = Engine::builder().store(Held::default()).workflow(Waits).workflow(Starts).build().unwrap();
    let run = engine.start_with::<Starts>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    until(async || engine.find(&CHILD.into()).is_some_and(|run| run.status() == RunStatus::Waiting)).await;
    for _ in 0..2 {
        run.pause(Pause::Now).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Paused);
        run.unpause().await.unwrap();
        yields(100).await;
        assert_eq!(run.status(), RunStatus::Running);
    }
    engine.attach::<Waits>(CHILD).await.unwrap().send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}

/// Asks twice for the same independent child.
struct AsksTwice;

#[workflow]
impl AsksTwice {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let start = || children.start_with::<Waits>(Begin(begin.0), RunOptions::new().id("c"));
        let child = start().await?;
        assert!(matches!(start().await, Err(StartError::DuplicateRun { .. })));
        child.outcome().await
    }
}

// S61
#[tokio::test]
async fn an_attempt_after_a_pause_asks_once_for_a_child_too() {
    let engine = Engine::builder().store(Held::default()).workflow(Waits).workflow(AsksTwice);
    let engine = engine.build().unwrap();
    let run = engine.start_with::<AsksTwice>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    for _ in 0..2 {
        until(async || engine.find(&CHILD.into()).is_some_and(|run| run.status() == RunStatus::Waiting))
            .await;
        yields(100).await;
        run.pause(Pause::Now).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Paused);
        run.unpause().await.unwrap();
        yields(100).await;
        assert_eq!(run.status(), RunStatus::Running);
    }
    engine.attach::<Waits>(CHILD).await.unwrap().send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}

/// Runs a child.
struct Above;

#[workflow]
impl Above {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        children.run_with::<Overlaps>(Begin(begin.0), RunOptions::new().id("c")).await
    }
}

/// Frees the steps that block their threads, also if the test fails.
struct Frees(Arc<std::sync::atomic::AtomicBool>);

impl Drop for Frees {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

/// The dropped attempt of a detached child still runs.
// S39, S61
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_detached_run_is_gone_once_its_attempts_are() {
    let (counts, free) =
        (Arc::<Mutex<(u32, u32)>>::default(), Arc::<std::sync::atomic::AtomicBool>::default());
    let frees = Frees(Arc::clone(&free));
    let overlaps = Overlaps(Arc::clone(&counts), free);
    let engine = Engine::builder().store(Held::default()).workflow(overlaps).workflow(Above).build().unwrap();
    let run = engine.start_with::<Above>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    until(async || counts.lock().unwrap().0 == 1).await;
    let child = engine.find(&CHILD.into()).unwrap();
    run.pause(Pause::Now).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
    run.unpause().await.unwrap();
    let gone = tokio::spawn({
        let counts = Arc::clone(&counts);
        async move { (child.outcome_any().await.is_err(), counts.lock().unwrap().0) }
    });
    yields(1_000).await;
    drop(frees);
    assert!(gone.await.unwrap().0);
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    assert_eq!(counts.lock().unwrap().1, 1, "attempts of one execution at once");
}

/// Runs a child that ends, and then waits.
struct Continues;

#[workflow]
impl Continues {
    #[step]
    async fn delegate(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let ended = children.run_with::<Adds>(Begin(begin.0), RunOptions::new().id("ended")).await?;
        children.run_with::<Waits>(Begin(ended.0), RunOptions::new().id("c")).await
    }
}

struct Adds;

#[workflow]
impl Adds {
    #[step]
    async fn add(&self, begin: &Begin) -> Done {
        Done(begin.0 + 1)
    }
}

/// Asked for again by an execution that a pause dropped.
// S31, S61
#[tokio::test]
async fn a_child_that_had_ended_joins_once() {
    let builder = Engine::builder().store(MemoryStore::default()).workflow(Continues);
    let engine = builder.workflow(Waits).workflow(Adds).build().unwrap();
    let run = engine.start_with::<Continues>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    let is_waited_for =
        async || engine.find(&CHILD.into()).is_some_and(|it| it.status() == RunStatus::Waiting);
    until(is_waited_for).await;
    run.pause(Pause::Now).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Paused);
    run.unpause().await.unwrap();
    engine.attach::<Waits>(CHILD).await.unwrap().send(Note(3)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(5));
    let report = run.report().await.unwrap();
    let children: Vec<_> = report.children.iter().map(|it| (it.child.run.as_str(), it.status)).collect();
    assert_eq!(children, [("r/delegate-x1.ended", RunStatus::Completed), (CHILD, RunStatus::Completed)]);
}

/// The first branch that settles drops the other, which waits for a child.
struct Settles;

#[workflow]
impl Settles {
    #[step]
    async fn open(&self, _begin: &Begin) -> FanOut<Item> {
        (0..2).map(Item).collect::<FanOut<_>>().until(1).continue_others()
    }

    #[step]
    async fn work(&self, item: &Item, children: &Children) -> Result<Part, RunError> {
        let named = RunOptions::new().id(item.0.to_string());
        let Done(done) = children.run_with::<Waits>(Begin(item.0), named).await?;
        Ok(Part(done))
    }

    #[step]
    async fn end(&self, parts: &Gather<Part>, note: &Note) -> Done {
        Done(note.0 + u32::try_from(parts.branches().flat_map(|branch| branch.events()).count()).unwrap())
    }
}

/// Dropped by a batch that the store does not have yet, when the run is paused.
// S38, S61
#[tokio::test]
async fn a_pause_detaches_no_child_of_an_execution_that_was_dropped_before() {
    const SETTLED: &str = "r/work-x2.0";
    const DROPPED: &str = "r/work-x3.1";
    let store = Held::default();
    let builder = Engine::builder().store(store.clone()).workflow(Waits).workflow(Settles);
    let engine = builder.build().unwrap();
    let run = engine.start_with::<Settles>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    for child in [SETTLED, DROPPED] {
        until(async || engine.find(&child.into()).is_some_and(|it| it.status() == RunStatus::Waiting)).await;
    }
    store.hold("r");
    engine.attach::<Waits>(SETTLED).await.unwrap().send(Note(1)).await.unwrap();
    yields(100).await;
    let dropped = engine.attach::<Waits>(DROPPED).await.unwrap();
    assert_eq!(dropped.status(), RunStatus::Waiting, "the store lacks the cause of the drop");
    let pauses = tokio::spawn({
        let run = run.clone();
        async move { run.pause(Pause::Now).await }
    });
    yields(100).await;
    store.release();
    pauses.await.unwrap().unwrap();
    assert!(matches!(dropped.outcome().await, Err(RunError::Cancelled { .. })));
    run.unpause().await.unwrap();
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(2));
}
