//! Runs that wait when their process ends: the next one takes them up without their journals, and resumes each once something
//! reaches it (S87, S88).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::json;
use workflow_core::prelude::*;
use workflow_core::store::{
    EngineId, EventStore, Inbox, InboxMessage, MemoryInbox, MemoryStore, Position, Record, Retention,
    RunMessage, RunQuery, StoreError, StoreFuture, StoredRun, Write,
};
use workflow_core::{Clock as _, EngineBuilder, ResumeError, RunId, RunOptions, RunStatus, Seq};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note, until};
use crate::shapes::{Ask, Asks};

const HOUR: Duration = Duration::from_hours(1);

/// Notes the runs whose journals are read and written.
#[derive(Default)]
struct Noting {
    store: MemoryStore,
    reads: Mutex<Vec<String>>,
    writes: Mutex<Vec<String>>,
    /// Lists runs as an earlier release has written them: without their tables.
    is_earlier: AtomicBool,
    /// How many yields the next list takes after it was made.
    late: AtomicUsize,
}

impl Noting {
    fn take_reads(&self) -> Vec<String> {
        std::mem::take(&mut self.reads.lock().unwrap())
    }

    fn take_writes(&self) -> Vec<String> {
        std::mem::take(&mut self.writes.lock().unwrap())
    }

    async fn records(&self, run: &str) -> Vec<Record> {
        self.store.read(&run.into(), Position(0), usize::MAX).await.unwrap()
    }

    async fn listed(&self, run: &str) -> StoredRun {
        self.store.runs(&RunQuery::new().run(run)).await.unwrap().remove(0)
    }

    async fn resumes(&self, run: &str) -> usize {
        let records = self.records(run).await;
        records.iter().filter(|record| matches!(record, Record::RunResumed { .. })).count()
    }
}

impl EventStore for Noting {
    fn append(&self, run: &RunId, expected: Position, batch: Write) -> StoreFuture<()> {
        self.writes.lock().unwrap().push(run.to_string());
        self.store.append(run, expected, batch)
    }

    fn read(&self, run: &RunId, from: Position, at_most: usize) -> StoreFuture<Vec<Record>> {
        // The first record alone says whose child a run is.
        if from == Position(0) && at_most > 1 {
            self.reads.lock().unwrap().push(run.to_string());
        }
        self.store.read(run, from, at_most)
    }

    fn runs(&self, query: &RunQuery) -> StoreFuture<Vec<StoredRun>> {
        let (listed, is_earlier) = (self.store.runs(query), self.is_earlier.load(Ordering::SeqCst));
        let late = self.late.swap(0, Ordering::SeqCst);
        StoreFuture::new(async move {
            let mut listed = listed.await?;
            for run in listed.iter_mut().filter(|_| is_earlier) {
                run.run.table = None;
            }
            for _ in 0..late {
                tokio::task::yield_now().await;
            }
            Ok(listed)
        })
    }

    fn remove(&self, run: &RunId) -> StoreFuture<bool> {
        self.store.remove(run)
    }

    fn retain(&self, kept: &Retention) -> StoreFuture<u64> {
        self.store.retain(kept)
    }

    fn lease(&self, engine: &EngineId, duration: Duration) -> StoreFuture<Vec<EngineId>> {
        self.store.lease(engine, duration)
    }
}

/// Never ends.
struct Hangs;

#[workflow]
impl Hangs {
    #[step]
    async fn hang(&self, _begin: &Begin) -> Done {
        std::future::pending().await
    }
}

/// Ends after so many hours.
struct Sleeps;

#[workflow]
impl Sleeps {
    #[step]
    async fn sleep(&self, begin: &Begin) -> Timer<Item> {
        Timer::after(begin.0 * HOUR, Item(begin.0))
    }

    #[step]
    async fn end(&self, item: &Item) -> Done {
        Done(item.0)
    }
}

/// Begins a child that goes on by itself, and waits for a note.
struct Begets;

#[workflow]
impl Begets {
    #[step]
    async fn beget(&self, begin: &Begin, children: &Children) -> Result<Item, StepError> {
        children.start_with::<Asks>(Begin(1), RunOptions::new()).await.map_err(StepError::permanent)?;
        Ok(Item(begin.0))
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note) -> Done {
        Done(item.0 + note.0)
    }
}

/// The things that outlive a process.
struct World {
    store: Arc<Noting>,
    clock: VirtualClock,
}

impl World {
    fn new() -> Self {
        Self { store: Arc::default(), clock: VirtualClock::new() }
    }

    fn builder(&self) -> EngineBuilder {
        let builder = Engine::builder().workflow(Asks).workflow(Hangs).workflow(Sleeps).workflow(Begets);
        builder.store(Arc::clone(&self.store)).clock(self.clock.clone())
    }

    fn engine(&self) -> Engine {
        self.builder().build().unwrap()
    }

    /// A run that waits for a reply, whose process is gone.
    async fn waiting(runs: &[&str]) -> Self {
        let world = Self::new();
        let engine = world.engine();
        for run in runs {
            let run = engine.start_with::<Asks>(Begin(1), RunOptions::new().id(*run)).await.unwrap();
            assert_eq!(run.settled().await, RunStatus::Waiting);
        }
        world.ends(&engine).await;
        world
    }

    /// The process ends once its runs have recorded that they wait.
    async fn ends(&self, engine: &Engine) {
        engine.shut_down(Duration::ZERO).await;
        self.store.take_reads();
        self.store.take_writes();
    }

    async fn passes(&self, hours: u32) {
        self.clock.sleep_until(VirtualClock::beginning() + hours * HOUR).await;
    }
}

async fn reply(engine: &Engine, run: &str) {
    let run = engine.attach::<Asks>(run).await.unwrap();
    let request = run.requests().await.unwrap()[0].id::<Ask>().unwrap();
    run.reply(request, 4).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(0));
}

// S87
#[tokio::test(start_paused = true)]
async fn a_restart_reads_and_writes_no_journal_of_a_run_that_waits() {
    let world = World::new();
    let engine = world.engine();
    for run in ["a", "c"] {
        let run = engine.start_with::<Asks>(Begin(1), RunOptions::new().id(run)).await.unwrap();
        run.settled().await;
    }
    engine.start_with::<Hangs>(Begin(1), RunOptions::new().id("b")).await.unwrap();
    world.ends(&engine).await;
    let before = (world.store.listed("a").await, world.store.records("a").await.len());

    let engine = world.engine();
    let resumed = engine.resume_open_runs().await.unwrap();
    assert_eq!(resumed.runs, ["a".into(), "b".into(), "c".into()]);
    assert!(resumed.refused.is_empty() && resumed.error.is_none());
    assert_eq!(world.store.take_reads(), ["b"], "the one that runs");
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.store.take_writes(), ["b"]);
    assert_eq!((world.store.listed("a").await, world.store.records("a").await.len()), before);
    let mut running = engine.running();
    running.sort();
    assert_eq!(running, resumed.runs);
    let again = engine.resume_open_runs().await.unwrap();
    assert!(again.runs.is_empty() && again.refused.is_empty() && again.elsewhere.is_empty());

    reply(&engine, "a").await;
    assert_eq!(world.store.take_reads(), ["a"]);
    let records = world.store.records("a").await;
    let resumed = records.iter().position(|record| matches!(record, Record::RunResumed { .. })).unwrap();
    assert_eq!((resumed, world.store.resumes("a").await), (before.1, 1), "before everything else");
    assert_eq!(world.store.resumes("c").await, 0);
}

// S87, S32: nothing overdue is late, and nothing else is loaded.
#[tokio::test(start_paused = true)]
async fn a_run_that_waits_is_resumed_when_its_timer_or_its_deadline_is_due() {
    let world = World::new();
    let engine = world.engine();
    for (run, hours) in [("one", 1), ("three", 3), ("nine", 9)] {
        let options = RunOptions::new().id(run);
        engine.start_with::<Sleeps>(Begin(hours), options).await.unwrap().settled().await;
    }
    let deadline = RunOptions::new().id("until-four").deadline(VirtualClock::beginning() + 4 * HOUR);
    engine.start_with::<Sleeps>(Begin(8), deadline).await.unwrap().settled().await;
    world.ends(&engine).await;

    world.passes(2).await;
    let engine = world.engine();
    assert_eq!(engine.resume_open_runs().await.unwrap().runs.len(), 4);
    assert_eq!(world.store.take_reads(), ["one"], "it is overdue");
    for (hours, run, status) in [
        (2, "one", RunStatus::Completed),
        (3, "three", RunStatus::Completed),
        (4, "until-four", RunStatus::TimedOut),
        (9, "nine", RunStatus::Completed),
    ] {
        world.passes(hours).await;
        until(async || world.store.listed(run).await.run.status.is_ended()).await;
        let listed = world.store.listed(run).await.run;
        let at = VirtualClock::beginning() + hours * HOUR;
        assert_eq!((listed.status, listed.ended), (status, Some(at)), "{run}");
        assert!(world.store.take_reads().iter().all(|read| read == run), "{run}");
    }
    assert!(engine.running().is_empty());
}

/// `Asks` as a later release has it.
mod later {
    use super::*;

    pub(super) struct Asks;

    #[workflow]
    impl Asks {
        #[step]
        async fn ask(&self, begin: &Begin, _item: &Item) -> Vec<Ask> {
            (0..begin.0).map(Ask).collect()
        }

        #[step]
        async fn take(&self, reply: &Reply<Ask>) -> Done {
            Done(**reply)
        }

        #[step]
        async fn begin(&self, begin: &Begin) -> Item {
            Item(begin.0)
        }
    }
}

// S87, S41: the caller of the resume learns of runs that do not fit any more.
#[tokio::test(start_paused = true)]
async fn a_run_of_a_changed_table_is_resumed_or_refused_at_once() {
    let world = World::waiting(&["a", "b"]).await;
    let engine = Engine::builder().workflow(later::Asks).store(Arc::clone(&world.store)).build().unwrap();
    let resumed = engine.resume_open_runs().await.unwrap();
    assert!(resumed.runs.is_empty());
    let refused: Vec<_> = resumed.refused.iter().map(|(run, _)| run.as_str()).collect();
    assert_eq!((refused, world.store.take_reads()), (vec!["a", "b"], vec!["a".into(), "b".into()]));
    assert!(matches!(resumed.refused[0].1, ResumeError::Incompatible { .. }), "{:?}", resumed.refused);
    let other = Engine::builder().workflow(Hangs).store(Arc::clone(&world.store)).build().unwrap();
    let resumed = other.resume_open_runs().await.unwrap();
    assert!(matches!(resumed.refused[1].1, ResumeError::UnknownWorkflow { .. }), "{:?}", resumed.refused);
}

// S87: of an earlier release, or of a store that does not keep the field.
#[tokio::test(start_paused = true)]
async fn a_run_whose_summary_lacks_its_table_is_resumed_at_once() {
    let world = World::waiting(&["a"]).await;
    world.store.is_earlier.store(true, Ordering::SeqCst);
    let engine = world.engine();
    assert_eq!(engine.resume_open_runs().await.unwrap().runs, ["a".into()]);
    assert_eq!(world.store.take_reads(), ["a"]);
    until(async || world.store.take_writes().len() >= 2).await;
    assert_eq!(world.store.resumes("a").await, 1);
    reply(&engine, "a").await;
}

// S87: a caller that the list has overtaken.
#[tokio::test(start_paused = true)]
async fn a_run_that_ends_while_it_is_listed_is_not_taken_up() {
    let world = World::waiting(&["a", "b"]).await;
    let engine = world.engine();
    world.store.late.store(1_000, Ordering::SeqCst);
    let resumes = tokio::spawn({
        let engine = engine.clone();
        async move { engine.resume_open_runs().await.unwrap() }
    });
    while world.store.late.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
    reply(&engine, "a").await;
    assert_eq!(resumes.await.unwrap().runs, ["b".into()]);
    assert_eq!(engine.running(), ["b".into()]);
    assert!(engine.remove_run(&"a".into()).await.unwrap());
}

// S87: neither reads its journal, and the cancel has it resumed.
#[tokio::test(start_paused = true)]
async fn an_engine_that_ends_detaches_or_cancels_the_runs_that_it_took_up() {
    let world = World::waiting(&["a"]).await;
    let before = world.store.listed("a").await;
    let engine = world.engine();
    engine.resume_open_runs().await.unwrap();
    engine.shut_down(Duration::ZERO).await;
    assert_eq!((world.store.listed("a").await, world.store.take_reads().len()), (before, 0));
    assert!(engine.running().is_empty());

    let engine = world.engine();
    engine.resume_open_runs().await.unwrap();
    engine.cancel_all("the office closes", HOUR).await;
    assert_eq!(world.store.listed("a").await.run.status, RunStatus::Cancelled);
    assert_eq!(world.store.resumes("a").await, 1);
}

// S87, S31: the parent lists the child for its end.
#[tokio::test(start_paused = true)]
async fn the_parent_of_an_open_child_is_loaded_before_the_child() {
    let world = World::new();
    let engine = world.engine();
    let run = engine.start_with::<Begets>(Begin(1), RunOptions::new().id("p")).await.unwrap();
    run.settled().await;
    until(async || {
        world.store.runs(&RunQuery::new()).await.unwrap().iter().all(|run| run.run.table.is_some())
    })
    .await;
    world.ends(&engine).await;

    let engine = world.engine();
    let resumed = engine.resume_open_runs().await.unwrap();
    assert_eq!(resumed.runs.len(), 2);
    let child = resumed.runs[1].clone();
    assert_eq!(world.store.take_reads(), ["p".to_owned(), child.to_string()]);
    let parent = engine.attach::<Begets>("p").await.unwrap();
    parent.cancel("enough").await.unwrap();
    parent.outcome().await.unwrap_err();
    assert_eq!(world.store.listed(child.as_str()).await.run.status, RunStatus::Cancelled);
}

/// An inbox that does not say which runs have messages, and may be away.
#[derive(Default)]
struct Reticent {
    inbox: MemoryInbox,
    is_away: AtomicBool,
    never_answers: AtomicBool,
}

impl Inbox for Reticent {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        if self.never_answers.load(Ordering::SeqCst) {
            return StoreFuture::new(std::future::pending());
        }
        if self.is_away.load(Ordering::SeqCst) {
            return StoreFuture::ready(Err(StoreError::unavailable(std::io::Error::other("no route"))));
        }
        self.inbox.pending(run, at_most)
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        self.inbox.settle(run, message, result)
    }
}

fn answer() -> RunMessage {
    RunMessage::Reply { request: Seq(2), data: json!(4) }
}

// S87, S67
#[tokio::test(start_paused = true)]
async fn a_restart_loads_the_waiting_runs_that_have_messages() {
    let world = World::waiting(&["a", "b", "c"]).await;
    let inbox = Arc::new(MemoryInbox::default());
    inbox.put("b", "1", answer()).unwrap();
    let engine = world.builder().inbox(Arc::clone(&inbox)).build().unwrap();
    assert_eq!(engine.resume_open_runs().await.unwrap().runs.len(), 3);
    until(async || world.store.listed("b").await.run.status == RunStatus::Completed).await;
    assert_eq!(world.store.take_reads(), ["b"]);
    inbox.put("c", "1", answer()).unwrap();
    assert!(engine.notify_inbox(&"c".into()));
    until(async || world.store.listed("c").await.run.status == RunStatus::Completed).await;
    assert_eq!((world.store.take_reads(), engine.running()), (vec!["c".into()], vec!["a".into()]));
}

// S87, S67
#[tokio::test(start_paused = true)]
async fn messages_of_an_inbox_that_lists_no_runs_or_is_away_at_first_reach_runs_that_wait() {
    for is_away in [false, true] {
        let world = World::waiting(&["a", "b", "c"]).await;
        let inbox = Arc::new(Reticent::default());
        inbox.is_away.store(is_away, Ordering::SeqCst);
        inbox.inbox.put("b", "1", answer()).unwrap();
        let engine = world.builder().inbox(Arc::clone(&inbox)).build().unwrap();
        assert_eq!(engine.resume_open_runs().await.unwrap().runs.len(), 3);
        if is_away {
            tokio::time::sleep(Duration::from_mins(1)).await;
            assert!(world.store.take_reads().is_empty());
        }
        inbox.is_away.store(false, Ordering::SeqCst);
        until(async || world.store.listed("b").await.run.status == RunStatus::Completed).await;
        assert_eq!(world.store.take_reads(), ["b"]);
        reply(&engine, "a").await;
        engine.shut_down(Duration::ZERO).await;
    }
}

// S87
#[tokio::test(start_paused = true)]
async fn an_inbox_that_never_answers_delays_no_restart() {
    let world = World::waiting(&["a", "b"]).await;
    let inbox = Arc::new(Reticent::default());
    inbox.never_answers.store(true, Ordering::SeqCst);
    let engine = world.builder().inbox(inbox).build().unwrap();
    let resumed = tokio::time::timeout(HOUR, engine.resume_open_runs()).await.unwrap();
    assert_eq!(resumed.unwrap().runs.len(), 2);
    tokio::time::timeout(HOUR, engine.shut_down(Duration::ZERO)).await.unwrap();
    assert!(engine.running().is_empty());
}

const LEASE: Duration = Duration::from_secs(30);

// S88, S40
#[tokio::test(start_paused = true)]
async fn with_leases_a_run_that_waits_is_taken_up_by_one_record() {
    let world = World::waiting(&["a", "b"]).await;
    let before = world.store.records("a").await.len();
    let one = world.builder().lease(LEASE).build().unwrap();
    assert_eq!(one.resume_open_runs().await.unwrap().runs.len(), 2);
    assert!(world.store.take_reads().is_empty());
    let listed = world.store.listed("a").await;
    assert_eq!((listed.run.owner.as_ref(), listed.run.status), (Some(one.id()), RunStatus::Waiting));
    let records = world.store.records("a").await;
    assert!(matches!(records[before..], [Record::RunKept { .. }]), "{records:?}");
    let other = world.builder().lease(LEASE).build().unwrap();
    assert_eq!(other.resume_open_runs().await.unwrap().elsewhere.len(), 2);
    assert!(matches!(other.attach::<Asks>("a").await, Err(ResumeError::Elsewhere { .. })));
    reply(&one, "a").await;
    one.shut_down(Duration::ZERO).await;
    assert_eq!(other.resume_open_runs().await.unwrap().runs, ["b".into()]);
    reply(&other, "b").await;
    assert_eq!(world.store.resumes("b").await, 1);
}

// S88, S40: another engine was faster, or the store fails.
#[tokio::test(start_paused = true)]
async fn with_leases_a_run_that_was_written_to_meanwhile_is_not_taken_up() {
    let world = World::waiting(&["a"]).await;
    let engine = world.builder().lease(LEASE).build().unwrap();
    world.store.late.store(1_000, Ordering::SeqCst);
    let task = tokio::spawn({
        let engine = engine.clone();
        async move { engine.resume_open_runs().await.unwrap() }
    });
    while world.store.late.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
    let StoredRun { id, end, run } = world.store.listed("a").await;
    let records = vec![Record::RunKept { at: SystemTime::UNIX_EPOCH }];
    world.store.append(&id, end, Write { records, run: run.owned_by(Some("other".into())) }).await.unwrap();
    let resumed = task.await.unwrap();
    assert!(resumed.runs.is_empty() && resumed.refused.is_empty());
    assert_eq!((resumed.elsewhere, engine.running()), (vec!["a".into()], vec![]));
}

// S88, S66: without a permit, because nothing of the run is active.
#[tokio::test(start_paused = true)]
async fn a_claim_takes_waiting_orphans_without_reading_them() {
    let world = World::new();
    let gone = world.builder().lease(LEASE).build().unwrap();
    for run in ["a", "b", "c"] {
        gone.start_with::<Asks>(Begin(1), RunOptions::new().id(run)).await.unwrap().settled().await;
    }
    let engine = world.builder().lease(LEASE).max_concurrent_runs(1).build().unwrap();
    engine.start_with::<Hangs>(Begin(1), RunOptions::new().id("h")).await.unwrap();
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    world.ends(&gone).await;
    let claimed = engine.claim_orphans().await.unwrap();
    assert_eq!(claimed.runs.len(), 3, "{claimed:?}");
    assert!(world.store.take_reads().is_empty());
    for run in ["a", "b", "c"] {
        assert_eq!(world.store.listed(run).await.run.owner.as_ref(), Some(engine.id()));
    }
    let other = world.builder().lease(LEASE).build().unwrap();
    assert_eq!(other.resume_open_runs().await.unwrap().elsewhere.len(), 4);
}
