//! The observations of observers, and the isolation of runs from them.

use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use workflow_core::observe::{Observation, Observed, Observer, TracingObserver};
use workflow_core::prelude::*;
use workflow_core::{RunOptions, RunStatus};

use crate::fixtures::{Begin, Close, Done, Item, Part};

/// Records its observations: a line each, with the run.
#[derive(Clone, Default)]
struct Scribe(Arc<Mutex<Vec<(String, String)>>>);

impl Scribe {
    fn lines_of(&self, run: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|(of, _)| of == run).map(|(_, line)| line.clone()).collect()
    }
}

impl Observer for Scribe {
    fn observe(&self, observation: &Observation) {
        let line = line(&observation.what);
        self.0.lock().unwrap().push((observation.run.to_string(), line));
    }
}

fn line(what: &Observed) -> String {
    match what {
        Observed::RunStarted => "run started".into(),
        Observed::EventLogged { seq, event, .. } => format!("{seq} {}", event.name()),
        Observed::PreconditionAnswered { step, precondition, answer, .. } => {
            format!("{precondition} of {step}: {answer:?}")
        }
        Observed::ExecutionStarted { execution, step, .. } => format!("{execution} {step} started"),
        Observed::ExecutionSucceeded { execution, .. } => format!("{execution} succeeded"),
        Observed::ExecutionFailed { execution, error, .. } => format!("{execution} failed: {error}"),
        Observed::ExecutionDropped { execution, .. } => format!("{execution} dropped"),
        Observed::CommitRefused { execution, events, .. } => {
            format!("{execution} refused: {}", events.join(" "))
        }
        Observed::RunWaiting => "run waits".into(),
        Observed::RunEnded { status } => format!("run ended: {status}"),
        other => format!("{other:?}"),
    }
}

struct Busy;

#[workflow]
impl Busy {
    #[step]
    async fn make(&self, begin: &Begin) -> Item {
        tokio::task::yield_now().await;
        Item(begin.0)
    }

    #[step(on_error = "continue")]
    async fn fail(&self, _item: &Item) -> Result<Part, StepError> {
        Err(StepError::permanent("no"))
    }

    #[step(precondition = willing)]
    async fn unwilling(&self, item: &Item) -> Part {
        Part(item.0)
    }

    #[precondition]
    fn willing(_item: &Item) -> bool {
        false
    }

    #[step]
    async fn sleep(&self, item: &Item) -> Part {
        std::future::pending::<()>().await;
        Part(item.0)
    }

    #[step]
    async fn end(&self, close: &Close) -> Done {
        let Close = close;
        Done(0)
    }

    #[step]
    async fn late(&self, _close: &Close) -> Part {
        Part(0)
    }
}

async fn busy(engine: &Engine, id: &str) {
    let run = engine.start_with::<Busy>(Begin(1), RunOptions::new().id(id)).await.unwrap();
    crate::fixtures::everyone_else().await;
    run.send(Close).await.unwrap();
    run.outcome().await.unwrap();
}

const STORY: [&str; 16] = [
    "run started",
    "#1 Begin",
    "x1 make started",
    "x1 succeeded",
    "#2 Item",
    "x2 fail started",
    "willing of unwilling: Some(false)",
    "x3 sleep started",
    "x2 failed: no",
    "#3 Close",
    "x4 end started",
    "x5 late started",
    "x4 succeeded",
    "#4 Done",
    "x5 refused: Part",
    "x3 dropped",
];

#[tokio::test]
async fn an_observer_sees_everything_of_a_run_in_the_order_in_which_it_happened() {
    let scribe = Scribe::default();
    let engine = Engine::builder().workflow(Busy).observer(scribe.clone()).build().unwrap();
    busy(&engine, "r").await;
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    let lines = scribe.lines_of("r");
    assert_eq!(lines[..16], STORY, "{lines:#?}");
    assert_eq!(lines[16..], ["run ended: completed"]);
}

/// Receives observations synchronously, before the run continues.
struct AtOnce(Scribe);

impl Observer for AtOnce {
    fn observe(&self, observation: &Observation) {
        self.0.observe(observation);
        std::panic::resume_unwind(Box::new("on purpose"));
    }

    fn is_synchronous(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_synchronous_observer_is_never_behind_and_harms_no_run() {
    let scribe = Scribe::default();
    let engine = Engine::builder().workflow(Busy).observer(AtOnce(scribe.clone())).build().unwrap();
    busy(&engine, "r").await;
    let lines = scribe.lines_of("r");
    assert_eq!(lines[..16], STORY, "{lines:#?}");
    assert_eq!(lines[16..], ["run ended: completed"]);
}

#[tokio::test]
async fn observations_of_several_runs_keep_the_order_of_each() {
    let scribe = Scribe::default();
    let engine = Engine::builder().workflow(Busy).observer(scribe.clone()).build().unwrap();
    let runs = ["a", "b", "c"].map(|id| busy(&engine, id));
    futures::future::join_all(runs).await;
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    for run in ["a", "b", "c"] {
        assert_eq!(scribe.lines_of(run)[..16], STORY);
    }
}

struct Plain;

#[workflow]
impl Plain {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

async fn ends_well(engine: &Engine) {
    let run = engine.start::<Plain>(Begin(1)).await.unwrap();
    assert_eq!(run.outcome().await.unwrap(), Done(1));
    assert_eq!(run.status(), RunStatus::Completed);
}

struct Panics;

impl Observer for Panics {
    fn observe(&self, _: &Observation) {
        std::panic::resume_unwind(Box::new("on purpose"));
    }
}

#[tokio::test]
async fn an_observer_that_panics_harms_neither_runs_nor_other_observers() {
    let scribe = Scribe::default();
    let engine = Engine::builder().workflow(Plain).observer(Panics).observer(scribe.clone()).build().unwrap();
    ends_well(&engine).await;
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    assert_eq!(scribe.0.lock().unwrap().len(), 6);
}

/// Blocks at its first observation, until the test releases it.
struct Blocks(Mutex<Receiver<()>>);

impl Blocks {
    fn new() -> (Sender<()>, Self) {
        let (release, released) = channel();
        (release, Self(Mutex::new(released)))
    }
}

impl Observer for Blocks {
    fn observe(&self, _: &Observation) {
        // The receive fails only if the test is over.
        let _ = self.0.lock().unwrap().recv();
    }
}

#[tokio::test]
async fn an_observer_that_blocks_harms_neither_runs_nor_other_observers() {
    let (release, blocks) = Blocks::new();
    let scribe = Scribe::default();
    let engine = Engine::builder().workflow(Plain).observer(blocks).observer(scribe.clone()).build().unwrap();
    for _ in 0..1_000 {
        ends_well(&engine).await;
    }
    drop(release);
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    assert_eq!(scribe.0.lock().unwrap().iter().filter(|(_, line)| line == "run started").count(), 1_000);
}

#[tokio::test]
async fn a_shut_down_waits_for_observers_only_up_to_its_limit() {
    let (release, blocks) = Blocks::new();
    let engine = Engine::builder().workflow(Plain).observer(blocks).build().unwrap();
    ends_well(&engine).await;
    engine.cancel_all("the engine is shutting down", Duration::ZERO).await;
    drop(release);
}

/// For every `tracing` event: its spans, outermost first, and then the event itself.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut path = String::new();
        for span in context.event_scope(event).into_iter().flatten().collect::<Vec<_>>().iter().rev() {
            write!(path, "{} > ", span.name()).unwrap();
        }
        let mut message = Message::default();
        event.record(&mut message);
        self.0.lock().unwrap().push(format!("{path}{}", message.0));
    }

    fn on_new_span(&self, attributes: &tracing::span::Attributes<'_>, _: &tracing::Id, _: Context<'_, S>) {
        self.0.lock().unwrap().push(attributes.metadata().name().to_owned());
    }
}

#[derive(Default)]
struct Message(String);

impl tracing::field::Visit for Message {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

struct Logs;

#[workflow]
impl Logs {
    #[step]
    async fn log(&self, begin: &Begin) -> Done {
        tracing::info!("before");
        tokio::task::yield_now().await;
        tracing::info!("after");
        Done(begin.0)
    }
}

#[tokio::test]
async fn what_a_step_traces_lies_in_its_execution_and_that_in_its_run() {
    let collector = Collector::default();
    let _subscribed =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(collector.clone()));
    let engine = Engine::builder().workflow(Logs).observer(TracingObserver::new()).build().unwrap();
    let run = engine.start_with::<Logs>(Begin(1), RunOptions::new().id("r")).await.unwrap();
    run.outcome().await.unwrap();
    tracing::info!("outside");
    let expected = [
        "workflow.run",
        "workflow.execution",
        "workflow.run > workflow.execution > before",
        "workflow.run > workflow.execution > after",
        "workflow.run > run ended",
        "outside",
    ];
    assert_eq!(*collector.0.lock().unwrap(), expected);
}

#[tokio::test]
async fn without_a_tracing_observer_there_are_no_spans() {
    let collector = Collector::default();
    let _subscribed =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(collector.clone()));
    Logs.run(Begin(1)).await.unwrap();
    assert_eq!(*collector.0.lock().unwrap(), ["before", "after"]);
}
