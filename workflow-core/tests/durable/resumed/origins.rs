//! Origins of messages from outside, and repetitions that change nothing (S62).

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::json;
use workflow_core::prelude::*;
use workflow_core::store::{EventStore, MemoryStore, Position, Record};
use workflow_core::{
    AnyRun, Origin, Pause, RecordedRun, RunHandle, RunOptions, RunStatus, SendError, StartError,
};

use crate::fixtures::{Begin, Note};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Allowed(u32);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Allowed)]
struct Allow;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Event)]
#[event(stop)]
struct Sum(u32);

/// Ends with the sum of two notes and a reply.
struct Desk;

#[workflow]
impl Desk {
    #[step]
    async fn ask(&self, _begin: &Begin) -> Allow {
        Allow
    }

    #[step]
    async fn end(&self, allowed: &Reply<Allow>, notes: &FixedList<Note, 2>) -> Sum {
        Sum(allowed.0 + notes.iter().map(|note| note.0).sum::<u32>())
    }
}

/// Waits for a note, and cleans up.
struct Tidied;

#[workflow]
impl Tidied {
    #[step]
    async fn end(&self, _begin: &Begin, note: &Note) -> Sum {
        Sum(note.0)
    }

    #[step(on_end)]
    async fn tidy(&self, _begin: &Begin) {}
}

fn engine(store: &Arc<MemoryStore>) -> Engine {
    Engine::builder().workflow(Desk).workflow(Tidied).store(Arc::clone(store)).build().unwrap()
}

fn by(id: &str) -> Origin {
    Origin::new().by("ada").id(id)
}

async fn started(engine: &Engine) -> RunHandle<Desk> {
    let options = RunOptions::new().id("a").origin(by("start"));
    let run = engine.start_with::<Desk>(Begin(0), options).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    run
}

async fn records(store: &MemoryStore) -> Vec<Record> {
    let records = store.read(&"a".into(), Position(0), usize::MAX).await.unwrap();
    serde_json::from_slice(&serde_json::to_vec(&records).unwrap()).unwrap()
}

/// The origins in the journal, in order.
async fn origins(store: &MemoryStore) -> Vec<Origin> {
    let records = records(store).await;
    let origins = records.into_iter().filter_map(|record| match record {
        Record::EventLogged { origin, .. }
        | Record::RunPaused { origin, .. }
        | Record::RunUnpaused { origin, .. }
        | Record::RunEnded { origin, .. }
        | Record::CleanUpStarted { origin, .. } => origin,
        _ => None,
    });
    origins.collect()
}

/// Sends two notes and the reply, each twice.
async fn all_twice(run: &AnyRun) {
    for _ in 0..2 {
        run.with_origin(by("one")).send(Note(1)).await.unwrap();
        run.with_origin(by("two")).send_json("Note", json!(2)).await.unwrap();
        // The id of the start is known too.
        run.with_origin(by("start")).send(Note(100)).await.unwrap();
    }
    let request = run.requests().await.unwrap()[0].seq();
    let replies = run.with_origin(by("reply"));
    replies.reply_json(request, json!(10)).await.unwrap();
    replies.reply_json(request, json!(10)).await.unwrap();
}

// S62
#[tokio::test]
async fn the_journal_has_the_origin_of_each_and_a_repetition_changes_nothing() {
    let store = Arc::<MemoryStore>::default();
    let engine = engine(&store);
    let run = started(&engine).await;
    all_twice(&run).await;
    assert_eq!(run.outcome().await.unwrap(), Sum(13));
    assert_eq!(origins(&store).await, [by("start"), by("one"), by("two"), by("reply")]);
    let length = records(&store).await.len();

    // Also after the end, here and by a handle of a later process.
    for run in [run.any().clone(), self::engine(&store).attach_any("a").await.unwrap()] {
        run.with_origin(by("one")).send(Note(1)).await.unwrap();
        run.with_origin(by("one")).send_json("Note", "not even a note").await.unwrap();
        run.with_origin(by("reply")).reply_json(workflow_core::Seq(2), json!(10)).await.unwrap();
        run.with_origin(by("two")).cancel("repeated").await.unwrap();
        for other in [run.with_origin(by("other")), run.with_origin(Origin::new().by("ada")), run.clone()] {
            assert!(matches!(other.send(Note(1)).await, Err(SendError::Ended { .. })));
            assert!(matches!(other.cancel("late").await, Err(SendError::Ended { .. })));
        }
    }
    assert_eq!(records(&store).await.len(), length);

    let report = run.report().await.unwrap();
    let logged: Vec<_> = report.log.iter().filter_map(|logged| logged.origin.clone()).collect();
    assert_eq!(logged, [by("start"), by("one"), by("two"), by("reply")]);
    assert_eq!(report.cancelled_by, None);
}

// S62, S39
#[tokio::test]
async fn a_resumed_run_knows_what_it_has_taken() {
    let store = Arc::<MemoryStore>::default();
    let first = engine(&store);
    let run = started(&first).await;
    run.with_origin(by("one")).send(Note(1)).await.unwrap();
    first.shut_down(Duration::ZERO).await;

    let run = engine(&store).attach::<Desk>("a").await.unwrap();
    all_twice(&run).await;
    assert_eq!(run.outcome().await.unwrap(), Sum(13));
}

// S62
#[tokio::test]
async fn a_refused_act_leaves_no_id() {
    let store = Arc::<MemoryStore>::default();
    let engine = engine(&store);
    let run = started(&engine).await;
    let one = run.with_origin(by("one"));
    assert!(matches!(one.send_json("Note", "one").await, Err(SendError::Unfit { .. })));
    assert!(matches!(one.reply_json(workflow_core::Seq(7), json!(1)).await, Err(SendError::NotOpen { .. })));
    let long = "x".repeat(257);
    for origin in [Origin::new().by(&*long), Origin::new().id(&*long)] {
        let refused = run.with_origin(origin.clone()).send(Note(1)).await;
        assert!(matches!(refused, Err(SendError::OriginTooLong { bytes: 257, limit: 256 })));
        let refused = engine.start_with::<Desk>(Begin(0), RunOptions::new().origin(origin)).await;
        assert!(matches!(refused, Err(StartError::OriginTooLong { bytes: 257, limit: 256 })));
    }
    one.send(Note(1)).await.unwrap();
    assert_eq!(origins(&store).await, [by("start"), by("one")]);
    // A start is known by the id of its run.
    let again = engine.start_with::<Desk>(Begin(0), RunOptions::new().id("a").origin(by("start"))).await;
    assert!(matches!(again, Err(StartError::DuplicateRun { .. })));
}

// S62, S31
#[tokio::test]
async fn a_cancel_has_its_origin_where_the_clean_up_begins_too() {
    let store = Arc::<MemoryStore>::default();
    let run = engine(&store).start_with::<Tidied>(Begin(0), RunOptions::new().id("a")).await.unwrap();
    run.settled().await;
    let cancels = run.with_origin(by("cancel"));
    cancels.cancel("enough").await.unwrap();
    cancels.cancel("enough").await.unwrap();
    assert_eq!(origins(&store).await, [by("cancel"), by("cancel")]);
    let recorded = RecordedRun::of(&"a".into(), &records(&store).await).unwrap();
    assert_eq!(recorded.report().cancelled_by, Some(by("cancel")));
    assert_eq!(recorded.report().cancel_reason.as_deref(), Some("enough"));
    assert_eq!(recorded.report().executions("tidy"), 1);
}

// S62, S39
#[tokio::test]
async fn a_redriven_run_keeps_its_origins_and_ids() {
    let store = Arc::<MemoryStore>::default();
    let engine = engine(&store);
    let run = started(&engine).await;
    let cancels = run.with_origin(by("cancel"));
    cancels.cancel("enough").await.unwrap();
    assert_eq!(run.status(), RunStatus::Cancelled);
    cancels.cancel("enough").await.unwrap();
    assert!(matches!(run.cancel("again").await, Err(SendError::Ended { .. })));
    assert_eq!(origins(&store).await, [by("start"), by("cancel")]);
    let report = run.report().await.unwrap();
    assert_eq!(
        (&report.cancelled_by, report.cancel_reason.as_deref()),
        (&Some(by("cancel")), Some("enough"))
    );
    let recorded = RecordedRun::of(&"a".into(), &records(&store).await).unwrap();
    assert_eq!(recorded.report().cancel_reason.as_deref(), Some("enough"));

    // The same cancel does not end it again.
    let run = engine.redrive::<Desk>("a").await.unwrap();
    run.settled().await;
    run.with_origin(by("cancel")).cancel("enough").now_or_never();
    run.with_origin(by("cancel")).cancel("enough").await.unwrap();
    assert_eq!(run.status(), RunStatus::Waiting);
    let report = run.report_so_far().await.unwrap();
    assert_eq!((&report.cancelled_by, &report.cancel_reason), (&None, &None));
    all_twice(&run).await;
    assert_eq!(run.outcome().await.unwrap(), Sum(13));
}

/// The author of the pause, if the run is paused.
async fn paused_by(run: &AnyRun) -> Option<Origin> {
    run.report_so_far().await.unwrap().paused.as_ref().and_then(|pause| pause.origin.clone())
}

// S61, S62: with a store and without one.
#[tokio::test]
async fn a_repeated_pause_or_unpause_changes_nothing_whatever_has_come_between() {
    let store = Arc::<MemoryStore>::default();
    for engine in [engine(&store), Engine::builder().workflow(Desk).build().unwrap()] {
        let run = started(&engine).await.any().clone();
        let (first, again) = (run.with_origin(by("pause")), run.with_origin(by("pause again")));
        first.pause(Pause::AfterRunning).await.unwrap();
        assert_eq!((run.settled().await, paused_by(&run).await), (RunStatus::Paused, Some(by("pause"))));
        // A pause that changes nothing leaves its id, and not its author.
        again.pause(Pause::AfterRunning).await.unwrap();
        assert_eq!(paused_by(&run).await, Some(by("pause")));
        run.with_origin(by("unpause")).unpause().await.unwrap();
        for pauses in [&first, &again] {
            pauses.pause(Pause::AfterRunning).await.unwrap();
            assert_eq!(run.settled().await, RunStatus::Waiting);
        }
        // Nor does an unpause that changes nothing.
        run.with_origin(by("unpause again")).unpause().await.unwrap();
        assert_eq!(run.settled().await, RunStatus::Waiting);
        run.pause(Pause::AfterRunning).await.unwrap();
        for id in ["unpause", "unpause again"] {
            run.with_origin(by(id)).unpause().await.unwrap();
            assert_eq!((run.settled().await, paused_by(&run).await), (RunStatus::Paused, None));
        }
        let refused = run.with_origin(Origin::new().id("x".repeat(257))).pause(Pause::AfterRunning).await;
        assert!(matches!(refused, Err(SendError::OriginTooLong { .. })));
        run.unpause().await.unwrap();
        all_twice(&run).await;
        run.outcome_any().await.unwrap();
        first.pause(Pause::AfterRunning).await.unwrap();
        run.with_origin(by("unpause again")).unpause().await.unwrap();
        let late = run.with_origin(by("other")).pause(Pause::AfterRunning).await;
        assert!(matches!(late, Err(SendError::Ended { .. })));
    }
    let ids = ["start", "pause", "pause again", "unpause", "unpause again", "one", "two", "reply"];
    assert_eq!(origins(&store).await, ids.map(by));
}

// S61, S62, S39
#[tokio::test]
async fn a_resumed_run_knows_who_paused_it() {
    let store = Arc::<MemoryStore>::default();
    let first = engine(&store);
    let run = started(&first).await;
    let pauses = run.with_origin(by("pause"));
    pauses.pause(Pause::AfterRunning).await.unwrap();
    first.shut_down(Duration::ZERO).await;
    let recorded = RecordedRun::of(&"a".into(), &records(&store).await).unwrap();
    assert_eq!(recorded.report().paused.as_ref().unwrap().origin, Some(by("pause")));
    assert_eq!(recorded.requests().len(), 1);

    let second = engine(&store);
    let run = second.attach::<Desk>("a").await.unwrap();
    assert_eq!((run.settled().await, paused_by(&run).await), (RunStatus::Paused, Some(by("pause"))));
    run.unpause().await.unwrap();
    run.with_origin(by("pause")).pause(Pause::AfterRunning).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
}

// S62: without a store too, where the state of a waiting run is small.
#[tokio::test]
async fn a_run_without_a_journal_knows_origins_too() {
    let engine = Engine::builder().workflow(Desk).build().unwrap();
    let run = engine.start::<Desk>(Begin(0)).await.unwrap();
    run.settled().await;
    let run = run.any().clone();
    run.with_origin(by("start")).send(Note(0)).now_or_never();
    for _ in 0..2 {
        run.settled().await;
        run.with_origin(by("one")).send(Note(1)).await.unwrap();
    }
    assert_eq!(run.report_so_far().await.unwrap().log.len(), 4);
}
