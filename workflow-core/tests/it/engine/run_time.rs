//! Workflows that a program builds at run time (S57).

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use workflow_core::errors::{BuildProblem, EmitError};
use workflow_core::prelude::*;
use workflow_core::signature::{Emitted, Roles, StepCall};
use workflow_core::store::MemoryStore;
use workflow_core::table::{
    DependencyTable, EventDef, InputDef, OnEnd, OutputDef, PreconditionDef, StepDef, StepIndex, TableBuilder,
};
use workflow_core::{
    AnyRun, ErrorClass, InputValue, JsonOutput, OutputForm, ResumeError, Retries, RetryPolicy, RunOptions,
    RunStatus, RuntimeWorkflow, SendError, Steps,
};

use crate::fixtures::{Begin, Done, everyone_else};

fn table() -> TableBuilder {
    DependencyTable::builder("letters")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::new("Item", Roles::NONE))
        .event(EventDef::new("Done", Roles::NONE.stop()))
}

/// A workflow of one step, `work(Begin)`, with these outputs beside the stop event.
fn works<F>(outputs: Vec<OutputDef>, steps: fn(StepCall) -> F) -> RuntimeWorkflow
where
    F: Future<Output = Result<Emitted, StepError>> + Send + 'static,
{
    let work = StepDef::new("work").input(InputDef::one("Begin")).output(OutputDef::event("Done"));
    let work = outputs.into_iter().fold(work, StepDef::output);
    RuntimeWorkflow::new(table().step(work).build_unchecked().unwrap(), steps)
}

async fn started(workflow: RuntimeWorkflow) -> AnyRun {
    let engine = Engine::builder().workflows([workflow]).build().unwrap();
    engine.start_json("letters", "Begin", json!({ "n": 3 }), RunOptions::new()).await.unwrap()
}

async fn failure(workflow: RuntimeWorkflow) -> String {
    let error = started(workflow).await.outcome_any().await.unwrap_err();
    assert!(matches!(error, RunError::StepFailed { attempts: 1, .. }), "{error:?}");
    error.to_string()
}

// S57
#[tokio::test]
async fn an_output_that_the_step_does_not_declare_fails_the_execution() {
    let text = failure(works(vec![OutputDef::optional("Item")], |mut call: StepCall| async move {
        let undeclared = call.emit("Begin", json!(1)).unwrap_err();
        assert!(matches!(undeclared, EmitError::Undeclared { .. }));
        call.emit("Lost", json!(1))?;
        call.commit(())
    }));
    let text = text.await;
    assert!(text.contains("the step does not declare `Lost`: it emits `Done` and `Item`"), "{text}");

    let text = failure(works(vec![OutputDef::optional("Item")], |mut call: StepCall| async move {
        let fan_out: FanOut<Value> = [json!(1)].into_iter().collect();
        let other = call.emit("Item", fan_out).unwrap_err();
        assert_eq!(other, EmitError::OtherForm { event: "Item".into(), form: OutputForm::FanOut });
        call.emit("Item", JsonOutput::Expiring(json!(1), Duration::from_secs(1)))?;
        call.commit(())
    }));
    let text = text.await;
    assert!(text.contains("the step does not declare `Item` as a request that expires"), "{text}");

    // A Rust type is no output either, for example from a middleware.
    let text = failure(works(vec![], |call: StepCall| async move { call.commit(Done(1)) })).await;
    assert!(text.contains("`Done`"), "{text}");
}

// S57
#[tokio::test]
async fn an_output_is_emitted_as_often_as_the_step_declares() {
    let never = failure(works(vec![], |call: StepCall| async move { call.commit(()) })).await;
    assert!(never.contains("the step emits `Done` once, and emitted 0"), "{never}");
    let twice = failure(works(vec![OutputDef::optional("Item")], |mut call: StepCall| async move {
        call.emit("Item", json!(1))?;
        call.emit("Item", json!(2))?;
        call.emit("Done", json!(1))?;
        call.commit(())
    }));
    let twice = twice.await;
    assert!(twice.contains("the step emits `Item` at most once, and emitted 2"), "{twice}");
    let many = started(works(vec![OutputDef::many("Item")], |mut call: StepCall| async move {
        for item in 0..3 {
            call.emit("Item", json!(item))?;
        }
        call.emit("Done", json!("all"))?;
        call.commit(())
    }));
    let run = many.await;
    assert_eq!(run.outcome_any().await.unwrap().as_json(), Some(&json!("all")));
    let log: Vec<_> = run.report().await.unwrap().log.iter().map(|logged| logged.event.to_string()).collect();
    assert_eq!(log, ["Begin", "Item", "Item", "Item", "Done"]);
}

// S57
#[tokio::test]
async fn an_execution_has_a_bound_for_its_outputs() {
    let full = failure(works(vec![OutputDef::many("Item")], |mut call: StepCall| async move {
        for _ in 0..=1 << 16 {
            call.emit("Item", Value::Null)?;
        }
        call.commit(())
    }));
    let full = full.await;
    assert!(full.contains("65536 events"), "{full}");
}

// S57, S29, S36: a step's own policy, a caught failure, and optional, passive and list inputs.
#[tokio::test(start_paused = true)]
async fn inputs_have_the_values_of_their_parameters() {
    let flaky = RetryPolicy::none().on(ErrorClass::Transient, Retries::fixed(1, Duration::ZERO));
    let table = table()
        .event(EventDef::new("Note", Roles::NONE.external()))
        .event(EventDef::failure("StepFailed"))
        .event(EventDef::new("Mended", Roles::NONE))
        .step(StepDef::new("work").input(InputDef::one("Begin")).output(OutputDef::many("Item")).retry(flaky))
        .step(
            StepDef::new("mend")
                .input(InputDef::one("StepFailed"))
                .output(OutputDef::event("Mended"))
                .catches(["work"]),
        )
        .step(
            StepDef::new("end")
                .input(InputDef::one_of(["Mended", "Item"]))
                .input(InputDef::one("Note").passive())
                .input(InputDef::list(["Note"]).passive())
                .input(InputDef::one("Item").optional())
                .output(OutputDef::event("Done")),
        );
    let steps = |mut call: StepCall| async move {
        let step = call.step().to_owned();
        match &*step {
            "work" => return Err(StepError::transient(format!("attempt {}", call.attempt()))),
            "mend" => {
                let InputValue::Event(failed) = call.input(0) else { panic!("{call:?}") };
                let text = failed.to_json().unwrap()["error"].clone();
                assert_eq!((failed.name(), failed.as_json()), ("StepFailed", None));
                call.emit("Mended", text)?;
            }
            _ => {
                let mended = call.input(0).json().cloned().unwrap();
                assert!(matches!(call.input(1), InputValue::None), "{:?}", call.input(1));
                assert!(matches!(call.input(2), InputValue::None | InputValue::Events(_)));
                assert!(matches!(call.input(3), InputValue::None));
                assert!(matches!(call.input(9), InputValue::None));
                call.emit("Done", mended)?;
            }
        }
        call.commit(())
    };
    let run = started(RuntimeWorkflow::new(table.build().unwrap(), steps)).await;
    assert_eq!(run.outcome_any().await.unwrap().as_json(), Some(&json!("attempt 2")));
}

// S57
#[tokio::test]
async fn a_refused_output_fails_the_execution_also_if_the_step_ignores_the_error() {
    let text = failure(works(vec![], |mut call: StepCall| async move {
        let _ = call.emit("Lost", json!(1));
        call.emit("Done", json!(1))?;
        call.commit(())
    }));
    let text = text.await;
    assert!(text.contains("the step does not declare `Lost`: it emits `Done`"), "{text}");

    // An undeclared event of a Rust type is named, and not the one that is missing for it.
    let text = failure(works(vec![], |call: StepCall| async move { call.commit(Begin(1)) })).await;
    assert!(text.contains("`Begin`") && !text.contains("emitted 0"), "{text}");
}

/// A step whose call panics before it makes its future, and whose precondition emits.
struct Careless;

impl Steps for Careless {
    fn call(self: Arc<Self>, _: StepIndex, call: StepCall) -> BoxFuture<'static, Result<Emitted, StepError>> {
        panic!("{} has no code", call.step())
    }

    fn check(&self, _: StepIndex, call: &mut StepCall) -> Result<bool, StepError> {
        let refused = call.emit("Done", json!(1)).unwrap_err();
        assert_eq!(refused, EmitError::OfPrecondition { event: "Done".into() });
        Ok(true)
    }
}

// S57, S18, S22
#[tokio::test]
async fn a_panic_of_the_steps_is_one_of_the_execution() {
    let end = StepDef::new("end")
        .input(InputDef::one("Begin"))
        .output(OutputDef::event("Done"))
        .precondition(PreconditionDef::new("is_wanted").input(InputDef::one("Begin")));
    let text = failure(RuntimeWorkflow::new(table().step(end).build_unchecked().unwrap(), Careless)).await;
    assert!(text.contains("end has no code"), "{text}");
}

// S57, S18
#[tokio::test]
async fn a_precondition_without_an_answer_fails_the_run() {
    let end = StepDef::new("end")
        .input(InputDef::one("Begin"))
        .output(OutputDef::event("Done"))
        .precondition(PreconditionDef::new("is_wanted").input(InputDef::one("Begin")));
    let table = table().step(end).build_unchecked().unwrap();
    let run = started(RuntimeWorkflow::new(table, |mut call: StepCall| async move {
        call.emit("Done", json!(1))?;
        call.commit(())
    }))
    .await;
    let error = run.outcome_any().await.unwrap_err().to_string();
    assert!(error.contains("step `end` has a precondition: implement `Steps::check`"), "{error}");
}

/// Runs `letters` as a child, by name.
struct Typed;

#[workflow]
impl Typed {
    #[step]
    async fn run(&self, begin: &Begin, children: &Children) -> Result<Done, RunError> {
        let ended = children.run_json("letters", "Begin", json!({ "n": begin.0 }), RunOptions::new()).await?;
        Ok(Done(ended.as_json().and_then(Value::as_u64).and_then(|n| n.try_into().ok()).unwrap_or(0)))
    }
}

/// A run-time workflow that runs a typed one as a child.
fn delegates() -> RuntimeWorkflow {
    let table = DependencyTable::builder("delegates")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::new("Done", Roles::NONE.stop()))
        .step(StepDef::new("ask").input(InputDef::one("Begin")).output(OutputDef::event("Done")));
    RuntimeWorkflow::new(table.build().unwrap(), |mut call: StepCall| async move {
        let begin = call.input(0).json().cloned().unwrap();
        let done = call.children()?.run_json("Typed", "Begin", begin, RunOptions::new()).await?;
        call.emit("Done", done.to_json().map_err(StepError::permanent)?)?;
        call.commit(())
    })
}

fn doubles() -> RuntimeWorkflow {
    works(vec![], |mut call: StepCall| async move {
        let n = call.input(0).json().and_then(|begin| begin["n"].as_u64()).unwrap();
        assert_eq!(call.info().workflow(), "letters");
        call.emit("Done", json!(2 * n))?;
        call.commit(())
    })
}

// S57, S1: three levels, with the same wire names in workflows of both kinds.
#[tokio::test]
async fn typed_and_run_time_workflows_run_each_other() {
    let builder = Engine::builder().workflow(Typed).workflows([doubles(), delegates()]);
    let engine = builder.store(MemoryStore::default()).build().unwrap();
    let run = engine.start_json("delegates", "Begin", 21, RunOptions::new().id("a")).await.unwrap();
    assert_eq!(run.outcome_any().await.unwrap().as_json(), Some(&json!(42)));
    let hosted: Vec<_> = engine.hosted().into_iter().map(|hosted| hosted.name.to_string()).collect();
    assert_eq!(hosted, ["Typed", "delegates", "letters"]);
    // A typed handle is refused, and a typed event.
    let wrong = engine.attach::<Typed>("a").await.unwrap_err();
    assert!(matches!(wrong, ResumeError::WrongWorkflow { .. }), "{wrong:?}");
}

// S57
#[tokio::test]
async fn a_typed_event_is_none_of_a_run_time_workflow() {
    #[derive(Debug, Serialize, Deserialize, Event)]
    #[event(external)]
    struct Note;

    let table = table()
        .event(EventDef::new("Note", Roles::NONE.external()))
        .step(
            StepDef::new("work")
                .input(InputDef::one("Begin"))
                .input(InputDef::one("Note"))
                .output(OutputDef::event("Done")),
        )
        .build_unchecked()
        .unwrap();
    let run = started(RuntimeWorkflow::new(table, |mut call: StepCall| async move {
        call.emit("Done", call.input(1).json().cloned().unwrap_or_default())?;
        call.commit(())
    }))
    .await;
    assert!(matches!(run.send(Note).await, Err(SendError::NotTaken { event }) if &*event == "Note"));
    run.send_json("Note", json!(["a"])).await.unwrap();
    assert_eq!(run.outcome_any().await.unwrap().as_json(), Some(&json!(["a"])));
    // An ended run says so first.
    let ended = run.send_json("Unknown", ()).await.unwrap_err();
    assert!(matches!(ended, SendError::Ended { .. }), "{ended:?}");
}

// S56, S58
#[tokio::test]
async fn json_enters_for_a_step_that_only_reads_it_passively_or_in_clean_up() {
    let table = table()
        .event(EventDef::new("Note", Roles::NONE.external()))
        .event(EventDef::new("Bill", Roles::NONE.external()))
        .event(EventDef::new("Stop", Roles::NONE.external()))
        .step(
            StepDef::new("end")
                .input(InputDef::one("Begin"))
                .input(InputDef::one("Stop"))
                .input(InputDef::one("Note").passive())
                .output(OutputDef::event("Done")),
        )
        .step(StepDef::new("pay").input(InputDef::one("Bill")).on_end(OnEnd::ANY));
    let run = started(RuntimeWorkflow::new(table.build_unchecked().unwrap(), |call: StepCall| async move {
        if call.step() == "end" {
            assert_eq!(call.input(2).json(), Some(&json!("a")));
            return Err(StepError::permanent("it read the note"));
        }
        call.commit(())
    }))
    .await;
    run.send_json("Note", json!("a")).await.unwrap();
    run.send_json("Bill", json!(9)).await.unwrap();
    run.send_json("Stop", ()).await.unwrap();
    let error = run.outcome_any().await.unwrap_err().to_string();
    assert!(error.contains("it read the note"), "{error}");
    assert_eq!(run.report().await.unwrap().executions("pay"), 1);
}

// S57, S31
#[tokio::test]
async fn a_cancelled_run_cleans_up() {
    let table = table()
        .step(StepDef::new("book").input(InputDef::one("Begin")).output(OutputDef::event("Item")))
        .step(StepDef::new("end").input(InputDef::fixed(2, ["Item"])).output(OutputDef::event("Done")))
        .step(StepDef::new("unbook").input(InputDef::one("Item")).on_end(OnEnd::ANY))
        .event(EventDef::new("Note", Roles::NONE.external()))
        .step(StepDef::new("note").input(InputDef::one("Note")).output(OutputDef::event("Item")));
    let run = started(RuntimeWorkflow::new(table.build().unwrap(), |mut call: StepCall| async move {
        match call.step() {
            "unbook" => assert!(call.info().ending().is_some()),
            _ => call.emit("Item", json!(1))?,
        }
        call.commit(())
    }))
    .await;
    assert_eq!(run.settled().await, RunStatus::Waiting);
    run.cancel("enough").await.unwrap();
    assert_eq!(run.report().await.unwrap().executions("unbook"), 1);
}

// S57
#[tokio::test]
async fn contexts_are_declared() {
    let error = failure(works(vec![], |call: StepCall| async move {
        call.run_context()?;
        call.commit(())
    }));
    assert!(error.await.contains("add `.uses_context()`"));
    let work = StepDef::new("work").input(InputDef::one("Begin")).output(OutputDef::event("Done"));
    let table = table().step(work.uses_context()).build_unchecked().unwrap();
    let run = started(RuntimeWorkflow::new(table, |mut call: StepCall| async move {
        call.run_context()?;
        let seen = call.engine()?.hosted().len();
        call.emit("Done", json!(seen))?;
        call.commit(())
    }))
    .await;
    assert!(run.outcome_any().await.is_ok());
}

// S57
#[tokio::test]
async fn a_table_with_rust_types_is_no_run_time_table() {
    let table = DependencyTable::from_spec(Typed::TABLE).unwrap();
    let workflow = RuntimeWorkflow::new(table, |call: StepCall| async move { call.commit(()) });
    let error = Engine::builder().workflows([workflow, doubles(), doubles()]).build().unwrap_err();
    assert!(matches!(
        &error.problems[..],
        [BuildProblem::TypedEvent { .. }, BuildProblem::DuplicateWorkflow { .. }]
    ));
}

/// Waits for a note behind its start.
struct Waits;

/// `Waits`, in JSON.
fn waits() -> RuntimeWorkflow {
    let table = DependencyTable::builder("Waits")
        .event(EventDef::new("Begin", Roles::NONE.start()))
        .event(EventDef::new("Note", Roles::NONE.external()))
        .event(EventDef::new("Done", Roles::NONE.stop()))
        .step(
            StepDef::new("end")
                .input(InputDef::one("Begin"))
                .input(InputDef::one("Note"))
                .output(OutputDef::event("Done")),
        );
    RuntimeWorkflow::new(table.build().unwrap(), |mut call: StepCall| async move {
        call.emit("Done", call.input(0).json().cloned().unwrap())?;
        call.commit(())
    })
}

#[derive(Debug, Serialize, Deserialize, Event)]
#[event(external)]
struct Note;

#[workflow]
impl Waits {
    #[step]
    async fn end(&self, begin: &Begin, _note: &Note) -> Done {
        Done(begin.0)
    }
}

// S57: a store in memory has values, and each kind of workflow reads those of the other.
#[tokio::test]
async fn a_run_in_memory_is_resumed_by_a_workflow_of_the_other_kind() {
    let store = Arc::new(MemoryStore::default());
    let typed = || Engine::builder().workflow(Waits).store(Arc::clone(&store)).build().unwrap();
    let untyped = || Engine::builder().workflows([waits()]).store(Arc::clone(&store)).build().unwrap();
    for (first, then, id) in [(typed(), untyped(), "a"), (untyped(), typed(), "b")] {
        let run = first.start_json("Waits", "Begin", 7, RunOptions::new().id(id)).await.unwrap();
        run.settled().await;
        first.shut_down(Duration::ZERO).await;
        everyone_else().await;
        let run = then.attach_any(id).await.unwrap();
        run.send_json("Note", ()).await.unwrap();
        assert_eq!(run.outcome_any().await.unwrap().to_json().unwrap(), json!(7));
    }
}

// S57, S41, S43
#[tokio::test]
async fn a_journal_is_read_with_the_version_that_the_table_declares() {
    fn asks(version: u32) -> RuntimeWorkflow {
        let table = DependencyTable::builder("letters")
            .event(EventDef::new("Begin", Roles::NONE.start()).version(version))
            .event(EventDef::new("Done", Roles::NONE.stop()))
            .event(EventDef::new("Note", Roles::NONE.external()))
            .step(
                StepDef::new("end")
                    .input(InputDef::one("Begin"))
                    .input(InputDef::one("Note"))
                    .output(OutputDef::event("Done")),
            );
        RuntimeWorkflow::new(table.build().unwrap(), |mut call: StepCall| async move {
            call.emit("Done", call.input(0).json().cloned().unwrap_or_default())?;
            call.commit(())
        })
    }
    let store = Arc::new(MemoryStore::default());
    let engine = |version| {
        let builder = Engine::builder().workflows([asks(version)]).store(Arc::clone(&store));
        builder.build().unwrap()
    };
    let first = engine(2);
    let run = first.start_json("letters", "Begin", "b", RunOptions::new().id("a")).await.unwrap();
    run.settled().await;
    first.shut_down(Duration::ZERO).await;
    everyone_else().await;
    let newer = engine(1).attach_any("a").await.unwrap_err();
    assert!(newer.to_string().contains("version"), "{newer}");
    let run = engine(2).attach_any("a").await.unwrap();
    run.send_json("Note", ()).await.unwrap();
    assert_eq!(run.outcome_any().await.unwrap().as_json(), Some(&json!("b")));
}

// S57, S59, S60: fan-outs of a run-time workflow, gathered by item with several events, and caught.
#[tokio::test]
async fn a_gather_by_item_has_the_events_of_its_own_types_and_a_failed_fan_out_is_caught() {
    let table = table()
        .event(EventDef::new("Left", Roles::NONE))
        .event(EventDef::new("Right", Roles::NONE))
        .event(EventDef::new("Other", Roles::NONE))
        .event(EventDef::failure("StepFailed"))
        .event(EventDef::new("Again", Roles::NONE))
        .step(StepDef::new("open").input(InputDef::one("Begin")).output(OutputDef::fan_out("Item")))
        .step(
            StepDef::new("work")
                .input(InputDef::one("Item"))
                .output(OutputDef::optional("Left"))
                .output(OutputDef::optional("Right"))
                .output(OutputDef::event("Other")),
        )
        .step(
            StepDef::new("gather")
                .input(InputDef::gather_of("Item", ["Left", "Right"]))
                .output(OutputDef::fan_out("Again")),
        )
        .step(StepDef::new("fail").input(InputDef::one("Again")).output(OutputDef::optional("Done")))
        .step(
            StepDef::new("mend")
                .input(InputDef::one("StepFailed"))
                .output(OutputDef::event("Done"))
                .catches(["gather"]),
        );
    let steps = |mut call: StepCall| async move {
        let step = call.step().to_owned();
        match &*step {
            "open" => {
                let items: FanOut<Value> = [json!(0), json!(1)].into_iter().collect();
                call.emit("Item", items)?;
            }
            "work" => {
                let item = call.input(0).json().cloned().unwrap();
                call.emit(if item == 0 { "Left" } else { "Right" }, json!({ "of": item }))?;
                call.emit("Other", item)?;
            }
            "gather" => {
                let InputValue::Gather(branches) = call.input(0) else { panic!("{call:?}") };
                let seen: Vec<_> = branches
                    .iter()
                    .map(|branch| {
                        let names: Vec<_> = branch.events().iter().map(|event| event.name()).collect();
                        (branch.item().to_json().unwrap(), names.join(" "), branch.settled())
                    })
                    .collect();
                assert_eq!(seen, [(json!(0), "Left".into(), 0), (json!(1), "Right".into(), 1)]);
                let items: FanOut<Value> = [json!("a"), json!("b")].into_iter().collect();
                call.emit("Again", items.wait_all())?;
            }
            "fail" => return Err(StepError::tool(call.input(0).json().unwrap().to_string())),
            _ => {
                let InputValue::Event(failed) = call.input(0) else { panic!("{call:?}") };
                call.emit("Done", failed.to_json().unwrap()["error"].clone())?;
            }
        }
        call.commit(())
    };
    let run = started(RuntimeWorkflow::new(table.build_unchecked().unwrap(), steps)).await;
    let done = run.outcome_any().await.unwrap();
    assert_eq!(done.as_json(), Some(&json!("step `fail` failed: \"a\"; step `fail` failed: \"b\"")));
}

// S32, S57
#[tokio::test(start_paused = true)]
async fn the_time_of_a_workflow_holds_for_each_run_and_a_shorter_one_goes_before_it() {
    let sleeps = |seconds: Option<u64>| {
        let work = StepDef::new("work").input(InputDef::one("Begin")).output(OutputDef::event("Done"));
        let table = table().step(work).build_unchecked().unwrap();
        let steps = |_: StepCall| std::future::pending::<Result<Emitted, StepError>>();
        match seconds {
            Some(seconds) => RuntimeWorkflow::with_timeout(table, Duration::from_secs(seconds), steps),
            None => RuntimeWorkflow::new(table, steps),
        }
    };
    for (workflow, options, expected) in [
        (None, None, 90),
        (Some(60), None, 60),
        (Some(60), Some(9), 9),
        (Some(60), Some(70), 60),
        (None, Some(70), 70),
        (Some(600), None, 600),
    ] {
        let engine = Engine::builder().workflows([sleeps(workflow)]).run_timeout(Duration::from_secs(90));
        let engine = engine.clock(workflow_testkit::VirtualClock::new()).build().unwrap();
        let options = options
            .map_or_else(RunOptions::new, |seconds| RunOptions::new().timeout(Duration::from_secs(seconds)));
        let run = engine.start_json("letters", "Begin", json!({ "n": 1 }), options).await.unwrap();
        match run.outcome_any().await {
            Err(RunError::TimedOut { after, .. }) => assert_eq!(after.as_secs(), expected),
            other => panic!("{other:?}"),
        }
    }
}

// S60: the branches of a failed fan-out have their places in it, also behind another fan-out of the same batch.
#[tokio::test]
async fn a_failed_branch_has_its_place_in_its_own_fan_out() {
    let table = table()
        .event(EventDef::new("Part", Roles::NONE))
        .event(EventDef::failure("StepFailed"))
        .step(
            StepDef::new("split")
                .input(InputDef::one("Begin"))
                .output(OutputDef::fan_out("Item"))
                .output(OutputDef::fan_out("Part")),
        )
        .event(EventDef::new("Kept", Roles::NONE))
        .event(EventDef::new("Read", Roles::NONE))
        .step(StepDef::new("keep").input(InputDef::one("Item")).output(OutputDef::event("Kept")))
        .step(
            StepDef::new("read")
                .input(InputDef::one("Part"))
                .output(OutputDef::event("Read"))
                .retry(RetryPolicy::none()),
        )
        .step(StepDef::new("items").input(InputDef::gather_of("Item", ["Kept"])))
        .step(StepDef::new("parts").input(InputDef::gather_of("Part", ["Read"])))
        .step(
            StepDef::new("mend")
                .input(InputDef::one("StepFailed"))
                .output(OutputDef::event("Done"))
                .catches(["split"]),
        );
    let steps = |mut call: StepCall| async move {
        match call.step() {
            "split" => {
                let parts: FanOut<Value> = (0..5).map(Value::from).collect();
                call.emit("Item", (0..3).map(Value::from).collect::<FanOut<Value>>())?;
                call.emit("Part", parts.wait_all())?;
            }
            "read" if call.input(0).json().and_then(Value::as_u64).is_some_and(|part| part % 2 == 1) => {
                return Err(StepError::permanent("odd"));
            }
            "read" => call.emit("Read", json!(1))?,
            "keep" => call.emit("Kept", json!(1))?,
            "mend" => {
                let InputValue::Event(event) = call.input(0) else { panic!("a failure is an event") };
                let failed = event.downcast_ref::<workflow_core::StepFailed>().unwrap();
                let places: Vec<u32> = failed.branches.iter().map(|branch| branch.branch).collect();
                call.emit("Done", json!(places))?;
            }
            _ => {}
        }
        call.commit(())
    };
    let run = started(RuntimeWorkflow::new(table.build_unchecked().unwrap(), steps)).await;
    assert_eq!(run.outcome_any().await.unwrap().as_json(), Some(&json!([1, 3])));
}
