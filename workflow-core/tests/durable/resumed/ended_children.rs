//! The ends of children in the journal of their parent (S82): after an unload, a restart, a crash between the two, and by the
//! records alone.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use workflow_core::prelude::*;
use workflow_core::report::{Quality, RunReport};
use workflow_core::store::{EventStore, MemoryStore, Position, Record, RunQuery, Write};
use workflow_core::{RecordedRun, RunHandle, RunId, RunOptions, RunStatus};
use workflow_testkit::VirtualClock;

use crate::fixtures::{Begin, Done, Item, Note};
use crate::formats::recorded::{as_read, same_by_its_records};

const SECOND: Duration = Duration::from_secs(1);

/// Handles the failure of one child, has another one that succeeds, and waits for a note.
struct Copes;

#[workflow]
impl Copes {
    #[step]
    async fn call(&self, _begin: &Begin, children: &Children) -> Item {
        let failed = children.run::<Small>(Begin(0)).await;
        let done = children.run::<Small>(Begin(1)).await;
        Item(u32::from(failed.is_err()) + done.map_or(0, |done| done.0))
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note) -> Done {
        Done(item.0 + note.0)
    }
}

/// Starts an independent child, and waits for a note.
struct Starts;

#[workflow]
impl Starts {
    #[step]
    async fn call(&self, begin: &Begin, children: &Children) -> Result<Item, StepError> {
        children.start::<Small>(begin.clone()).await?;
        Ok(Item(begin.0))
    }

    #[step]
    async fn end(&self, item: &Item, note: &Note) -> Done {
        Done(item.0 + note.0)
    }
}

/// Calls a child at most once, which may fail, and waits for a note.
struct Tries;

#[workflow]
impl Tries {
    #[step(at_most_once, on_error = "continue")]
    async fn call(&self, begin: &Begin, children: &Children) -> Result<(), RunError> {
        children.run::<Small>(begin.clone()).await.map(drop)
    }

    #[step]
    async fn end(&self, begin: &Begin, note: &Note) -> Done {
        Done(begin.0 + note.0)
    }
}

/// Fails on 0, and otherwise takes so many seconds.
struct Small;

#[workflow]
impl Small {
    #[step]
    async fn work(&self, begin: &Begin) -> Result<Done, StepError> {
        if begin.0 == 0 {
            return Err(StepError::permanent("broken"));
        }
        sleep(SECOND * begin.0).await;
        Ok(Done(begin.0))
    }
}

fn engine(store: &Arc<MemoryStore>, clock: &VirtualClock) -> Engine {
    let engine = Engine::builder().workflow(Copes).workflow(Starts).workflow(Tries).workflow(Small);
    let engine = engine.store(Arc::clone(store)).clock(clock.clone()).replay_check(true);
    engine.unload_waiting_after(SECOND).build().unwrap()
}

fn facts(report: &RunReport) -> (RunStatus, Quality, Vec<RunStatus>) {
    (report.status, report.quality, report.children.iter().map(|child| child.status).collect())
}

async fn records(store: &MemoryStore, run: &RunId) -> Vec<Record> {
    as_read(&store.read(run, Position(0), usize::MAX).await.unwrap())
}

async fn by_its_records(store: &MemoryStore, run: &RunId) -> (RunStatus, Quality, Vec<RunStatus>) {
    facts(RecordedRun::of(run, &records(store, run).await).unwrap().report())
}

/// How many records of the journal have ends of children.
async fn told(store: &MemoryStore, run: &RunId) -> usize {
    let is_told = |record: &&Record| matches!(record, Record::ChildrenEnded { .. });
    records(store, run).await.iter().filter(is_told).count()
}

async fn summary(store: &MemoryStore, run: &RunId) -> (RunStatus, Option<Quality>) {
    let listed = store.runs(&RunQuery::new().run(run.clone())).await.unwrap().remove(0).run;
    (listed.status, listed.quality)
}

// S34, S82
#[tokio::test(start_paused = true)]
async fn a_run_that_handled_the_failure_of_a_child_is_degraded_after_an_unload_too() {
    let ends = [RunStatus::Failed, RunStatus::Completed];
    for keeps_handle in [true, false] {
        let (store, clock) = (Arc::new(MemoryStore::default()), VirtualClock::new());
        let engine = engine(&store, &clock);
        let run = engine.start_with::<Copes>(Begin(0), RunOptions::new().id("r")).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        let kept = keeps_handle.then(|| run.clone());
        drop(run);
        sleep(SECOND * 10).await;
        let run: RunHandle<Copes> = engine.attach("r").await.unwrap();
        let waits = (RunStatus::Waiting, Quality::Degraded, ends.to_vec());
        assert_eq!(facts(&run.report_so_far().await.unwrap()), waits);
        assert_eq!(by_its_records(&store, run.id()).await, waits);
        run.send(Note(4)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(6));
        let over = (RunStatus::Completed, Quality::Degraded, ends.to_vec());
        assert_eq!(facts(&run.report().await.unwrap()), over);
        assert_eq!(by_its_records(&store, run.id()).await, over);
        assert_eq!(summary(&store, run.id()).await, (RunStatus::Completed, Some(Quality::Degraded)));
        same_by_its_records(&run, &store).await;
        drop(kept);
    }
}

// S30, S82
#[tokio::test(start_paused = true)]
async fn a_run_that_waits_records_the_end_of_its_child_at_once_and_waits_as_before() {
    let (store, clock) = (Arc::new(MemoryStore::default()), VirtualClock::new());
    let engine = engine(&store, &clock);
    let run = engine.start_with::<Starts>(Begin(60), RunOptions::new().id("r")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    sleep(SECOND * 30).await;
    assert_eq!(told(&store, run.id()).await, 0);
    assert_eq!(by_its_records(&store, run.id()).await.2, [RunStatus::Running]);
    sleep(SECOND * 30 + SECOND / 2).await;
    assert_eq!(told(&store, run.id()).await, 1);
    assert_eq!((run.status(), summary(&store, run.id()).await.0), (RunStatus::Waiting, RunStatus::Waiting));
    let waits = (RunStatus::Waiting, Quality::Clean, vec![RunStatus::Completed]);
    assert_eq!(by_its_records(&store, run.id()).await, waits);
    assert!(!matches!(records(&store, run.id()).await.last(), Some(Record::RunWaiting { .. })));
}

// S82
#[tokio::test(start_paused = true)]
async fn an_independent_child_that_goes_on_after_its_parent_is_reported_as_running_for_good() {
    let (store, clock) = (Arc::new(MemoryStore::default()), VirtualClock::new());
    let engine = engine(&store, &clock);
    let run = engine.start_with::<Starts>(Begin(60), RunOptions::new().id("r")).await.unwrap();
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(61));
    sleep(SECOND * 100).await;
    assert_eq!(summary(&store, &"r/call-x1.1".into()).await.0, RunStatus::Completed);
    let over = (RunStatus::Completed, Quality::Clean, vec![RunStatus::Running]);
    assert_eq!(facts(&run.report().await.unwrap()), over);
    assert_eq!(by_its_records(&store, run.id()).await, over);
}

/// A copy of the store, in which the journal of `r` lacks its records from the first with an end of a child on, as after a
/// crash, or has them as an earlier release wrote them.
async fn copied(store: &MemoryStore, is_of_earlier_release: bool) -> Arc<MemoryStore> {
    let copy = Arc::new(MemoryStore::default());
    for stored in store.runs(&RunQuery::new()).await.unwrap() {
        let mut records = records(store, &stored.id).await;
        let is_told = |record: &Record| matches!(record, Record::ChildrenEnded { .. });
        if is_of_earlier_release {
            records.retain(|record| !is_told(record));
        } else if let Some(from) = records.iter().position(is_told) {
            records.truncate(from);
        }
        let run = if stored.id.as_str() == "r" && !is_of_earlier_release {
            stored.run.running_again()
        } else {
            stored.run
        };
        copy.append(&stored.id, Position(0), Write { records, run }).await.unwrap();
    }
    copy
}

// S34, S82
#[tokio::test(start_paused = true)]
async fn a_parent_that_is_loaded_records_the_ends_that_its_journal_lacks() {
    let (store, clock) = (Arc::new(MemoryStore::default()), VirtualClock::new());
    let first = engine(&store, &clock);
    let run = first.start_with::<Starts>(Begin(3), RunOptions::new().id("r")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    sleep(SECOND * 5).await;
    let crashed = copied(&store, false).await;
    assert_eq!(by_its_records(&crashed, run.id()).await.2, [RunStatus::Running]);
    let later = engine(&crashed, &clock);
    let run: RunHandle<Starts> = later.attach("r").await.unwrap();
    run.settled().await;
    sleep(SECOND / 2).await;
    let waits = (RunStatus::Waiting, Quality::Clean, vec![RunStatus::Completed]);
    assert_eq!(by_its_records(&crashed, run.id()).await, waits);
    assert_eq!(facts(&run.report_so_far().await.unwrap()), waits);
    assert_eq!(told(&crashed, run.id()).await, 1);
}

// S82
#[tokio::test(start_paused = true)]
async fn a_parent_that_is_loaded_again_records_an_end_of_another_engine_and_waits_as_before() {
    let (store, clock) = (Arc::new(MemoryStore::default()), VirtualClock::new());
    let first = engine(&store, &clock);
    let run = first.start_with::<Starts>(Begin(60), RunOptions::new().id("r")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    drop(run);
    first.shut_down(SECOND).await;
    let [has_parent, has_child] = [(); 2].map(|()| engine(&store, &clock));
    drop(has_parent.attach::<Starts>("r").await.unwrap());
    sleep(SECOND * 10).await;
    let child: RunHandle<Small> = has_child.attach("r/call-x1.1").await.unwrap();
    assert_eq!(child.outcome().await.unwrap(), Done(60));
    let run: RunHandle<Starts> = has_parent.attach("r").await.unwrap();
    sleep(SECOND / 2).await;
    let waits = (RunStatus::Waiting, Quality::Clean, vec![RunStatus::Completed]);
    assert_eq!(by_its_records(&store, run.id()).await, waits);
    assert_eq!(summary(&store, run.id()).await.0, RunStatus::Waiting);
    let listed = store.runs(&RunQuery::new().run(run.id().clone())).await.unwrap().remove(0);
    assert_eq!(listed.run.waits_for.unwrap().events, ["Note".into()]);
    run.send(Note(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(61));
}

// S82
#[tokio::test(start_paused = true)]
async fn a_journal_of_an_earlier_release_is_read_as_before_and_knows_the_ends_once_it_goes_on() {
    let (store, clock) = (Arc::new(MemoryStore::default()), VirtualClock::new());
    let first = engine(&store, &clock);
    let run = first.start_with::<Copes>(Begin(0), RunOptions::new().id("r")).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    sleep(SECOND / 2).await;
    let open = copied(&store, true).await;
    let running = (RunStatus::Waiting, Quality::Clean, vec![RunStatus::Running; 2]);
    assert_eq!(by_its_records(&open, run.id()).await, running);
    run.send(Note(4)).await.unwrap();
    run.outcome().await.unwrap();
    let ended = copied(&store, true).await;
    let over = (RunStatus::Completed, Quality::Clean, vec![RunStatus::Running; 2]);
    assert_eq!(by_its_records(&ended, run.id()).await, over);

    let run: RunHandle<Copes> = engine(&ended, &clock).attach("r").await.unwrap();
    assert_eq!(facts(&run.report().await.unwrap()), over);
    let run: RunHandle<Copes> = engine(&open, &clock).attach("r").await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let ends = vec![RunStatus::Failed, RunStatus::Completed];
    assert_eq!(facts(&run.report_so_far().await.unwrap()), (RunStatus::Waiting, Quality::Degraded, ends));
}

// S31, S82
#[tokio::test(start_paused = true)]
async fn a_child_that_was_resumed_before_its_parent_is_followed_and_cancelled_with_it() {
    for is_cancelled in [false, true] {
        let (store, clock) = (Arc::new(MemoryStore::default()), VirtualClock::new());
        let first = engine(&store, &clock);
        let run = first.start_with::<Starts>(Begin(60), RunOptions::new().id("r")).await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        drop(run);
        first.shut_down(SECOND).await;
        let later = engine(&store, &clock);
        let child: RunHandle<Small> = later.attach("r/call-x1.1").await.unwrap();
        let run: RunHandle<Starts> = later.attach("r").await.unwrap();
        run.settled().await;
        if is_cancelled {
            run.cancel("enough").await.unwrap();
            assert!(run.outcome().await.is_err() && child.status() == RunStatus::Cancelled);
        } else {
            assert_eq!(child.outcome().await.unwrap(), Done(60));
        }
        let ends = [if is_cancelled { RunStatus::Cancelled } else { RunStatus::Completed }];
        assert_eq!(facts(&run.report_so_far().await.unwrap()).2, ends);
        assert_eq!(by_its_records(&store, run.id()).await.2, ends);
    }
}

// S31, S38: else nobody would drive or end it before the parent ends, which may wait for long.
#[test]
fn a_child_whose_execution_does_not_ask_for_it_again_is_cancelled_once_the_journal_says_why() {
    let store = Arc::new(MemoryStore::default());
    let runtime = crate::world::runtime();
    let killed = runtime.block_on(async {
        let engine = engine(&store, &VirtualClock::new());
        engine.start_with::<Tries>(Begin(90), RunOptions::new().id("p")).await.unwrap();
        sleep(SECOND).await;
        engine
    });
    drop(runtime);
    let runtime = crate::world::runtime();
    runtime.block_on(async {
        let engine = engine(&store, &VirtualClock::new());
        let run = engine.attach::<Tries>("p").await.unwrap();
        sleep(SECOND * 5).await;
        let child = store.runs(&RunQuery::new().below("p")).await.unwrap().remove(0);
        assert_eq!(child.run.status, RunStatus::Cancelled);
        run.send(Note(1)).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(91));
        assert_eq!(facts(&run.report().await.unwrap()).2, [RunStatus::Cancelled]);
        assert_eq!(by_its_records(&store, run.id()).await.2, [RunStatus::Cancelled]);
    });
    drop(killed);
}
