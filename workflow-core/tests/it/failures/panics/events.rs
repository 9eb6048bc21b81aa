//! Events that cannot be dropped, cloned, written or read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use workflow_core::observe::{Observation, Observer};
use workflow_core::prelude::*;
use workflow_core::report::RequestId;
use workflow_core::store::MemoryStore;
use workflow_core::{DisplayItem, RunHandle, RunStatus, SendError};

use super::{Fine, failures_of, goes_on};
use crate::fixtures::{Begin, Gate, Part, everyone_else, outcomes_of};

/// Counts drops. Clones share the count.
#[derive(Debug, Clone, Default)]
struct Dropped(Arc<AtomicUsize>);

impl Dropped {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A part of an event that panics when dropped, unless it is a clone.
#[derive(Debug, Serialize, Deserialize)]
struct Mine {
    #[serde(skip)]
    dropped: Option<Dropped>,
}

impl Mine {
    fn new(dropped: &Dropped) -> Self {
        Self { dropped: Some(dropped.clone()) }
    }
}

impl Clone for Mine {
    fn clone(&self) -> Self {
        Self { dropped: None }
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        if let Some(dropped) = &self.dropped {
            dropped.0.fetch_add(1, Ordering::SeqCst);
            super::explode();
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
struct Enter(Mine);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Shell(Mine);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Other(Mine);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Flare(Mine);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(external)]
struct Drone(Mine);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Mine)]
struct Ask(Mine);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Over(Mine);

struct Field(Dropped);

#[workflow]
impl Field {
    #[step]
    async fn lay(&self, _enter: &Enter, shells: &Emitter<Shell>) -> Result<FanOut<Other>, StepError> {
        for _ in 0..3 {
            shells.emit(Shell(Mine::new(&self.0)))?;
        }
        Ok((0..3).map(|_| Other(Mine::new(&self.0))).collect())
    }

    #[step(reruns)]
    async fn list(&self, shells: &List<Shell>) {
        assert!(!shells.is_empty());
    }

    #[step]
    async fn again(&self, other: Other) -> Shell {
        drop(other);
        Shell(Mine::new(&self.0))
    }

    #[step]
    async fn end(&self, shells: &Gather<Shell>) -> Over {
        assert_eq!(shells.len(), 3);
        Over(Mine::new(&self.0))
    }
}

/// Ignores everything.
struct Idle;

impl Observer for Idle {
    fn observe(&self, _: &Observation) {}
}

// S27: 1 start event, 3 emitted, 3 items, 3 made of them, 1 stop event.
#[tokio::test]
async fn a_log_of_events_that_explode_is_dropped_with_its_run() {
    for stored in [false, true] {
        let dropped = Dropped::default();
        let engine = Engine::builder().workflow(Field(dropped.clone())).workflow(Fine).observer(Idle);
        let engine = if stored { engine.store(MemoryStore::default()) } else { engine };
        let engine = engine.build().unwrap();
        let run = engine.start::<Field>(Enter(Mine::new(&dropped))).await.unwrap();
        run.outcome().await.unwrap();
        let report = run.report().await.unwrap();
        assert_eq!(dropped.count(), 0);
        drop((run, report));
        goes_on(&engine).await;
        engine.cancel_all("the engine is shutting down", std::time::Duration::from_mins(1)).await;
        drop(engine);
        crate::fixtures::until(|| dropped.count() == 11).await;
    }
}

/// Fails while it holds events.
struct Dropping(Dropped, Gate);

#[workflow]
impl Dropping {
    #[step(on_error = "continue")]
    async fn fail(&self, _enter: &Enter, shells: &Emitter<Shell>) -> Result<(), StepError> {
        for _ in 0..2 {
            shells.emit(Shell(Mine::new(&self.0)))?;
        }
        Err(StepError::permanent("no"))
    }

    #[step(on_error = "continue")]
    async fn panic(&self, _enter: &Enter, shells: &Emitter<Shell>) -> Result<(), StepError> {
        for _ in 0..2 {
            shells.emit(Shell(Mine::new(&self.0)))?;
        }
        panic!("no")
    }

    #[step]
    async fn take(&self, _shell: &Shell) {}

    #[step]
    async fn end(&self, _drone: &Drone) -> Over {
        self.1.pass().await;
        Over(Mine { dropped: None })
    }

    #[step]
    async fn late(&self, _drone: &Drone) -> Vec<Shell> {
        self.1.pass().await;
        (0..3).map(|_| Shell(Mine::new(&self.0))).collect()
    }
}

async fn dropping(dropped: &Dropped, gate: &Gate) -> (Engine, RunHandle<Dropping>) {
    let engine = Engine::builder()
        .workflow(Dropping(dropped.clone(), gate.clone()))
        .workflow(Fine)
        .mailbox_capacity(1);
    let engine = engine.build().unwrap();
    let run = engine.start::<Dropping>(Enter(Mine::new(dropped))).await.unwrap();
    everyone_else().await;
    (engine, run)
}

// S23, S27
#[tokio::test]
async fn events_of_a_failed_execution_are_dropped() {
    let dropped = Dropped::default();
    let (engine, run) = dropping(&dropped, &Gate::closed()).await;
    assert_eq!((dropped.count(), run.status()), (4, RunStatus::Waiting));
    goes_on(&engine).await;
}

// S27, S28
#[tokio::test]
async fn a_result_that_is_refused_is_dropped() {
    let (dropped, gate) = (Dropped::default(), Gate::closed());
    let (engine, run) = dropping(&dropped, &gate).await;
    // Both return at once, the later one when the run has ended.
    gate.let_pass(2);
    run.send(Drone(Mine { dropped: None })).await.unwrap();
    run.outcome().await.unwrap();
    let report = run.report().await.unwrap();
    assert!(
        matches!(outcomes_of(&report, "late")[..], [workflow_core::report::ExecutionOutcome::Refused]),
        "{report}"
    );
    assert_eq!(dropped.count(), 4 + 3);
    goes_on(&engine).await;
}

// S27, S33
#[tokio::test]
async fn events_sent_to_an_ending_or_ended_run_are_dropped() {
    let dropped = Dropped::default();
    let (engine, run) = dropping(&dropped, &Gate::closed()).await;
    let cancelled = run.cancel("enough");
    // The run takes none before its end: they wait for room.
    let drones = futures::future::join_all((0..4).map(|_| run.send(Drone(Mine::new(&dropped)))));
    let (cancelled, sent) = futures::join!(cancelled, drones);
    cancelled.unwrap();
    assert!(sent.iter().all(Result::is_err), "{sent:?}");
    let refused = run.send(Drone(Mine::new(&dropped))).await;
    assert!(matches!(refused, Err(SendError::Ended { .. })), "{refused:?}");
    assert_eq!(dropped.count(), 4 + 4 + 1);
    goes_on(&engine).await;
}

struct Showing(Dropped);

#[workflow]
impl Showing {
    #[step]
    async fn show(&self, _enter: &Enter, display: &Display) -> Over {
        for _ in 0..5 {
            display.show(Flare(Mine::new(&self.0)));
        }
        Over(Mine { dropped: None })
    }
}

// S25, S27
#[tokio::test]
async fn displayed_events_are_dropped_for_room_and_with_their_run() {
    let dropped = Dropped::default();
    let engine = Engine::builder().workflow(Showing(dropped.clone())).workflow(Fine).display_capacity(2);
    let engine = engine.build().unwrap();
    let run = engine.start::<Showing>(Enter(Mine { dropped: None })).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(dropped.count(), 3);
    let shown: Vec<DisplayItem> = run.display().collect().await;
    assert_eq!(shown.len(), 1 + 2 + 1);
    drop((shown, run));
    assert_eq!(dropped.count(), 5);
    goes_on(&engine).await;
}

struct Asking(Dropped);

#[workflow]
impl Asking {
    #[step]
    async fn ask(&self, _enter: &Enter) -> Ask {
        Ask(Mine::new(&self.0))
    }

    #[step]
    async fn take(&self, reply: &Reply<Ask>) -> Result<Part, StepError> {
        let _ = reply;
        Ok(Part(1))
    }

    #[step]
    async fn end(&self, _part: &Part, _drone: &Drone) -> Over {
        Over(Mine { dropped: None })
    }
}

// S27, S33
#[tokio::test]
async fn a_reply_that_is_refused_is_dropped_and_one_that_is_taken_goes_with_its_request() {
    let dropped = Dropped::default();
    let engine = Engine::builder().workflow(Asking(dropped.clone())).workflow(Fine).build().unwrap();
    let run = engine.start::<Asking>(Enter(Mine { dropped: None })).await.unwrap();
    everyone_else().await;
    let open = run.requests().await.unwrap();
    let id: RequestId<Ask> = open[0].id().unwrap();
    drop(open);
    let reply = || Mine::new(&dropped);
    run.reply(id, reply()).await.unwrap();
    let again = run.reply(id, reply()).await;
    assert!(matches!(again, Err(SendError::Answered { .. })), "{again:?}");
    assert_eq!(dropped.count(), 1);
    run.send(Drone(Mine { dropped: None })).await.unwrap();
    run.outcome().await.unwrap();
    let ended = run.reply(id, reply()).await;
    assert!(matches!(ended, Err(SendError::Ended { .. })), "{ended:?}");
    drop(run);
    assert_eq!(dropped.count(), 4);
    goes_on(&engine).await;
}

/// The operation in which the event panics.
#[derive(Debug, PartialEq)]
struct Stubborn;

impl Clone for Stubborn {
    fn clone(&self) -> Self {
        panic!("it is one of a kind")
    }
}

impl Serialize for Stubborn {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("it has no words")
    }
}

impl<'de> Deserialize<'de> for Stubborn {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("it has no ears")
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Mule(Stubborn);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
struct Stop(Stubborn);

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = Stubborn)]
struct Offer;

struct Stable;

#[workflow]
impl Stable {
    #[step]
    async fn make(&self, _begin: &Begin) -> (Mule, Offer) {
        (Mule(Stubborn), Offer)
    }

    #[step(on_error = "continue")]
    async fn take(&self, mule: Mule) {
        assert_eq!(mule.0, Stubborn);
    }

    #[step]
    async fn end(&self, _reply: &Reply<Offer>) -> Stop {
        Stop(Stubborn)
    }

    #[step]
    async fn ask(&self, _drone: &Drone) {}
}

// S27
#[tokio::test]
async fn an_event_that_panics_when_it_is_cloned_fails_the_step_that_takes_it_by_value() {
    let engine = Engine::builder().workflow(Stable).workflow(Fine).build().unwrap();
    let run = engine.start::<Stable>(Begin(1)).await.unwrap();
    everyone_else().await;
    let open = run.requests().await.unwrap();
    run.reply(open[0].id::<Offer>().unwrap(), Stubborn).await.unwrap();
    let error = run.outcome().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the run ended with `Stop`, which cannot be taken out of the log: it panicked: it is one of a kind"
    );
    let report = run.report().await.unwrap();
    assert_eq!(report.status, RunStatus::Completed);
    assert_eq!(failures_of(&report, "take"), ["it panicked: it is one of a kind"]);
    goes_on(&engine).await;
}

// S27
#[tokio::test]
async fn an_event_that_panics_when_it_is_written_is_a_failure_only_where_its_bytes_count() {
    let engine = Engine::builder().workflow(Stable).workflow(Fine).max_event_bytes(100).build().unwrap();
    let error = engine.start::<Stable>(Begin(1)).await.unwrap().outcome().await.unwrap_err();
    let text = "step `make` failed (x1, permanent): `Mule` cannot be stored: its `Serialize` panicked: it has no words";
    assert_eq!(error.to_string(), text);
    goes_on(&engine).await;

    let engine = Engine::builder().workflow(Stable).workflow(Fine).build().unwrap();
    let run = engine.start::<Stable>(Begin(1)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let report = run.report_so_far().await.unwrap();
    let problem = report.log[1].value.to_json().unwrap_err();
    assert_eq!(problem.to_string(), "it panicked: it has no words");
    assert!(serde_json::to_string(&report).is_ok());
    goes_on(&engine).await;
}

// S27
#[tokio::test]
async fn a_reply_that_panics_when_it_is_read_is_unfit() {
    let engine = Engine::builder().workflow(Stable).build().unwrap();
    let run = engine.start::<Stable>(Begin(1)).await.unwrap();
    assert_eq!(run.settled().await, RunStatus::Waiting);
    let seq = run.requests().await.unwrap()[0].seq();
    let refused = run.reply_json(seq, serde_json::json!(1)).await;
    let Err(SendError::UnfitReply { problem, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(problem, "its `Deserialize` panicked: it has no ears");
    assert_eq!(run.status(), RunStatus::Waiting);
}

// S27: the library drops each value separately, even during another drop.
#[test]
fn erased_events_that_explode_are_dropped_one_by_one_though_a_thread_panics() {
    let dropped = Dropped::default();
    let events = || Vec::from([(); 3].map(|()| workflow_core::AnyEvent::new(Shell(Mine::new(&dropped)))));
    drop(events());
    let panicked = std::panic::catch_unwind(|| {
        let _events = events();
        panic!("while they are there");
    });
    assert!(panicked.is_err());
    assert_eq!(dropped.count(), 6);
}
