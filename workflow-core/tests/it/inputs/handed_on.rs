//! The injectables of an attempt as a value that its step hands on (S6, S25, S57).

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, Injectables, Roles, StepCall};
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OutputDef, PreconditionDef, StepDef, StepIndex,
};
use workflow_core::{AnyRun, Children, DisplayItem, RunOptions, RuntimeWorkflow, StartError, Steps};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(display)]
struct Note(u32);

/// Where a step leaves its injectables, so that they outlive it.
type Left = Arc<Mutex<Vec<Injectables>>>;

/// One step, which hands its injectables on, lets `use_it` use them, and then fails where the start event is `false`.
fn workflow(left: &Left, use_it: fn(&Injectables)) -> RuntimeWorkflow {
    let work = StepDef::new("work").input(InputDef::one("Begin")).output(OutputDef::event("Done"));
    let table = DependencyTable::builder("handing")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::new("Done", Roles::NONE.stop()))
        .step(work)
        .build()
        .unwrap();
    let left = left.clone();
    RuntimeWorkflow::new(table, move |mut call: StepCall| {
        let left = left.clone();
        async move {
            let injectables = call.injectables()?;
            assert_eq!(injectables.idempotency_key(), call.info().idempotency_key());
            assert!(!injectables.may_have_begun());
            use_it(&injectables);
            left.lock().unwrap().push(injectables);
            let succeeds = call.input(0).json() == Some(&json!(true));
            if !succeeds {
                return Err(StepError::permanent("it fails"));
            }
            call.emit("Done", json!(1))?;
            call.commit(())
        }
    })
}

async fn started(workflow: RuntimeWorkflow, succeeds: bool) -> AnyRun {
    let engine = Engine::builder().workflows([workflow]).build().unwrap();
    engine.start_json("handing", "Begin", succeeds, RunOptions::new().id("r")).await.unwrap()
}

/// That of an attempt that has ended.
async fn is_over(injectables: &Injectables) {
    assert!(injectables.cancellation().is_cancelled());
    let refused = injectables.children().start_json("handing", "Begin", true, RunOptions::new()).await;
    assert!(matches!(refused.unwrap_err(), StartError::ParentEnded { run } if run.as_str() == "r"));
    assert_eq!(injectables.idempotency_key(), "r/0/work/1");
}

// S25
#[tokio::test]
async fn values_that_were_handed_on_end_with_the_attempt() {
    let taken = |injectables: &Injectables| {
        injectables.display().show(Note(1));
        assert!(!injectables.cancellation().is_cancelled());
        drop(injectables.children());
    };
    for succeeds in [true, false] {
        let left = Left::default();
        let run = started(workflow(&left, taken), succeeds).await;
        let shown = run.display();
        assert_eq!(run.outcome_any().await.is_ok(), succeeds);
        let shown: Vec<_> = shown.collect().await;
        let notes = shown.iter().filter(|item| item.event::<Note>().is_some()).count();
        let retracted = shown.iter().any(|item| matches!(item, DisplayItem::Retracted { .. }));
        assert_eq!((notes, retracted), (1, !succeeds), "{shown:?}");
        let left = left.lock().unwrap().remove(0);
        is_over(&left).await;
    }
}

// S25
#[tokio::test]
async fn values_that_are_asked_for_after_the_attempt_have_ended() {
    for succeeds in [true, false] {
        let left = Left::default();
        let run = started(workflow(&left, |_| {}), succeeds).await;
        let shown = run.display();
        assert_eq!(run.outcome_any().await.is_ok(), succeeds);
        let late = left.lock().unwrap().remove(0);
        is_over(&late).await;
        late.display().show(Note(1));
        let shown: Vec<_> = shown.collect().await;
        assert!(shown.iter().all(|item| item.event::<Note>().is_none()), "{shown:?}");
    }
}

// S25: a display that is first asked for after the failure shows nothing while the run goes on.
#[tokio::test]
async fn a_failed_attempt_shows_nothing_late() {
    let left = Left::default();
    let (waits, work) = (left.clone(), StepDef::new("work"));
    let table = DependencyTable::builder("handing")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::failure("StepFailed"))
        .event(EventDef::new("Go", Roles::NONE.external()))
        .event(EventDef::new("Done", Roles::NONE.stop()))
        .step(work.input(InputDef::one("Begin")).output(OutputDef::optional("Done")))
        .step(StepDef::new("mend").input(InputDef::one("StepFailed")).catches(["work"]))
        .step(StepDef::new("end").input(InputDef::one("Go")).output(OutputDef::event("Done")))
        .build_unchecked()
        .unwrap();
    let steps = RuntimeWorkflow::new(table, move |mut call: StepCall| {
        let waits = waits.clone();
        async move {
            match call.step() {
                "work" => {
                    waits.lock().unwrap().push(call.injectables()?);
                    return Err(StepError::permanent("it fails"));
                }
                "end" => call.emit("Done", json!(1))?,
                _ => {}
            }
            call.commit(())
        }
    });
    let engine = Engine::builder().workflows([steps]).build().unwrap();
    let run = engine.start_json("handing", "Begin", true, RunOptions::new().id("r")).await.unwrap();
    let mut shown = run.display();
    run.settled().await;
    assert_eq!(run.report_so_far().await.unwrap().executions("mend"), 1);
    let late = left.lock().unwrap().remove(0);
    late.display().show(Note(1));
    assert!(shown.next().now_or_never().is_none());
    run.send_json("Go", Value::Null).await.unwrap();
    run.outcome_any().await.unwrap();
    let rest: Vec<_> = shown.collect().await;
    assert!(rest.iter().all(|item| item.event::<Note>().is_none()), "{rest:?}");
}

/// Asks in its precondition, and keeps the answer.
struct Asks(Arc<Mutex<Option<String>>>);

impl Steps for Asks {
    fn call(
        self: Arc<Self>,
        _step: StepIndex,
        mut call: StepCall,
    ) -> BoxFuture<'static, Result<Emitted, StepError>> {
        Box::pin(async move {
            call.emit("Done", json!(1))?;
            call.commit(())
        })
    }

    fn check(&self, _step: StepIndex, call: &mut StepCall) -> Result<bool, StepError> {
        *self.0.lock().unwrap() = call.injectables().err().map(|error| error.to_string());
        Ok(true)
    }
}

// S6
#[tokio::test]
async fn a_precondition_hands_nothing_on() {
    let ready = PreconditionDef::new("is_ready").input(InputDef::one("Begin"));
    let work = StepDef::new("work").input(InputDef::one("Begin")).precondition(ready);
    let table = DependencyTable::builder("handing")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::new("Done", Roles::NONE.stop()))
        .step(work.output(OutputDef::event("Done")))
        .build()
        .unwrap();
    let asked = Arc::new(Mutex::new(None));
    let run = started(RuntimeWorkflow::new(table, Asks(asked.clone())), true).await;
    run.outcome_any().await.unwrap();
    let answer = asked.lock().unwrap().clone();
    assert!(answer.as_deref().is_some_and(|error| error.contains("precondition")), "{answer:?}");
}

// S6
#[tokio::test]
async fn children_of_no_run_start_nothing() {
    let children = Children::detached();
    let refused = children.start_json("any", "Begin", 1, RunOptions::new()).await.unwrap_err();
    assert!(matches!(refused, StartError::ParentEnded { .. }), "{refused}");
    let refused = children.run_json("any", "Begin", 1, RunOptions::new()).await.unwrap_err();
    assert!(matches!(refused, RunError::Start(StartError::ParentEnded { .. })), "{refused}");
}
