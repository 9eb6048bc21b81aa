//! Inboxes that are away while runs wait for them (S67).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;
use workflow_core::prelude::*;
use workflow_core::report::WaitsFor;
use workflow_core::store::{
    EngineId, EventStore as _, Inbox, InboxMessage, MemoryInbox, Record, RunMessage, RunQuery, StoreError,
    StoreFuture, Write,
};
use workflow_core::{EngineBuilder, Pause, RunId, RunOptions, RunStatus, Seq};

use super::{Closed, Desk, World, note};
use crate::fixtures::{Begin, Note, until};
use crate::resumed::idle::Told;

/// An inbox that is away until the test lets it answer.
#[derive(Default)]
struct Away {
    inbox: MemoryInbox,
    answers: AtomicBool,
    /// Whether it fails late, once it is let go.
    hangs: AtomicBool,
    lets_go: Arc<Notify>,
    asked: Notify,
    calls: AtomicUsize,
}

impl Inbox for Away {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        self.asked.notify_one();
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.answers.load(Ordering::SeqCst) {
            self.inbox.pending(run, at_most)
        } else if self.hangs.load(Ordering::SeqCst) {
            let lets_go = Arc::clone(&self.lets_go);
            StoreFuture::new(async move {
                lets_go.notified().await;
                Ok(Vec::new())
            })
        } else {
            StoreFuture::ready(Err(StoreError::unavailable(std::io::Error::other("no route"))))
        }
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        self.inbox.settle(run, message, result)
    }
}

// S67: a run that cannot begin because of its inbox says so, and begins once the inbox answers.
#[tokio::test(start_paused = true)]
async fn a_run_waits_for_an_inbox_that_is_away() {
    let world = World::waiting().await;
    let away = Arc::new(Away::default());
    let engine = builder(&world, &away).build().unwrap();
    let run = engine.attach::<Desk>("a").await.unwrap();
    run.send(Note(1)).await.unwrap();
    away.asked.notified().await;
    let waiting = loop {
        let waiting = run.report_so_far().await.unwrap().waiting.clone();
        if waiting.iter().any(|waiting| waiting.waits_for != WaitsFor::Inbox { problem: None }) {
            break waiting;
        }
        tokio::task::yield_now().await;
    };
    let text = "the messages of the run's inbox come first, and it is away: no route";
    assert_eq!(waiting[0].waits_for, WaitsFor::Inbox { problem: Some("no route".into()) });
    assert_eq!(waiting[0].waits_for.to_string(), text);
    assert!(run.explain().await.unwrap().to_string().contains(text));
    assert_eq!(world.desk.notes(), ["open"]);
    away.answers.store(true, Ordering::SeqCst);
    away.inbox.put("a", "1", RunMessage::Reply { request: Seq(2), data: json!(true) }).unwrap();
    while !run.status().is_ended() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(run.outcome().await.unwrap(), Closed(true));
}

/// An engine of the world with this inbox.
fn builder(world: &World, away: &Arc<Away>) -> EngineBuilder {
    let builder = Engine::builder().workflow(world.desk.clone()).clock(world.clock.clone());
    builder.store(Arc::clone(&world.store)).inbox(Arc::clone(away))
}

async fn count(world: &World, is_one: fn(&Record) -> bool) -> usize {
    world.records().await.iter().filter(|record| is_one(record)).count()
}

/// Begins the run `b`, which needs a permit, and waits for its reply.
async fn waits_too(engine: &Engine) -> RunStatus {
    let run = engine.start_with::<Desk>(Begin(0), RunOptions::new().id("b")).await.unwrap();
    run.settled().await
}

fn is_kept(record: &Record) -> bool {
    matches!(record, Record::RunKept { .. })
}

// S67, S65: the only permit of the engine goes to another run, and comes back once the inbox does.
#[tokio::test(start_paused = true)]
async fn a_run_whose_inbox_is_away_lets_others_have_its_permit() {
    let (world, away) = (World::due().await, Arc::<Away>::default());
    let engine = builder(&world, &away).max_concurrent_runs(1).build().unwrap();
    let permit = engine.permit("Desk").await.unwrap();
    let waits = engine.attach_with("a", permit).await.unwrap();
    assert_eq!(timeout(Duration::from_hours(1), waits_too(&engine)).await, Ok(RunStatus::Waiting));
    assert_eq!(
        (world.desk.notes(), waits.status()),
        (vec!["open".into(), "open".into()], RunStatus::Running)
    );
    let waiting = &waits.report_so_far().await.unwrap().waiting;
    assert_eq!(waiting[0].waits_for, WaitsFor::Inbox { problem: Some("no route".into()) });

    let permit = engine.permit("Desk").await.unwrap();
    away.answers.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let waiting = &waits.report_so_far().await.unwrap().waiting;
    assert!(matches!(waiting[0].waits_for, WaitsFor::Runs { .. }), "{waiting:?}");
    drop(permit);
    assert_eq!(waits.settled().await, RunStatus::Waiting);
    assert_eq!(world.desk.notes().last().unwrap(), "note 9");
}

// S67: the journal has once that the run waits, and the engine asks every five seconds.
#[tokio::test(start_paused = true)]
async fn a_run_records_once_that_its_inbox_is_away() {
    let (world, away) = (World::due().await, Arc::<Away>::default());
    let engine = builder(&world, &away).build().unwrap();
    let run = engine.attach::<Desk>("a").await.unwrap();
    run.send(Note(1)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(48)).await;
    run.send(Note(2)).await.unwrap();
    assert_eq!(count(&world, is_kept).await, 1);
    assert_eq!(away.calls.load(Ordering::SeqCst), 10);
    for _ in 0..100 {
        engine.notify_inbox(&"a".into());
        tokio::task::yield_now().await;
    }
    assert_eq!(away.calls.load(Ordering::SeqCst), 10, "a notification does not make it ask earlier");
    away.answers.store(true, Ordering::SeqCst);
    away.inbox.put("a", "1", RunMessage::Reply { request: Seq(2), data: json!(true) }).unwrap();
    assert_eq!(run.outcome().await.unwrap(), Closed(true));
    assert_eq!(count(&world, is_kept).await, 1);
}

// S67: `RunWaiting` stays the last record of a run that waits anyway.
#[tokio::test(start_paused = true)]
async fn a_run_that_waits_anyway_records_no_inbox() {
    let (world, away) = (World::waiting().await, Arc::<Away>::default());
    let engine = builder(&world, &away).build().unwrap();
    let run = engine.attach::<Desk>("a").await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    tokio::time::sleep(Duration::from_secs(48)).await;
    assert_eq!(count(&world, is_kept).await, 0);
    assert!(matches!(world.records().await.last(), Some(Record::RunWaiting { .. })));
}

// S66, S67: processes that end while the inbox is away are no crashes of the run.
#[tokio::test(start_paused = true)]
async fn a_run_whose_inbox_is_away_is_claimed_after_any_number_of_processes() {
    let mut world = World::due().await;
    let gone = EngineId::generate();
    let stored = world.store.runs(&RunQuery::new()).await.unwrap().remove(0);
    let records = vec![Record::RunKept { at: std::time::SystemTime::UNIX_EPOCH }];
    let write = Write { records, run: stored.run.owned_by(Some(gone)) };
    world.store.append(&"a".into(), stored.end, write).await.unwrap();
    let lease = Duration::from_secs(30);
    for _ in 0..6 {
        let engine = builder(&world, &Arc::default()).lease(lease).build().unwrap();
        engine.resume_open_runs().await.unwrap();
        tokio::time::sleep(Duration::from_secs(6)).await;
        world = world.killed().await;
    }
    assert_eq!(count(&world, |record| matches!(record, Record::RunResumed { .. })).await, 6);
    world.put("1", note(1));
    world.put("2", RunMessage::Reply { request: Seq(2), data: json!(true) });
    let engine = world.builder().lease(lease).build().unwrap();
    // It lists the runs of other engines, and takes its lease.
    drop(engine.claim_orphans().await.unwrap());
    tokio::time::sleep(2 * lease).await;
    drop(engine.claim_orphans().await.unwrap());
    world.drained().await;
    assert_eq!(engine.attach::<Desk>("a").await.unwrap().outcome().await.unwrap(), Closed(true));
}

// S67, S31: a run that is cancelled while its inbox is away does not wait for it.
#[tokio::test(start_paused = true)]
async fn a_cancel_does_not_wait_for_an_inbox_that_is_away() {
    let (world, away) = (World::due().await, Arc::<Away>::default());
    let engine = builder(&world, &away).build().unwrap();
    let run = engine.attach::<Desk>("a").await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    run.cancel("enough").await.unwrap();
    assert_eq!(run.status(), RunStatus::Cancelled);
}

// S67: also a run that is loaded while the engine waits to ask again.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_loaded_in_an_outage_knows_of_it() {
    let (world, away) = (World::new(), Arc::<Away>::default());
    let engine = builder(&world, &away).unload_waiting_after(Duration::ZERO).build().unwrap();
    let run = engine.start_with::<Desk>(Begin(0), RunOptions::new().id("a")).await.unwrap();
    run.settled().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    engine.notify_inbox(&"a".into());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let calls = away.calls.load(Ordering::SeqCst);
    run.send(Note(1)).await.unwrap();
    let waiting = &run.report_so_far().await.unwrap().waiting;
    assert_eq!(waiting[0].waits_for, WaitsFor::Inbox { problem: Some("no route".into()) });
    assert_eq!(away.calls.load(Ordering::SeqCst), calls);
}

// S67: an inbox that never answers starves nobody.
#[tokio::test(start_paused = true)]
async fn an_inbox_that_does_not_answer_is_away_until_it_does() {
    let (world, away) = (World::due().await, Arc::<Away>::default());
    away.hangs.store(true, Ordering::SeqCst);
    let engine = builder(&world, &away).max_concurrent_runs(1).build().unwrap();
    let permit = engine.permit("Desk").await.unwrap();
    let waits = engine.attach_with("a", permit).await.unwrap();
    assert_eq!(timeout(Duration::from_hours(1), waits_too(&engine)).await, Ok(RunStatus::Waiting));
    let waiting = &waits.report_so_far().await.unwrap().waiting;
    let problem = Some("it has not answered for 5 s".into());
    assert_eq!(waiting[0].waits_for, WaitsFor::Inbox { problem });
    assert_eq!((count(&world, is_kept).await, away.calls.load(Ordering::SeqCst)), (1, 1));
    away.lets_go.notify_one();
    assert_eq!(waits.settled().await, RunStatus::Waiting);
    assert_eq!(world.desk.notes().last().unwrap(), "note 9");
}

/// How many timers have fired.
async fn elapsed(world: &World) -> usize {
    let is_elapsed =
        |record: &Record| matches!(record, Record::EventLogged { event, .. } if event.name() == "Elapsed");
    count(world, is_elapsed).await
}

// S42, S67: it would be unloaded and loaded again without an end.
#[tokio::test(start_paused = true)]
async fn a_run_with_a_due_timer_stays_until_its_inbox_was_read() {
    for pauses in [false, true] {
        let (world, slow, told) = (World::new(), Arc::<Away>::default(), Told::default());
        slow.hangs.store(true, Ordering::SeqCst);
        let after = if pauses { Duration::from_hours(1) } else { Duration::ZERO };
        let engine =
            builder(&world, &slow).unload_waiting_after(after).observer(told.clone()).build().unwrap();
        let run = engine.start_with::<Desk>(Begin(0), RunOptions::new().id("a")).await.unwrap();
        run.settled().await;
        if pauses {
            run.pause(Pause::Now).await.unwrap();
        }
        told.are_away(1).await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        // No time passes, so what happens again and again does so now.
        for _ in 0..5_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!((told.loaded(), elapsed(&world).await), (1, 0));
        slow.lets_go.notify_one();
        until(async || elapsed(&world).await == 1).await;
        assert_eq!(told.loaded(), 1);
    }
}

/// An inbox whose answers take a moment.
#[derive(Default)]
struct Slow(MemoryInbox);

impl Inbox for Slow {
    fn pending(&self, run: &RunId, at_most: usize) -> StoreFuture<Vec<InboxMessage>> {
        let answer = self.0.pending(run, at_most);
        StoreFuture::new(async {
            tokio::task::yield_now().await;
            answer.await
        })
    }

    fn settle(&self, run: &RunId, message: &InboxMessage, result: Result<(), String>) -> StoreFuture<()> {
        self.0.settle(run, message, result)
    }
}

// S42, S67
#[tokio::test(start_paused = true)]
async fn runs_that_are_unloaded_at_once_are_loaded_once_for_each_timer() {
    let (world, told, runs) = (World::new(), Told::default(), 50);
    let builder = world.builder().inbox(Arc::<Slow>::default()).unload_waiting_after(Duration::ZERO);
    let engine = builder.observer(told.clone()).build().unwrap();
    for number in 0..runs {
        let options = RunOptions::new().id(format!("r{number}"));
        engine.start_with::<Desk>(Begin(0), options).await.unwrap().settled().await;
    }
    told.are_away(runs).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    until(async || world.desk.notes().iter().filter(|note| *note == "elapsed").count() == runs).await;
    told.are_away(runs).await;
    assert_eq!(told.loaded(), runs);
}
