//! Edge cases of a run's end: refusals, drops, freed permits, and notifications.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_core::errors::{ContextError, EmitError};
use workflow_core::observe::{Observation, Observed, Observer};
use workflow_core::prelude::*;
use workflow_core::report::ExecutionOutcome;
use workflow_core::{DisplayItem, RunOptions, RunStatus};
use workflow_testkit::Scenario;

use crate::fixtures::{Alive, Begin, Close, Done, Gate, Item, Part, everyone_else, outcomes_of};

struct Sleeper(Alive);

#[workflow]
impl Sleeper {
    #[step]
    async fn sleep(&self, begin: &Begin) -> Done {
        let _guard = self.0.guard();
        std::future::pending::<()>().await;
        Done(begin.0)
    }
}

// S31
#[tokio::test]
async fn shutting_down_cancels_a_run_without_handles() {
    let alive = Alive::default();
    let engine = Engine::builder().workflow(Sleeper(alive.clone())).build().unwrap();
    drop(engine.start::<Sleeper>(Begin(1)).await.unwrap());
    everyone_else().await;
    assert_eq!(alive.count(), 1);
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    assert_eq!((alive.count(), engine.running().len()), (0, 0));
}

struct Quick;

#[workflow]
impl Quick {
    #[step]
    async fn end(&self, begin: &Begin) -> Done {
        Done(begin.0)
    }
}

#[tokio::test]
async fn an_id_is_free_as_soon_as_the_outcome_is_known() {
    let engine = Engine::builder().workflow(Quick).max_concurrent_runs(1).build().unwrap();
    for turn in 0..20 {
        let options = RunOptions::new().id("the only one");
        let run = engine.start_with::<Quick>(Begin(turn), options).await.unwrap();
        assert_eq!(run.outcome().await.unwrap(), Done(turn));
    }
}

#[tokio::test]
async fn shutting_down_ends_starts_that_wait_for_a_permit() {
    let alive = Alive::default();
    let engine = Engine::builder().workflow(Sleeper(alive.clone())).max_concurrent_runs(1).build().unwrap();
    let first = engine.start::<Sleeper>(Begin(1)).await.unwrap();
    let second = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start::<Sleeper>(Begin(2)).await.map(|_| ()) }
    });
    everyone_else().await;
    engine.cancel_all("the engine is shutting down", Duration::from_mins(1)).await;
    assert!(second.await.unwrap().is_err());
    assert_eq!(first.status(), RunStatus::Cancelled);
}

struct Halves;

#[workflow]
impl Halves {
    #[step]
    async fn split(&self, begin: &Begin) -> FanOut<Item> {
        (0..begin.0).map(Item).collect()
    }

    #[step]
    async fn half(&self, item: &Item) -> Result<Part, StepError> {
        if item.0 == 0 { Err(StepError::permanent("zero")) } else { Ok(Part(item.0)) }
    }

    #[step]
    async fn join(&self, parts: Gather<Part>) -> Done {
        Done(u32::try_from(parts.len()).unwrap())
    }
}

// S28 S49
#[tokio::test]
async fn a_sibling_that_had_returned_when_its_group_failed_is_not_reported_as_succeeded() {
    let run = Scenario::new(Halves).start(Begin(2)).await;
    run.outcome().unwrap_err();
    let outcomes = outcomes_of(run.report(), "half");
    assert!(matches!(outcomes[0], ExecutionOutcome::Failed { .. }), "{outcomes:?}");
    assert!(!outcomes.contains(&&ExecutionOutcome::Succeeded), "{outcomes:?}");
}

#[derive(Default)]
struct Late {
    gate: Option<Gate>,
    context: Mutex<Option<RunContext>>,
    emitter: Mutex<Option<Emitter<Part>>>,
}

#[workflow]
impl Late {
    #[step]
    async fn keep(&self, _begin: &Begin, context: RunContext, parts: Emitter<Part>) -> Done {
        *self.context.lock().unwrap() = Some(context);
        *self.emitter.lock().unwrap() = Some(parts);
        match &self.gate {
            Some(gate) => gate.pass().await,
            None => panic!("on purpose"),
        }
        Done(0)
    }
}

struct Shared(Arc<Late>);

#[workflow]
impl Shared {
    #[step]
    async fn keep(&self, begin: &Begin, context: RunContext, parts: Emitter<Part>) -> Done {
        self.0.keep(begin, context, parts).await
    }
}

// S26 S31
#[tokio::test]
async fn a_context_that_outlives_its_run_keeps_nothing_any_more() {
    let late = Arc::new(Late { gate: Some(Gate::closed()), ..Late::default() });
    let engine = Engine::builder().workflow(Shared(Arc::clone(&late))).build().unwrap();
    let run = engine.start::<Shared>(Begin(1)).await.unwrap();
    everyone_else().await;
    run.cancel("enough").await.unwrap();
    let context = late.context.lock().unwrap().take().unwrap();
    assert!(matches!(context.increment("count", 1).await, Err(ContextError::RunEnded)));
}

// S7 S27
#[tokio::test]
async fn an_emitter_of_an_execution_that_panicked_takes_nothing_any_more() {
    let late = Arc::new(Late::default());
    Shared(Arc::clone(&late)).run(Begin(1)).await.unwrap_err();
    let emitter = late.emitter.lock().unwrap().take().unwrap();
    assert_eq!(emitter.emit(Part(1)), Err(EmitError::Ended));
}

struct Relay {
    passes: Gate,
}

#[workflow]
impl Relay {
    #[step]
    async fn begin(&self, begin: &Begin) -> Item {
        Item(begin.0)
    }

    #[step]
    async fn end(&self, _item: &Item, close: &Close) -> Done {
        let Close = close;
        self.passes.pass().await;
        Done(1)
    }
}

// S21
#[tokio::test]
async fn sending_to_a_waiting_run_needs_no_permit() {
    let passes = Gate::closed();
    let engine =
        Engine::builder().workflow(Relay { passes: passes.clone() }).max_concurrent_runs(1).build().unwrap();
    let first = engine.start::<Relay>(Begin(1)).await.unwrap();
    first.settled().await;
    let second = engine.start::<Relay>(Begin(2)).await.unwrap();
    second.settled().await;
    first.send(Close).await.unwrap();
    everyone_else().await;
    // The first run has the only permit now, and the second still accepts messages.
    second.send(Close).await.unwrap();
    passes.let_pass(2);
    assert_eq!(first.outcome().await.unwrap(), Done(1));
    assert_eq!(second.outcome().await.unwrap(), Done(1));
}

#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<String>>>);

impl Observer for Screen {
    fn observe(&self, observation: &Observation) {
        let line = match &observation.what {
            Observed::Displayed(DisplayItem::Shown { step, .. }) => format!("{step} shows"),
            Observed::Displayed(DisplayItem::Retracted { step, .. }) => format!("{step} retracts"),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(display)]
struct Progress;

struct Shows;

#[workflow]
impl Shows {
    #[step]
    async fn show(&self, _begin: &Begin, display: &Display) -> Result<Done, StepError> {
        display.show(Progress);
        Err(StepError::permanent("no"))
    }
}

// S25
#[tokio::test]
async fn observers_see_what_is_shown_and_one_retraction_when_the_attempt_fails() {
    let screen = Screen::default();
    let engine = Engine::builder().workflow(Shows).observer(screen.clone()).build().unwrap();
    let run = engine.start::<Shows>(Begin(1)).await.unwrap();
    run.outcome().await.unwrap_err();
    engine.cancel_all("the engine is shutting down", Duration::MAX).await;
    assert_eq!(*screen.0.lock().unwrap(), ["show shows", "show retracts"]);
}
